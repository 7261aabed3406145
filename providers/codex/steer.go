package codex

import (
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// steer is a message that was put into a turn. The server takes it in when it next asks the model, or breaks off for it
// what the model is saying; it says so by telling it as the user's, under the name that we gave it, and does so before the
// end of the turn. What an interrupt comes before it forgets, though it has answered that it has it.
type steer struct {
	wire.Steer
	Request  string `json:"request,omitempty"` // the id of ours that has it
	Turn     string `json:"turn,omitempty"`
	Answered bool   `json:"answered,omitempty"` // the server has it
	Over     bool   `json:"over,omitempty"`     // the turn has ended
}

// Steer puts a message into the turn that runs. One that comes before the turn has started is held until then.
func (f *fold) Steer(op, text string) ([]providers.Frame, bool) {
	if slices.ContainsFunc(f.Steers, func(s steer) bool { return s.Op == op }) {
		return nil, true
	}
	if !f.steerable() || op == "" || clip(op, idLimit) != op || !f.room(len(text)) {
		return nil, false
	}
	f.Steers = append(f.Steers, steer{Steer: wire.Holds(op, text)})
	return f.made(f.ordered("steer."+op), 0, f.steer), true
}

// steerable says that there is a turn that will not have ended soon. That something is asked is no hindrance: the message
// is taken in behind the answer.
func (f *fold) steerable() bool {
	under := f.Waiting != "" || f.Prompt != ""
	return under && !f.Order.Open && !f.Stop && !f.Leaves && f.Denied == "" && f.End == nil
}

// room forgets the oldest message of which all is known, if there are too many.
func (f *fold) room(size int) (ok bool) {
	f.Steers, ok = wire.Room(f.Steers, size, func(s steer) int { return len(s.Text) }, func(s steer) bool { return s.Settled() })
	return ok
}

// steer gives what is held, once the turn has started.
func (f *fold) steer() {
	if !f.Started || !f.steerable() {
		return
	}
	for i := range f.Steers {
		if s := &f.Steers[i]; s.State == providers.Held {
			s.State, s.Frame, s.Turn, s.Request = providers.Sent, f.next(), f.Turn, f.request("steer."+s.Op)
			f.call(s.Request, "turn/steer", map[string]any{
				"threadId": f.Thread, "expectedTurnId": f.Turn, "clientUserMessageId": s.Op, "input": input(s.Text),
			})
			s.Text = ""
		}
	}
}

// input is a text as the server takes it.
func input(text string) []any {
	return []any{map[string]any{"type": "text", "text": text, "text_elements": []any{}}}
}

// steering is the message that a request of ours has; nil if it has none.
func (f *fold) steering(request string) *steer {
	i := slices.IndexFunc(f.Steers, func(s steer) bool { return request != "" && s.Request == request })
	if i < 0 {
		return nil
	}
	return &f.Steers[i]
}

// taken is that the server has it. Behind the turn's end that is of no use: it would have been told before.
func (s *steer) taken() {
	s.Answered = true
	if s.Over {
		s.Refuse(overBefore)
	}
}

const overBefore = "the turn ended before codex took it in"

// confirmed is that it is in the conversation.
func (f *fold) confirmed(op string) {
	for i := range f.Steers {
		if s := &f.Steers[i]; s.Op == op && s.State == providers.Sent {
			s.State = providers.Confirmed
		}
	}
}

// unsteered is for what a turn has not taken in by its end. What it has not answered it will yet.
func (f *fold) unsteered(turn string) {
	for i := range f.Steers {
		s := &f.Steers[i]
		if s.State != providers.Sent || s.Turn != turn {
			continue
		}
		s.Over = true
		if s.Answered {
			s.Refuse(overBefore)
		}
	}
}

// unheld is for what was never given.
func (f *fold) unheld() {
	for i := range f.Steers {
		if f.Steers[i].State == providers.Held {
			f.Steers[i].Refuse("the turn ended before it could be given")
		}
	}
}
