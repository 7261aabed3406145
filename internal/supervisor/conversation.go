package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// The executions of one session have their turns one after the other, in the order in which they were taken up. That
// order is in session.json, so no crash changes it: an agent that is given a prompt while a turn runs would take it for
// a part of that turn.

// spoken reports whether the run's agent is one that is spoken to.
func (r *run) spoken() bool { return r.provider().Stdin }

// enqueue puts the execution at the end of its session's queue, if it is not in it.
func (r *run) enqueue() error {
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if s.Version == 0 {
			return fmt.Errorf("session %s: %w", r.st.Session, fs.ErrNotExist)
		}
		if err := r.admit(s); err != nil {
			return err
		}
		s.Enqueue(r.place(), r.s.vacant)
		return nil
	})
}

// place is ours in the queue.
func (r *run) place() record.Turn {
	return record.Turn{Folder: r.folder, At: r.spec.Desired.At, Next: r.spec.When == whenInterrupt}
}

// goesOn reports whether the session was there before this try: then others may be before it in the queue, an agent's
// process may wait for it, and the conversation goes on.
func (r *run) goesOn() (bool, error) {
	if !r.spoken() {
		return false, nil
	}
	_, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ahead is the folder of the execution whose turn comes before ours, "" when it is ours.
func (r *run) ahead() (string, error) {
	s, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(s.Queue, func(t record.Turn) bool { return t.Folder == r.folder }) {
		if err := r.enqueue(); err != nil {
			return "", err
		}
		s.Enqueue(r.place(), r.s.vacant)
	}
	for _, t := range s.Queue {
		if t.Folder == r.folder {
			return "", nil
		}
		if open, err := r.s.unended(t.Folder); open || (err != nil && !errors.Is(err, fs.ErrNotExist)) {
			return t.Folder, nil // also one that cannot be read: nobody knows what goes on
		}
	}
	return "", nil
}

// itsTurn waits a while if it is another's. Its end wakes us.
func (r *run) itsTurn(ctx context.Context) (bool, error) {
	ahead, err := r.ahead()
	if err != nil || ahead == "" {
		return err == nil, err
	}
	if err := r.replace(ctx, ahead); err != nil {
		return false, err
	}
	w := r.behind(ahead)
	if r.st.Phase == string(session.Queued) && (r.st.WaitingFor == nil || !slices.Equal(r.st.WaitingFor.Names, w.Names)) {
		r.st.WaitingFor = w
		if err := r.save(session.Queued); err != nil {
			return false, err
		}
	}
	r.s.slots.standBehind(r.place(), ahead, r.wake)
	r.wait(w)
	r.pause(ctx, min(time.Minute, r.left()))
	r.wait(nil)
	return false, nil
}

// replace has the turn end that the run comes in place of. Which one that is was on record before anything was done to it,
// and the wish is recorded once: however often this is repeated, no other turn is interrupted.
func (r *run) replace(ctx context.Context, ahead string) error {
	if r.st.Replaces != ahead {
		return nil
	}
	_, err := record.Cancel(ctx, r.s.dir, ahead, api.Cancel{Action: "interrupt", Reason: "a message in its place", RequestedAt: time.Now().UTC()})
	r.s.ensure(ahead).wake()
	return err
}

// comeOn has the run have its turn, if it is that: with the process that is kept for it, or with another one that it may
// start now.
func (r *run) comeOn(ctx context.Context, env environ.Environment) (kept *runtime, mine bool, err error) {
	if mine, err := r.itsTurn(ctx); !mine {
		return nil, false, err
	}
	if mine, err := r.admitted(ctx); !mine {
		return nil, false, err
	}
	kept, err = r.takeKept(ctx, env)
	switch {
	case errors.Is(err, errWanted):
		return nil, false, nil
	case err != nil || kept != nil:
		return kept, err == nil, err
	}
	if parked, err := r.barred(ctx); parked || err != nil {
		return nil, false, err
	}
	err = r.reserve()
	return nil, err == nil, err
}

// barred waits a while if nothing may start the session's agent but recover: what was stored before that was so stays stored.
func (r *run) barred(ctx context.Context) (bool, error) {
	sess, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	if err != nil {
		return false, err
	}
	ok, why := sess.Restart.MayStart()
	if ok {
		return false, nil
	}
	r.s.slots.withdraw(r.folder)
	r.wait(&api.WaitingFor{Kind: string(api.CodeCrashLooping), Names: []string{sess.ID}, Detail: why})
	r.pause(ctx, min(time.Minute, r.left()))
	r.wait(nil)
	return true, nil
}

// behind says whose turn is waited for.
func (r *run) behind(ahead string) *api.WaitingFor {
	name := ahead
	if spec, err := record.SpecOf(r.s.dir, ahead); err == nil {
		name = spec.ID
	}
	return &api.WaitingFor{Kind: "session", Names: []string{name}}
}

// reserve raises the session's fence for another process of the agent (F1), and gives that an id.
func (r *run) reserve() error {
	err := state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		s.Fence = max(s.Fence+1, r.st.Fence)
		s.Restart = s.Restart.Started(time.Now().UTC())
		r.st.Fence = s.Fence
		return nil
	})
	if err != nil {
		return err
	}
	unused := r.st.RuntimeID
	if r.anothers() {
		unused = ""
	}
	r.st.RuntimeID, r.st.WaitingFor = newID("x"), nil
	phase := session.Phase(r.st.Phase)
	if phase != session.Running && phase != session.Workspace { // it may have been about to have a process that was kept
		phase = session.Claimed
	}
	if err := r.save(phase); err != nil || unused == "" {
		return err
	}
	return r.s.dropRuntime(unused) // a death came while it was prepared
}

// leaveSession leaves the session's queue, and notes the conversation if it is one by now.
func (r *run) leaveSession(about providers.About) error {
	if !r.spoken() {
		return nil
	}
	e, leased, now := r.ending(), r.held(), time.Now().UTC()
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		s.Leave(r.folder, r.s.vacant)
		price(s, about)
		switch {
		case about.Conversation == "":
		case about.Confirmed:
			s.Conversation, s.Opened = about.Conversation, ""
		case r.opens() && about.Ready:
			s.Opened = about.Conversation
		}
		if r.over() {
			e.note(s, leased, now)
			r.dueAt, r.park = s.Restart.NextAt, s.Restart.Parked
		}
		return nil
	})
}

// order is what the agent is told. A try that goes on with what had begun asks for that alone.
func (r *run) order() (providers.Order, error) {
	p := r.spec.Payload
	o := providers.Order{
		Turn:   fmt.Sprintf("%s.%d.%d", r.folder, r.st.Attempt, r.st.Try),
		Prompt: p.Prompt, Cwd: r.st.Cwd, Model: p.Model, Mode: p.Mode, Approve: p.Approve, Conversation: r.st.Resume, Open: r.opens(),
		Policy: r.spec.Policy != nil, Process: r.token(),
	}
	s, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	if o.Priced = s.Priced; r.st.Resume != "" {
		o.Prompt = goOnPrompt
		return o, err
	}
	o.Conversation = cmp.Or(s.Conversation, s.Opened)
	return o, err
}

// price notes what the session's conversation has cost in all: the next process is told.
func price(s *record.Session, about providers.About) {
	if about.Conversation != "" {
		s.Priced = about.Priced
	}
}

// goOnPrompt asks for the rest of a turn in whose middle the agent died or failed (B2).
const goOnPrompt = "The last turn was cut off before it was finished, for a technical reason. Look at what was done by then, and go on from there."
