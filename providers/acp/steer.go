package acp

import (
	"encoding/json"
	"slices"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// steer is a message that was put into a turn, by an extension that some agents have. Such an agent answers at once whether it
// has it ("injected") or no turn runs. What it has it takes in before the turn ends as completed; what a cancel comes before it
// forgets, and does not say so.
type steer struct {
	wire.Steer
	Request string `json:"request,omitempty"` // of ours that has it
	Has     bool   `json:"has,omitempty"`     // the agent has it
	Over    bool   `json:"over,omitempty"`    // its turn was broken off: what became of it is not told any more
}

// Steer puts a message into the turn that runs. One that comes before the prompt was given is held until then.
func (f *fold) Steer(op, text string) ([]providers.Frame, bool) {
	if slices.ContainsFunc(f.Steers, func(s steer) bool { return s.Op == op }) {
		return nil, true
	}
	if !f.steerable() || op == "" || wire.Clip(op, wire.IDLimit) != op || !f.room(len(text)) {
		return nil, false
	}
	f.Steers = append(f.Steers, steer{Steer: wire.Holds(op, text)})
	return f.Made(wire.Ordered(f.Order.Turn, "steer."+op), 0, f.steer), true
}

// steerable says that there is a turn that will not have ended soon, of an agent that takes messages into it. That something is
// asked is no hindrance: the message is taken in behind the answer.
func (f *fold) steerable() bool {
	can, under := f.agent.steers && (f.Takes || !f.Greeted), f.Waiting != ""
	return can && under && !f.Order.Open && !f.Stop && f.Denied == "" && f.End == nil
}

// room forgets the oldest message of which all is known, if there are too many.
func (f *fold) room(size int) (ok bool) {
	f.Steers, ok = wire.Room(f.Steers, size, func(s steer) int { return len(s.Text) }, func(s steer) bool { return s.Settled() || s.Over })
	return ok
}

// steer gives what is held, once the prompt was given. Without a turn the agent is to begin none of its own.
func (f *fold) steer() {
	if f.Prompt == "" || !f.steerable() {
		return
	}
	for i := range f.Steers {
		if s := &f.Steers[i]; s.State == providers.Held {
			s.State, s.Frame, s.Request = providers.Sent, f.Next(), "steer/"+s.Op
			f.Send(map[string]any{"jsonrpc": "2.0", "id": s.Request, "method": "_session/steering", "params": map[string]any{
				"sessionId": f.Session, "prompt": prompt(s.Text), "_meta": map[string]any{"steering": map[string]string{"idleBehavior": "promptRequired"}},
			}})
			s.Text = ""
		}
	}
}

// steering is the message that a request of ours has; nil if it has none.
func (f *fold) steering(request string) *steer {
	i := slices.IndexFunc(f.Steers, func(s steer) bool { return request != "" && s.Request == request })
	if i < 0 {
		return nil
	}
	return &f.Steers[i]
}

// taken is the agent's answer to a message.
func (s *steer) taken(result json.RawMessage) {
	var r struct{ Outcome string }
	_ = json.Unmarshal(result, &r)
	switch {
	case s.Settled():
	case r.Outcome == "injected":
		s.Has = true
	case r.Outcome == "startedNewTurn":
		s.State = providers.Confirmed // though in no turn of ours
	default:
		s.Refuse("the turn had ended")
	}
}

// unsteered is for what the turn's end decides. Of one that was broken off it is not known what it had taken in.
func (f *fold) unsteered(completed bool) {
	for i := range f.Steers {
		s := &f.Steers[i]
		switch {
		case s.State == providers.Held:
			s.Refuse("the turn ended before it could be given")
		case s.State != providers.Sent || s.Over:
		case !completed:
			s.Over = true
		case s.Has:
			s.State = providers.Confirmed
		}
	}
}

// unanswered says that the agent has completed the turn, and is about to say that a message came too late for it.
func (f *fold) unanswered() bool {
	waits := func(s steer) bool { return s.State == providers.Sent && !s.Has && !s.Over }
	return f.End != nil && f.End.Outcome == session.Completed && slices.ContainsFunc(f.Steers, waits)
}
