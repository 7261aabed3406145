package claude

import (
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// steer is a message that was put into a turn. The agent takes it in between two requests to the model and says it again
// then; what comes too late for that it answers in a turn right behind, which is a part of ours.
type steer struct {
	providers.Steered
	Text string `json:"text,omitempty"` // while it is held
	UUID string `json:"uuid"`
}

// steersKept is how many are known by their names.
const steersKept = 64

// Steer puts a message into the turn that runs. One that comes before the agent works on the prompt is held until then.
func (f *fold) Steer(op, text string) ([]providers.Frame, bool) {
	if slices.ContainsFunc(f.Steers, func(s steer) bool { return s.Op == op }) {
		return nil, true
	}
	if !f.steerable() || op == "" || wire.Clip(op, wire.IDLimit) != op || !f.room(len(text)) {
		return nil, false
	}
	s := steer{Steered: providers.Steered{Op: op, State: providers.Held}, Text: text}
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
func (f *fold) room(size int) bool {
	for _, s := range f.Steers {
		size += len(s.Text)
	}
	if size > heldLimit {
		return false
	}
	if len(f.Steers) < steersKept {
		return true
	}
	i := slices.IndexFunc(f.Steers, steer.settled)
	if i >= 0 {
		f.Steers = slices.Delete(f.Steers, i, i+1)
	}
	return i >= 0
}

func (s steer) settled() bool {
	return s.State == providers.Confirmed || s.State == providers.Refused
}

// refuse settles it, unless more is known by now.
func (s *steer) refuse(why string) {
	if !s.settled() {
		s.State, s.Reason, s.Text = providers.Refused, wire.Clip(why, wire.WordsLimit), ""
	}
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
			s.refuse("Claude Code " + how + " it")
		}
	}
	f.over()
}

// unsteered is for what has not been taken in by the turn's end, which comes before that only if the turn was broken off.
func (f *fold) unsteered() {
	for i := range f.Steers {
		f.Steers[i].refuse("the turn ended before Claude Code took it in")
	}
}
