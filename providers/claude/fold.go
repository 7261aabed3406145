package claude

import (
	"encoding/json"
	"fmt"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// state is all that the fold knows.
type state struct {
	Order   providers.Order `json:"order"`
	Waiting string          `json:"waiting,omitempty"` // for the answer to which of our requests
	Ready   bool            `json:"ready,omitempty"`   // the conversation stands
	Gated   bool            `json:"gated,omitempty"`   // the agent asks before it uses a tool
	Version string          `json:"version,omitempty"`
	Model   string          `json:"model,omitempty"`
	Session string          `json:"session,omitempty"` // the conversation's id
	Busy    bool            `json:"busy,omitempty"`    // the agent is at work, with a turn of ours or of its own
	Tells   bool            `json:"tells,omitempty"`   // and says when it is not any more
	Named   bool            `json:"named,omitempty"`   // it says which messages a turn is about
	newest

	Own     bool      `json:"own,omitempty"`   // the turn that runs is one that the agent has begun by itself
	Cause   string    `json:"cause,omitempty"` // what ended last in the background
	Stream  stream    `json:"stream"`
	Calls   []call    `json:"calls,omitempty"`
	Tasks   []task    `json:"tasks,omitempty"` // in the background
	Steps   []step    `json:"steps,omitempty"` // of the agent's plan
	Pending []pending `json:"pending,omitempty"`
	Steers  []steer   `json:"steers,omitempty"`
	Asked   int       `json:"asked,omitempty"` // so many permissions, so that each has a name of its own
	Paid    float64   `json:"paid,omitempty"`  // dollars, as the process has told by now
	Log     string    `json:"log,omitempty"`   // the end of standard error
}

// newest is what is known of the newest turn. The next one begins without any of it.
type newest struct {
	Prompt    string          `json:"prompt,omitempty"`    // the operation of the frame that has it
	Confirmed bool            `json:"confirmed,omitempty"` // the agent has begun to work on it
	Begun     bool            `json:"begun,omitempty"`
	Hooked    bool            `json:"hooked,omitempty"` // our hooks are in force: the prompt came by one
	Stop      bool            `json:"stop,omitempty"`   // an interrupt is wanted
	Stops     int             `json:"stops,omitempty"`  // frames that Interrupt has made
	Denied    string          `json:"denied,omitempty"` // what was asked and refused, which ends the turn
	Message   string          `json:"message,omitempty"`
	Spent     providers.Usage `json:"spent"` // by the results of this turn
	Running   providers.Usage `json:"running"`
	Trouble   string          `json:"trouble,omitempty"` // what the agent goes on after
	Fault     string          `json:"fault,omitempty"`   // what it calls the last error
	Failure   *providers.End  `json:"failure,omitempty"` // why we had it break off
	Result    *providers.End  `json:"result,omitempty"`  // how it ended, unless more of it comes
	End       *providers.End  `json:"end,omitempty"`
}

// fold drives one conversation, a turn after the other.
type fold struct {
	providers.Alone
	wire.Maker
	state
}

// message is a line of the protocol, of any kind.
type message struct {
	Type, Subtype word
	UUID          ident
	Parent        ident `json:"parent_tool_use_id"` // the call that has started the agent that this is of
	RequestID     ident `json:"request_id"`
	Request       json.RawMessage
	Response      json.RawMessage
	Message       json.RawMessage
	Event         piece
	Replay        bool            `json:"isReplay"`
	Outcome       json.RawMessage `json:"tool_use_result"`
	Fault         word            `json:"error"`
	Faulty        bool            `json:"is_api_error_message"`
	Command       ident           `json:"command_uuid"`
	State         word
}

// State is the state as JSON.
func (f *fold) State() json.RawMessage { return wire.Encode(f.state) }

// About is what is known by now.
func (f *fold) About() providers.About {
	a := providers.About{
		Model: f.Model, Version: f.Version, Message: f.Message, Ready: f.Ready, Prompt: f.Prompt, Confirmed: f.Confirmed,
		Begun: f.Begun, Usage: plus(f.Spent, f.Running), Open: len(f.Calls) + f.helpers(), Log: f.Log, Trouble: f.Trouble, End: f.end(),
	}
	if f.Ready {
		a.Conversation = f.Session
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
		f.Log = wire.Log(f.Log, c.Data)
		return nil, nil
	}
	var m message
	if !read(c.Data, &m) {
		return nil, nil
	}
	frames := f.Made(fmt.Sprint(c.Offset), 0, func() { f.take(m, c.Data) })
	return f.Told(), frames
}

func (f *fold) take(m message, line []byte) {
	switch m.Type {
	case "control_response":
		f.answered(m.Response)
	case "control_request":
		f.asked(m)
	case "control_cancel_request":
		f.lapsed(func(p pending) bool { return p.Request == string(m.RequestID) })
	case "stream_event":
		f.streamed(m)
	case "assistant":
		f.said(m)
	case "user":
		f.heard(m)
	case "system":
		f.system(string(m.Subtype), line)
	case "command_lifecycle":
		f.fate(m)
	case "result":
		f.result(line)
	}
}

// system is what the agent tells of itself.
func (f *fold) system(kind string, line []byte) {
	switch kind {
	case "init":
		f.begins(line)
	case "session_state_changed":
		f.changed(line)
	case "api_retry":
		f.retries(line)
	case "background_tasks_changed":
		f.background(line)
	case "task_notification":
		f.notified(line)
	case "model_fallback", "informational":
		f.informed(line)
	}
}

// ordered is the operation that is made for an order and answers no line of the agent's.
func (f *fold) ordered(name string) string { return wire.Ordered(f.Order.Turn, name) }

// call makes a request, under an id that no other has.
func (f *fold) call(what string, request map[string]any) (id string) {
	id = what + "/" + f.Next()
	f.Send(map[string]any{"type": "control_request", "request_id": id, "request": request})
	return id
}
