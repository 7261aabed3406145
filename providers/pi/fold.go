package pi

import (
	"encoding/json"
	"fmt"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

type (
	ident = wire.Ident
	word  = wire.Word
)

// state is all that the fold knows.
type state struct {
	Order   providers.Order `json:"order"`
	Waiting string          `json:"waiting,omitempty"` // for the answer to which of our requests: it decides how it goes on
	Ready   bool            `json:"ready,omitempty"`   // the conversation stands
	Gated   bool            `json:"gated,omitempty"`   // the agent asks before it uses a tool
	Model   string          `json:"model,omitempty"`
	Session string          `json:"session,omitempty"` // the conversation's id
	Busy    bool            `json:"busy,omitempty"`    // a run is under way, of ours or of an extension's
	Own     bool            `json:"own,omitempty"`     // it is an extension's
	Said    int             `json:"said,omitempty"`    // so many messages of the model's, each of which has a name by it
	Spoken  bool            `json:"spoken,omitempty"`  // the last of them was told in pieces
	newest

	Calls   []call    `json:"calls,omitempty"`
	Pending []pending `json:"pending,omitempty"`
	Steers  []steer   `json:"steers,omitempty"`
	Asked   int       `json:"asked,omitempty"` // so many permissions, so that each has a name of its own
	Log     string    `json:"log,omitempty"`   // the end of standard error
}

// newest is what is known of the newest turn. The next one begins without any of it.
type newest struct {
	Prompt    string          `json:"prompt,omitempty"`    // the operation of the frame that has it
	Sum       string          `json:"sum,omitempty"`       // of it; "" if a template may make another text of it
	Taken     string          `json:"taken,omitempty"`     // what the agent has answered to it
	Confirmed bool            `json:"confirmed,omitempty"` // it is in the conversation
	Begun     bool            `json:"begun,omitempty"`
	Stop      bool            `json:"stop,omitempty"`   // an interrupt is wanted
	Stops     int             `json:"stops,omitempty"`  // frames that Interrupt has made
	Denied    string          `json:"denied,omitempty"` // what was asked and refused, which ends the turn
	Message   string          `json:"message,omitempty"`
	Spent     providers.Usage `json:"spent"`
	Trouble   string          `json:"trouble,omitempty"` // what the agent goes on after
	Last      *providers.End  `json:"last,omitempty"`    // how the model's last message has ended
	Failure   *providers.End  `json:"failure,omitempty"` // why we had it break off
	Settled   *providers.End  `json:"settled,omitempty"` // how the run ended, while it is not known what became of messages put into it
	End       *providers.End  `json:"end,omitempty"`
}

// fold drives one conversation, a turn after the other.
type fold struct {
	providers.Alone
	wire.Maker
	state
}

// record is a line of the protocol, of any kind.
type record struct {
	Type    word
	ID      ident
	Success bool
	Error   word
	Data    json.RawMessage
	Aborted bool

	Message json.RawMessage
	Piece   piece `json:"assistantMessageEvent"`
	use
	retry
}

// State is the state as JSON.
func (f *fold) State() json.RawMessage { return wire.Encode(f.state) }

// About is what is known by now.
func (f *fold) About() providers.About {
	a := providers.About{
		Model: f.Model, Message: f.Message, Ready: f.Ready, Prompt: f.Prompt, Confirmed: f.Confirmed, Begun: f.Begun,
		Usage: f.Spent, Open: len(f.Calls), Log: f.Log, Trouble: f.Trouble, End: f.end(),
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
	var r record
	if !wire.Read(c.Data, &r) {
		return nil, nil
	}
	frames := f.Made(fmt.Sprint(c.Offset), 0, func() { f.take(r, c.Data) })
	return f.Told(), frames
}

func (f *fold) take(r record, line []byte) {
	switch r.Type {
	case "response":
		f.answered(r)
	case "message_update":
		f.streamed(r.Piece)
	case "message_start", "message_end":
		f.message(r)
	case "tool_execution_start":
		f.opens(r.use)
	case "tool_execution_update":
		f.goesOn(r.use)
	case "tool_execution_end":
		f.closes(r.use)
	case "extension_ui_request":
		f.asked(line)
	case "agent_start":
		f.starts()
	case "agent_settled":
		f.settled(r.Aborted)
	default:
		f.troubled(r)
	}
}

// ordered is the operation that is made for an order and answers no line of the agent's.
func (f *fold) ordered(name string) string { return wire.Ordered(f.Order.Turn, name) }

// call makes a request, under an id. One whose answer counts has the turn's name in it: no other turn takes it for its own.
func (f *fold) call(what, id string, more map[string]any) {
	request := map[string]any{"id": id, "type": what}
	for name, value := range more {
		request[name] = value
	}
	f.Send(request)
}

// await makes a request whose answer decides how it goes on.
func (f *fold) await(what string) {
	f.Waiting = what + "/" + f.Order.Turn
	f.call(what, f.Waiting, nil)
}
