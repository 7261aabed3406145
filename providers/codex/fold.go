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
	Version string          `json:"version,omitempty"`
	Model   string          `json:"model,omitempty"`
	Thread  string          `json:"thread,omitempty"`
	Turn    string          `json:"turn,omitempty"`    // its id, from the answer to turn/start
	Started bool            `json:"started,omitempty"` // turn/started came: before it an interrupt is refused
	Stop    bool            `json:"stop,omitempty"`    // an interrupt is wanted
	Denied  string          `json:"denied,omitempty"`  // what was asked and refused, which ends the run

	Pending []pending       `json:"pending,omitempty"`
	Message string          `json:"message,omitempty"` // id of the last message
	Spoken  bool            `json:"spoken,omitempty"`  // a delta of it came
	Open    int             `json:"open,omitempty"`
	Usage   providers.Usage `json:"usage"`
	Failure *providers.End  `json:"failure,omitempty"` // the last error that was final
	End     *providers.End  `json:"end,omitempty"`
	Log     string          `json:"log,omitempty"` // the end of standard error
}

// fold drives one turn of one thread.
type fold struct {
	state
	op     string // of the frames that are being made
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

// State is the state as JSON.
func (f *fold) State() json.RawMessage {
	data, _ := json.Marshal(f.state) // strings, numbers, flags: cannot fail
	return data
}

// About is what is known by now.
func (f *fold) About() providers.About {
	var asks []providers.Permission
	for _, p := range f.Pending {
		asks = append(asks, p.Permission)
	}
	return providers.About{
		Pending: asks, Conversation: f.Thread, Model: f.Model, Version: f.Version, Message: f.Message,
		Ready: f.Thread != "", Confirmed: f.Started, Usage: f.Usage, Open: f.Open, Log: f.Log, End: f.end(),
	}
}

// end is the turn's end; what was refused for want of somebody to ask comes before how the turn went.
func (f *fold) end() *providers.End {
	if f.End != nil && f.Denied != "" {
		return &providers.End{Outcome: session.Denied, Message: f.Denied}
	}
	return f.End
}

// Begin greets the server. All else follows from its answers.
func (f *fold) Begin(o providers.Order) []providers.Frame {
	f.Order = o
	return f.made("begin", func() {
		f.call("init", "initialize", map[string]any{
			"clientInfo":   map[string]string{"name": "pintle", "title": "pintle", "version": "1"},
			"capabilities": map[string]any{"experimentalApi": true},
		})
	})
}

// Interrupt interrupts the turn once it has started; until then it is remembered, since the server refuses it.
func (f *fold) Interrupt() []providers.Frame {
	f.Stop = true
	return f.made("interrupt", f.interrupt)
}

func (f *fold) interrupt() {
	if f.Started && f.End == nil {
		f.call("interrupt", "turn/interrupt", map[string]string{"threadId": f.Thread, "turnId": f.Turn})
	}
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
	frames := f.made(fmt.Sprint(c.Offset), func() { f.take(m) })
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

// made collects the frames that do makes, each with an operation of its own: made again they are not written twice.
func (f *fold) made(op string, do func()) []providers.Frame {
	f.op, f.frames = op, nil
	do()
	return f.frames
}

func (f *fold) take(m message) {
	switch {
	case m.Method == "" && m.Error != nil:
		f.refused(name(m.ID), m.Error.Message)
	case m.Method == "":
		f.answered(name(m.ID), m.Result)
	case len(m.ID) > 0:
		f.asked(m)
	default:
		f.notified(m.Method, m.Params)
	}
}

// name is the name that we gave a request.
func name(id json.RawMessage) (s string) {
	_ = json.Unmarshal(id, &s)
	return s
}

func (f *fold) call(id, method string, params any) {
	f.send(map[string]any{"id": id, "method": method, "params": params})
}

func (f *fold) send(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what we make ourselves: cannot fail
	f.frames = append(f.frames, providers.Frame{Op: fmt.Sprintf("%s.%d", f.op, len(f.frames)), Data: b.Bytes()})
}

// tell is an event.
func (f *fold) tell(kind string, data any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(data)
	f.events = append(f.events, providers.Event{Type: kind, Data: bytes.TrimSpace(b.Bytes())})
}

// finish ends the turn; the first end counts.
func (f *fold) finish(outcome session.Outcome, code, message string) {
	if f.End == nil {
		f.End = &providers.End{Outcome: outcome, Code: code, Message: message}
	}
}
