package claude

import (
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// steer is a message that was put into a turn. The agent takes it in between two requests to the model and says it again
// then; what comes too late for that it answers in a turn right behind, which is a part of ours.
type steer struct {
	wire.Steer
	UUID string `json:"uuid"`
}

// Steer puts a message into the turn that runs. One that comes before the agent works on the prompt is held until then.
func (f *fold) Steer(op, text string) ([]providers.Frame, bool) {
	if slices.ContainsFunc(f.Steers, func(s steer) bool { return s.Op == op }) {
		return nil, true
	}
	if !f.steerable() || op == "" || wire.Clip(op, wire.IDLimit) != op || !f.room(len(text)) {
		return nil, false
	}
	s := steer{Steer: wire.Holds(op, text)}
	s.UUID = wire.UUID("steer", f.Order.Process, f.Order.Turn, op)
	f.Steers = append(f.Steers, s)
	return f.Made(f.ordered("steer."+op), 0, f.steer), true
}

// steerable says that there is a turn that will not have ended soon. That something is asked is no hindrance: the message
// is taken in behind the answer.
func (f *fold) steerable() bool {
	under := f.Waiting != "" || f.Ready
	return under && f.Order.Turn != "" && !f.Order.Open && !f.Stop && f.Denied == "" && f.Failure == nil && f.End == nil
}

// room forgets the oldest message of which all is known, if there are too many.
func (f *fold) room(size int) (ok bool) {
	f.Steers, ok = wire.Room(f.Steers, size, func(s steer) int { return len(s.Text) }, func(s steer) bool { return s.Settled() })
	return ok
}

// steer gives what is held, once the agent works on the prompt.
func (f *fold) steer() {
	if !f.Confirmed || !f.steerable() {
		return
	}
	for i := range f.Steers {
		if s := &f.Steers[i]; s.State == providers.Held {
			s.State, s.Frame = providers.Sent, f.Next()
			f.say(s.UUID, s.Text)
			s.Text = ""
		}
	}
}

// unread says that the agent was given a message, and has not said what became of it.
func (f *fold) unread() bool {
	return slices.ContainsFunc(f.Steers, func(s steer) bool { return s.State == providers.Sent })
}

// confirmed is that a message is in the conversation.
func (f *fold) confirmed(id string) {
	for i := range f.Steers {
		if s := &f.Steers[i]; s.UUID == id && s.State == providers.Sent {
			s.State = providers.Confirmed
		}
	}
}

// unheard is that one will not be.
func (f *fold) unheard(id, how string) {
	for i := range f.Steers {
		if s := &f.Steers[i]; s.UUID == id {
			s.Refuse("Claude Code " + how + " it")
		}
	}
	f.over()
}

// unsteered is for what has not been taken in by the turn's end, which comes before that only if the turn was broken off.
func (f *fold) unsteered() {
	for i := range f.Steers {
		f.Steers[i].Refuse("the turn ended before Claude Code took it in")
	}
}
