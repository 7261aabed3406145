package pi

import (
	"slices"
	"strings"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// steer is a message that was put into a turn. pi has it in a queue until it asks the model again, and tells it as the user's
// once it has taken it in.
type steer struct {
	wire.Steer
	Sum      string `json:"sum"`                // of the text: by that it is known
	Slash    bool   `json:"slash,omitempty"`    // a template may make another text of it
	Request  string `json:"request,omitempty"`  // the id of ours that has it
	Answered bool   `json:"answered,omitempty"` // it is in the queue, if it is not in the conversation
}

// Steer puts a message into the turn that runs. One that comes before the agent works on the prompt is held until then.
func (f *fold) Steer(op, text string) ([]providers.Frame, bool) {
	if slices.ContainsFunc(f.Steers, func(s steer) bool { return s.Op == op }) {
		return nil, true
	}
	if !f.steerable() || op == "" || wire.Clip(op, wire.IDLimit) != op || !f.room(len(text)) {
		return nil, false
	}
	f.Steers = append(f.Steers, steer{
		Steer: wire.Holds(op, text), Sum: wire.Sum(16, text), Slash: strings.HasPrefix(text, "/"),
	})
	return f.Made(f.ordered("steer."+op), 0, f.steer), true
}

// steerable says that there is a turn that will not have ended soon. That something is asked is no hindrance: the message is
// taken in behind the answer.
func (f *fold) steerable() bool {
	under := f.Waiting != "" || f.Ready
	over := f.breaking() || f.Settled != nil || f.End != nil
	return under && !over && f.Order.Turn != "" && !f.Order.Open
}

// room forgets the oldest message of which all is known, if there are too many.
func (f *fold) room(size int) (ok bool) {
	f.Steers, ok = wire.Room(f.Steers, size, func(s steer) int { return len(s.Text) }, func(s steer) bool { return s.Settled() })
	return ok
}

// steer gives what is held, once the prompt is in the conversation.
func (f *fold) steer() {
	if !f.Confirmed || !f.steerable() {
		return
	}
	for i := range f.Steers {
		if s := &f.Steers[i]; s.State == providers.Held {
			s.State, s.Frame = providers.Sent, f.Next()
			s.Request = "steer/" + f.ordered(s.Op)
			f.call("steer", s.Request, map[string]any{"message": s.Text})
			s.Text = ""
		}
	}
}

// steerAnswered takes in what became of one when it was given.
func (f *fold) steerAnswered(r record) {
	i := slices.IndexFunc(f.Steers, func(s steer) bool { return s.Request != "" && s.Request == string(r.ID) })
	if i < 0 {
		return
	}
	var d struct{ Disposition word }
	_ = wire.Read(r.Data, &d)
	switch s := &f.Steers[i]; {
	case !r.Success:
		s.Refuse("pi did not take it: " + string(r.Error))
	case d.Disposition == handled:
		s.Refuse("an extension of pi's took it")
	default:
		s.Answered = true
	}
	f.over()
}

// confirmed is that a message is in the conversation, and with that one that was put into the turn, if it is one.
func (f *fold) confirmed(text string) {
	sum := wire.Sum(16, text)
	i := slices.IndexFunc(f.Steers, func(s steer) bool { return s.State == providers.Sent && s.Sum == sum })
	if i < 0 {
		i = slices.IndexFunc(f.Steers, func(s steer) bool { return s.State == providers.Sent && s.Slash })
	}
	if i >= 0 {
		f.Steers[i].State = providers.Confirmed
	}
}

// unanswered says that the agent may not have come to a message yet.
func (f *fold) unanswered() bool {
	return slices.ContainsFunc(f.Steers, func(s steer) bool { return s.State == providers.Sent && !s.Answered })
}

// unread says that the agent has a message, and has not taken it in.
func (f *fold) unread() bool {
	return slices.ContainsFunc(f.Steers, func(s steer) bool { return s.State == providers.Sent })
}

// unsteered is for what is not taken in any more.
func (f *fold) unsteered() {
	for i := range f.Steers {
		f.Steers[i].Refuse("the turn ended before pi took it in")
	}
}
