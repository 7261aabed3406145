package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// state is all that the fold knows.
type state struct {
	Order   providers.Order `json:"order"`
	Waiting string          `json:"waiting,omitempty"` // for the answer to which of our requests
	Greeted bool            `json:"greeted,omitempty"`
	Version string          `json:"version,omitempty"`
	Model   string          `json:"model,omitempty"`
	Thread  string          `json:"thread,omitempty"`
	Dir     string          `json:"dir,omitempty"` // the thread's: the order's, maybe with its symbolic links resolved
	Own     *stance         `json:"own,omitempty"` // what a conversation that goes on must be opened with
	newest

	Shared   bool      `json:"shared,omitempty"` // with other sessions' threads
	Kin      []string  `json:"kin,omitempty"`    // threads of agents that this one has started, where it is shared
	Leaves   bool      `json:"leaves,omitempty"` // Leave was called
	Parted   bool      `json:"parted,omitempty"` // and all that follows from it was said
	Partings []parting `json:"partings,omitempty"`

	Earlier []string  `json:"earlier,omitempty"` // the newest turns of the thread that are not the newest, or not ours
	Others  []running `json:"others,omitempty"`  // turns of other threads: of agents that this one has started
	Items   []open    `json:"items,omitempty"`
	Pending []pending `json:"pending,omitempty"`
	Steers  []steer   `json:"steers,omitempty"`
	Asked   int       `json:"asked,omitempty"` // so many permissions, so that each has a name of its own
	Log     string    `json:"log,omitempty"`   // the end of standard error
}

// newest is what is known of the newest turn. The next one begins without any of it.
type newest struct {
	Prompt  string         `json:"prompt,omitempty"`  // the operation of the frame that has it
	Turn    string         `json:"turn,omitempty"`    // its id, from the answer to turn/start
	Started bool           `json:"started,omitempty"` // turn/started came: before it an interrupt is refused
	Begun   bool           `json:"begun,omitempty"`
	Stop    bool           `json:"stop,omitempty"`   // an interrupt is wanted
	Stops   int            `json:"stops,omitempty"`  // frames that Interrupt has made
	Denied  string         `json:"denied,omitempty"` // what was asked and refused, which ends the turn
	Message string         `json:"message,omitempty"`
	Spoken  bool           `json:"spoken,omitempty"` // a part of the last message came
	Meters  []meter        `json:"meters,omitempty"`
	Trouble string         `json:"trouble,omitempty"` // the last error that the agent goes on after
	Retried string         `json:"retried,omitempty"` // the cause of the last error in the request that runs
	Failure *providers.End `json:"failure,omitempty"` // the last error that was final
	End     *providers.End `json:"end,omitempty"`
}

// No list grows over a bound, whatever an agent sends: the state is written down often.
const (
	most       = 256   // of anything that is open at once
	idLimit    = 256   // characters of an id
	titleLimit = 4_000 // characters of what is asked
	wordsLimit = 2_000 // characters of a message that is kept (B2)
)

// fold drives one thread, a turn after the other.
type fold struct {
	state
	op     string // of the frames that are being made
	index  int    // of the next one
	events []providers.Event
	frames []providers.Frame
}

// message is a line of the protocol, of any kind.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// ident is an id of the server's. One that is no text is none; the end of one that is absurdly long is left out, here as
// everywhere.
type ident string

// UnmarshalJSON takes anything.
func (i *ident) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*i = ident(clip(s, idLimit))
	return nil
}

// where is what a notification is about.
type where struct{ ThreadID, TurnID ident }

// own says that it is about our thread.
func (f *fold) own(thread ident) bool { return thread == "" || string(thread) == f.Thread }

// mine says that it is about the newest turn. What comes late of an earlier one has that one's id.
func (f *fold) mine(w where) bool {
	return f.own(w.ThreadID) && (w.TurnID == "" || string(w.TurnID) == f.Turn)
}

// State is the state as JSON, whose strings stand as they came: a request's id is given back as it was.
func (f *fold) State() json.RawMessage { return encode(f.state) }

