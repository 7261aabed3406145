package wire

import (
	"slices"

	"github.com/pintle/pintle/providers"
)

// Bounds of what is kept of messages that are put into turns.
const (
	SteersKept = 64      // so many are known by their names
	HeldLimit  = 4 << 20 // bytes of all that are held
)

// Steer is a message that was put into a turn. What more an agent's protocol needs of it stands beside it.
type Steer struct {
	providers.Steered
	Text string `json:"text,omitempty"` // while it is held
}

// Holds is a message that is held: the agent is not given it yet.
func Holds(op, text string) Steer {
	return Steer{providers.Steered{Op: op, State: providers.Held}, text}
}

// Settled says that all is known of it.
func (s *Steer) Settled() bool {
	return s.State == providers.Confirmed || s.State == providers.Refused
}

// Refuse settles it, unless more is known by now.
func (s *Steer) Refuse(why string) {
	if !s.Settled() {
		s.State, s.Reason, s.Text = providers.Refused, Clip(why, WordsLimit), ""
	}
}

// Room has room for one more message of so many bytes: the oldest that is over goes, if there are too many. ok is false if there
// is none, and then nothing has changed. size is how many bytes of a message are held.
func Room[S any](all []S, more int, size func(S) int, over func(S) bool) (rest []S, ok bool) {
	for _, s := range all {
		more += size(s)
	}
	if more > HeldLimit {
		return all, false
	}
	if len(all) < SteersKept {
		return all, true
	}
	i := slices.IndexFunc(all, over)
	if i < 0 {
		return all, false
	}
	return slices.Delete(all, i, i+1), true
}
