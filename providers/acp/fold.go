package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// state is all that the fold knows.
type state struct {
	Order   providers.Order `json:"order"`
	Waiting string          `json:"waiting,omitempty"` // for the answer to which of our requests
	Greeted bool            `json:"greeted,omitempty"`
	Resumes bool            `json:"resumes,omitempty"` // it can go on without telling all that was
	Takes   bool            `json:"takes,omitempty"`   // it takes messages into a turn that runs
	Version string          `json:"version,omitempty"`
	Model   string          `json:"model,omitempty"`
	Session string          `json:"session,omitempty"` // once it stands
	Opening string          `json:"opening,omitempty"` // the id of one that goes on, while it is being opened
	Caught  bool            `json:"caught,omitempty"`  // it has told all that was, where it does so
	Loaded  bool            `json:"loaded,omitempty"`  // it has answered that it is open, and tells still
	Wishes  []wish          `json:"wishes,omitempty"`  // what is to be chosen before the prompt
	Choices []choice        `json:"choices,omitempty"`
	Fresh   bool            `json:"fresh,omitempty"`  // the session began in this process: it had cost nothing
	Priced  *float64        `json:"priced,omitempty"` // what the session has cost in all, as it was told last
	newest

	Items   []open    `json:"items,omitempty"`
	Pending []pending `json:"pending,omitempty"`
	Steers  []steer   `json:"steers,omitempty"`
	Asked   int       `json:"asked,omitempty"` // so many permissions, so that each has a name of its own
	Log     string    `json:"log,omitempty"`   // the end of standard error
}

// newest is what is known of the newest turn. The next one begins without any of it.
type newest struct {
	Prompt    string          `json:"prompt,omitempty"`    // the operation of the frame that has it
	Confirmed bool            `json:"confirmed,omitempty"` // something came of it
	Begun     bool            `json:"begun,omitempty"`
	Stop      bool            `json:"stop,omitempty"`    // an end is wanted
	Stops     int             `json:"stops,omitempty"`   // frames that Interrupt has made
	Refused   string          `json:"refused,omitempty"` // what it asked last of what it was not allowed
	Denied    string          `json:"denied,omitempty"`
	Message   string          `json:"message,omitempty"`
	Unnamed   int             `json:"unnamed,omitempty"` // so many messages that had no id of the agent's
	Broken    bool            `json:"broken,omitempty"`  // what comes next belongs to another message
	Slash     bool            `json:"slash,omitempty"`   // the prompt is a command of the agent's own
	Only      string          `json:"only,omitempty"`    // all that came of the turn, if that is the beginning of a message
	Said      string          `json:"said,omitempty"`    // what was told as a message without an id: an error, if the turn failed
	Errored   bool            `json:"errored,omitempty"` // the agent has said that it failed
	Trouble   string          `json:"trouble,omitempty"` // the last error that it goes on after
	Retried   string          `json:"retried,omitempty"` // the cause of that
	Tokens    providers.Usage `json:"tokens,omitzero"`
	Base      *float64        `json:"base,omitempty"` // what the session had cost before; nil in one that goes on: that is not known
	End       *providers.End  `json:"end,omitempty"`
}

// fold drives one session, a turn after the other.
type fold struct {
	providers.Alone
	wire.Maker
	state
	agent *agent
}

// message is a line of the protocol, of any kind.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`

	line []byte // it as it came
}

// params are what any method has that we know, so that a line is decoded once.
type params struct {
	SessionID string
	Update    update                            // session/update
	ToolCall  update                            // session/request_permission
	Options   []struct{ OptionID, Kind string } // likewise
	RequestID json.RawMessage                   // $/cancel_request
}

// read decodes a line. What is of another type than it should be is as if it were not there.
func read(line []byte) (m message, ok bool) {
	m.line = line
	err := json.Unmarshal(line, &m)
	var other *json.UnmarshalTypeError
	return m, err == nil || errors.As(err, &other)
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// State is the state as JSON.
func (f *fold) State() json.RawMessage { return wire.Encode(f.state) }

// About is what is known by now.
func (f *fold) About() providers.About {
	a := providers.About{
		Conversation: f.Session, Model: f.Model, Version: f.Version, Message: f.Message, Ready: f.Session != "", Prompt: f.Prompt,
		Confirmed: f.Confirmed, Begun: f.Begun, Usage: f.usage(), Priced: f.Priced, Open: len(f.Items), Trouble: f.Trouble, Log: f.Log, End: f.end(),
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
	switch {
	case f.End != nil && f.Denied != "":
		return &providers.End{Outcome: session.Denied, Message: f.Denied}
	case f.unanswered():
		return nil
	}
	return f.End
}

// Receive takes a line in. What is no message of the protocol says nothing.
func (f *fold) Receive(c providers.Chunk) ([]providers.Event, []providers.Frame) {
	if c.Stream == providers.Stderr {
		f.Log = wire.Log(f.Log, c.Data)
		return nil, nil
	}
	m, ok := read(c.Data)
	if !ok {
		return nil, nil
	}
	frames := f.Made(fmt.Sprint(c.Offset), 0, func() { f.take(m) })
	return f.Told(), frames
}

func (f *fold) take(m message) {
	switch {
	case m.Method == "" && m.Error != nil:
		f.refused(name(m.ID), *m.Error)
	case m.Method == "":
		f.answered(name(m.ID), m.Result)
	case len(m.ID) > 0 && string(m.ID) != "null":
		f.asked(m)
	case m.Method == "session/update":
		f.updated(m)
	case m.Method == "$/cancel_request":
		f.withdrawn(m.Params.RequestID)
	}
}

// name is the name that we gave a request. The agent numbers its own, and may use any number.
func name(id json.RawMessage) (s string) {
	_ = json.Unmarshal(id, &s)
	return s
}

// await makes a request whose answer decides how it goes on. There is one at a time, but for a prompt, which takes as long as its
// turn. It has the turn's name in it: no other turn takes its answer for one of its own.
func (f *fold) await(what, method string, params any) {
	f.Waiting = what + "/" + f.Order.Turn
	f.Send(map[string]any{"jsonrpc": "2.0", "id": f.Waiting, "method": method, "params": params})
}

// answered goes on with what the answer to one of our requests allows.
func (f *fold) answered(id string, result json.RawMessage) {
	if s := f.steering(id); s != nil {
		s.taken(result)
		return
	}
	if id == "" || id != f.Waiting {
		return
	}
	f.Waiting = ""
	switch what, _, _ := strings.Cut(id, "/"); what {
	case "initialize":
		f.greeted(result)
	case "open":
		f.opened(result)
	case "choose":
		f.chosen(result)
	default:
		f.prompted(result)
	}
}

// finish ends the turn; the first end counts. What it asked for and got no answer lapses, and what it began has ended.
func (f *fold) finish(outcome session.Outcome, code, message string) {
	if f.End != nil {
		return
	}
	f.End = &providers.End{Outcome: outcome, Code: code, Message: wire.Clip(message, wire.WordsLimit)}
	f.lapse()
	f.settle()
	f.unsteered(outcome == session.Completed && !f.Stop)
}