// About is what is known by now.
func (f *fold) About() providers.About {
	a := providers.About{
		Conversation: f.Thread, Model: f.Model, Version: f.Version, Message: f.Message, Ready: f.Thread != "",
		Prompt: f.Prompt, Confirmed: f.Turn != "", Begun: f.Begun, Usage: f.usage(), Open: len(f.Items), Log: f.Log, End: f.end(),
		Trouble: f.Trouble, Left: f.Parted && len(f.Partings) == 0,
	}
	for _, p := range f.Pending {
		a.Pending = append(a.Pending, p.Permission)
	}
	for _, s := range f.Steers {
		a.Steered = append(a.Steered, s.Steered)
	}
	return a
}

// end is the turn's end; what was refused for want of somebody to ask comes before how the turn went.
func (f *fold) end() *providers.End {
	if f.End != nil && f.Denied != "" {
		return &providers.End{Outcome: session.Denied, Message: f.Denied}
	}
	return f.End
}

// Receive takes a line in. What is no message of the protocol says nothing.
func (f *fold) Receive(c providers.Chunk) ([]providers.Event, []providers.Frame) {
	if c.Stream == providers.Stderr {
		f.Log = tail(f.Log+colours().ReplaceAllString(strings.ToValidUTF8(string(c.Data), "\ufffd"), ""), logLimit)
		return nil, nil
	}
	var m message
	if json.Unmarshal(bytes.TrimSpace(c.Data), &m) != nil {
		return nil, nil
	}
	frames := f.made(fmt.Sprint(c.Offset), 0, func() { f.take(m) })
	events := f.events
	f.events = nil
	return events, frames
}

// colours are what the log is painted with.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m`) })

// logLimit is how much of standard error is kept, in bytes.
const logLimit = 2000

func tail(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// clip leaves out what is over n characters.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// made collects the frames that do makes, each with an operation of its own: made again they are not written twice.
func (f *fold) made(op string, index int, do func()) []providers.Frame {
	f.op, f.index, f.frames = op, index, nil
	do()
	return f.frames
}

// ordered is the operation, or the id of a request, that is made for an order and answers no line of the server's. A late
// answer to what was asked in an earlier turn has another name.
func (f *fold) ordered(name string) string {
	if f.Order.Turn == "" {
		return name
	}
	return f.Order.Turn + "." + name
}

func (f *fold) take(m message) {
	switch {
	case f.Parted:
		f.farewell(m)
	case f.foreign(m):
	case m.Method == "" && m.Error != nil:
		f.refused(name(m.ID), m.Error.Message)
	case m.Method == "":
		f.answered(name(m.ID), m.Result)
	case len(m.ID) > 0 && string(m.ID) != "null":
		f.asked(m)
	default:
		f.notified(m.Method, m.Params)
	}
	f.depart()
}

// name is the name that we gave a request.
func name(id json.RawMessage) (s string) {
	_ = json.Unmarshal(id, &s)
	return s
}

// await makes a request whose answer decides how it goes on. There is one at a time.
func (f *fold) await(what, method string, params any) {
	f.Waiting = f.request(what)
	f.call(f.Waiting, method, params)
}

// request is the id of a request. It has the turn's name in it: no other turn, nor another session's fold that speaks to
// the same server, takes its answer for one of its own.
func (f *fold) request(what string) string {
	if f.Order.Turn == "" {
		return what
	}
	return what + "/" + f.Order.Turn
}

func (f *fold) call(id, method string, params any) {
	f.send(map[string]any{"id": id, "method": method, "params": params})
}

// next is the operation of the frame that is made next.
func (f *fold) next() string { return fmt.Sprintf("%s.%d", f.op, f.index) }

func (f *fold) send(v any) {
	f.frames = append(f.frames, providers.Frame{Op: f.next(), Data: append(encode(v), '\n')})
	f.index++
}

// tell is an event.
func (f *fold) tell(kind string, data any) {
	f.events = append(f.events, providers.Event{Type: kind, Data: encode(data)})
}

// notice tells what somebody should know.
func (f *fold) notice(message string) {
	f.tell("agent_notice", map[string]string{"message": clip(message, wordsLimit)})
}

// encode is JSON on one line, for what we make ourselves: it cannot fail.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// finish ends the turn; the first end counts. What it asked for and got no answer lapses.
func (f *fold) finish(outcome session.Outcome, code, message string) {
	if f.End == nil {
		f.close(outcome, code, message)
		f.lapse()
	}
}

// close is finish without a word of it, for where nothing can be told.
func (f *fold) close(outcome session.Outcome, code, message string) {
	f.End = &providers.End{Outcome: outcome, Code: code, Message: clip(message, wordsLimit)}
	f.unheld()
}
