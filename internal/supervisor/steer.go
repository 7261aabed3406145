package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A message that steers is put into the turn of another execution, its host. It is an execution all the same, without a turn
// of its own: it ends once it is in the conversation, or is not and will not be. The host's fold has it on disk before the
// agent hears of it, under the message's folder as its name, so that it is put in once; and what became of it is in the
// journal before the host's turn has ended there. So after any death one of three holds: the journal tells its fate; the
// host's fold has it, and will tell; or neither, and it was never put in.

// steered is the event that tells the fate of a message that was put into a turn.
const steered = "message_steered"

// steering is a message on its way into the turn of a run.
type steering struct {
	folder, text string
	fate         chan providers.Steered // of capacity 1: how it is, the newest
}

// fate is what the journal has of it.
type fate struct {
	Message string               `json:"message"` // its folder
	State   providers.SteerState `json:"state"`
	Reason  string               `json:"reason,omitempty"`
}

// joinIn has the message be one of its session, without a place in the queue.
func (r *run) joinIn() error {
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if s.Version == 0 {
			return fmt.Errorf("session %s: %w", r.st.Session, fs.ErrNotExist)
		}
		return r.admit(s)
	})
}

// steer puts the run's message into the turn that runs.
func (r *run) steer(ctx context.Context) (bool, error) {
	f, told, err := r.fate()
	if err != nil || told {
		return r.settleSteered(f, err)
	}
	host, err := r.host()
	if err != nil {
		return false, err
	}
	if host == nil {
		f, told, err := r.fate() // it may have ended since
		if !told {
			f = fate{State: providers.Refused, Reason: "no turn runs that it could be put into"}
		}
		return r.settleSteered(f, err)
	}
	heard := make(chan providers.Steered, 1)
	select {
	case host.steers <- steering{r.folder, r.spec.Payload.Prompt, heard}:
	case <-host.done:
		return false, nil
	case <-time.After(retryDelay):
		return false, nil // it is between two steps
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for {
		select {
		case now := <-heard:
			if now.State == providers.Sent {
				r.handOverSteered()
			}
			if now.State == providers.Confirmed || now.State == providers.Refused {
				return r.settleSteered(fate{State: now.State, Reason: now.Reason}, nil)
			}
		case <-host.done:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// host is the run whose turn it is, nil if it is nobody's.
func (r *run) host() (*run, error) {
	folder, err := r.s.turnOf(r.st.Session)
	if err != nil || folder == "" {
		return nil, err
	}
	return r.s.ensure(folder), nil
}

func (r *run) handOverSteered() {
	now := time.Now().UTC()
	r.note(handedOver, &now)
}

// fate is what the journal has of the run's message.
func (r *run) fate() (f fate, told bool, err error) {
	reader := journal.NewReader(r.s.dir.Path(record.JournalDir(r.st.Session)), r.st.Since)
	defer reader.Close()
	for {
		events, err := reader.Next()
		if err != nil || len(events) == 0 {
			return f, told, err
		}
		for _, e := range events {
			var it fate
			if e.Type == steered && json.Unmarshal(e.Data, &it) == nil && it.Message == r.folder {
				f, told = it, true
			}
		}
	}
}

// settleSteered ends the run as its message fared.
func (r *run) settleSteered(f fate, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	now := time.Now().UTC()
	switch f.State {
	case providers.Confirmed:
		r.note(handedOver, &now)
		r.note(confirmed, &now)
		return r.settleUnstarted(session.Ending{Proven: true}, nil)
	case providers.Sent:
		r.note(handedOver, &now)
		return r.settleUnstarted(session.Ending{Began: true}, cause("agent_exited", "the agent left before it named the message: it may have it"))
	}
	return r.settleUnstarted(session.Ending{}, cause(string(api.CodeSteer), f.Reason))
}

// hearSteering puts a message into this run's turn.
func (r *run) hearSteering(m steering) error {
	r.heeds[m.folder] = m.fate
	known := slices.ContainsFunc(r.rt.about().Steered, func(s providers.Steered) bool { return s.Op == m.folder })
	if known {
		return nil
	}
	taken := false
	err := r.rt.act(func(a providers.Agent) []providers.Frame {
		frames, ok := a.Steer(m.folder, m.text)
		taken = ok
		return frames
	})
	crash.At("supervisor.steered")
	if err == nil && !taken {
		r.tell(m.folder, providers.Steered{Op: m.folder, State: providers.Refused, Reason: "the turn takes no message now"})
	}
	return err
}

// tell tells a message's run how that is.
func (r *run) tell(folder string, s providers.Steered) {
	to, ok := r.heeds[folder]
	if !ok {
		return
	}
	select {
	case to <- s:
	default: // the one before was not heard: the newest counts, and an end is the last
		select {
		case was := <-to:
			_ = was
		default:
		}
		to <- s
	}
}

// fates puts what has become of messages into the journal, once each. At the end of the turn, or of the agent, what was given
// to it and not confirmed is unknown.
func (r *run) fates(over bool) error {
	var events []journal.Event
	var told []providers.Steered
	for _, s := range r.rt.about().Steered {
		if r.fated[s.Op] || r.settledBefore(s.Op) {
			continue
		}
		if s.State == providers.Sent && slices.ContainsFunc(r.rt.outbox, func(f providers.Frame) bool { return f.Op == s.Frame }) {
			s.State = providers.Held // made, and not written yet
		}
		final := s.State == providers.Confirmed || s.State == providers.Refused
		if over && s.State == providers.Held {
			s.State, s.Reason, final = providers.Refused, "the turn ended before it was given", true
		}
		if final || over {
			events = append(events, r.fateEvents(s)...)
			told = append(told, s)
			continue
		}
		r.tell(s.Op, s)
	}
	if len(events) == 0 {
		return nil
	}
	if err := r.rt.note(true, events...); err != nil {
		return err
	}
	for _, s := range told {
		r.fated[s.Op] = true
		r.tell(s.Op, s)
	}
	return nil
}

// settledBefore reports whether a message's run has ended, so that its fate was told: in an earlier turn of the same process,
// say.
func (r *run) settledBefore(message string) bool {
	open, err := r.s.unended(message)
	r.fated[message] = !open && err == nil
	return r.fated[message]
}

// fateEvents tell one message's fate; one that is in the conversation is a part of what was said.
func (r *run) fateEvents(s providers.Steered) (events []journal.Event) {
	if spec, err := record.SpecOf(r.s.dir, s.Op); err == nil && s.State == providers.Confirmed {
		content := map[string]string{"type": "text", "text": r.rt.mask.Text(spec.Payload.Prompt)}
		// Its id keeps it apart from a prompt right before it, which has none.
		events = append(events, event("user_message_chunk", map[string]any{"content": content, "messageId": spec.ID}))
	}
	data, _ := json.Marshal(fate{Message: s.Op, State: s.State, Reason: s.Reason}) // strings: cannot fail
	return append(events, journal.Event{Type: steered, Data: data})
}
