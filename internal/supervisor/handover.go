package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// Bounds of a process that is kept from run to run (W3).
const (
	maxRuns = 100
	maxAge  = 24 * time.Hour
)

// warms reports whether the agent's process is kept for the session's next run, now that its turn has ended. A run that
// did not complete closes it (W3).
func (r *run) warms() bool {
	about := r.rt.about()
	end := about.End
	if end == nil || r.rt.broken != nil || !r.spoken() {
		return false
	}
	if end.Outcome != session.Completed && r.provider().Habits.Lingers {
		return false // what the turn has begun would go on
	}
	if held := r.held() && fit(about) && !r.stopped(); !held && (r.spec.Limits.Warm <= 0 || end.Outcome != session.Completed || r.wanted()) {
		return false
	}
	t := r.rt.tenure
	return t != nil && t.Runs < maxRuns && time.Since(t.Since) < maxAge
}

// takeKept asks for the process that is kept for the session: nil if there is none, or it was another one than the run
// would make. Then it is gone when this returns; or somebody wants the run to end, and it is looked at anew.
func (r *run) takeKept(ctx context.Context, env environ.Environment) (*runtime, error) {
	k := r.s.keeperOf(r.st.Session)
	if k == nil {
		return nil, nil
	}
	a := ask{next: r, env: env, answer: make(chan *runtime, 1)}
	if given, err := r.untilWanted(ctx, k, k.asks, a); !given || err != nil {
		return nil, err
	}
	rt := <-a.answer
	if rt == nil {
		_, err := r.untilWanted(ctx, k, nil, a)
		return nil, err
	}
	<-k.gone
	r.st.RuntimeID, r.st.Fence, r.st.BootID = k.r.st.RuntimeID, k.r.st.Fence, k.r.st.BootID
	r.st.Runtime, r.shim = k.r.st.Runtime, k.r.shim
	return rt, nil
}

// errWanted is why a run does not wait for a kept process any more: the records say what is wanted of it instead.
var errWanted = errors.New("the run is to end")

// untilWanted hands an ask over, or waits until the keeper has gone.
func (r *run) untilWanted(ctx context.Context, k *keeper, asks chan<- ask, a ask) (given bool, err error) {
	for {
		select {
		case asks <- a:
			return true, nil
		case <-k.gone:
			return false, nil
		case <-r.poked:
			if err := r.reload(); err != nil {
				return false, err
			}
			if r.wanted() {
				return false, errWanted
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// goOn gives the run to a process that was kept for it. The write of fold.json is what makes it the run's: it has the
// order and the tenure in one. Killed before it, the process is still kept; after it, it is the run's that is adopted.
func (r *run) goOn(ctx context.Context, rt *runtime) (bool, error) {
	if err := r.goOnWith(ctx, rt); err != nil {
		rt.release()
		r.rt = nil
		r.giveBack()
		return false, fmt.Errorf("go on with runtime %s: %w", r.st.RuntimeID, err)
	}
	_ = rt.control.Deadline(r.spec.Desired.Deadline)
	rt.flush()
	return r.attend(ctx)
}

func (r *run) goOnWith(ctx context.Context, rt *runtime) error {
	rt.handTo(r)
	now, about := time.Now().UTC(), rt.about()
	r.st.StartedAt, r.st.WaitingFor = &now, nil
	r.st.Conversation, r.st.Model, r.st.AgentVersion = about.Conversation, about.Model, rt.version()
	if err := r.save(session.Running); err != nil {
		return err
	}
	crash.At("supervisor.taken_over")
	var looked, handed error
	var both sync.WaitGroup
	both.Go(func() { looked = r.prepareWorkspace(ctx) }) // before the agent changes anything
	both.Go(func() { handed = rt.handOver() })
	both.Wait()
	crash.At("supervisor.turn")
	return errors.Join(looked, handed)
}

// handOver notes the turn and gives the process its order.
func (rt *runtime) handOver() error {
	r := rt.r
	return r.inTurn(func() error { return rt.beginOnce("runtime_reused") })
}

// beginOnce gives an order to a process that is there already. Killed before that was on disk, it is given it again, and the
// journal has the turn already.
func (rt *runtime) beginOnce(how string) error {
	if !rt.r.fresh {
		m, err := rt.r.remember()
		if err != nil {
			return err
		}
		if m.given == (giving{rt.r.st.RuntimeID, rt.r.st.Try}) {
			return rt.begin()
		}
	}
	return rt.beginWith(event(how, map[string]any{"runtime": rt.r.st.RuntimeID}))
}

// beginWith notes the turn, with what it is asked, and gives the process its order.
func (rt *runtime) beginWith(more journal.Event) error {
	r := rt.r
	events := []journal.Event{event(r.word("turn_started"), map[string]any{"attempt": r.st.Attempt, "try": r.st.Try})}
	if r.spoken() && !r.opens() && r.st.Resume == "" && !r.told {
		content := map[string]string{"type": "text", "text": rt.mask.Text(r.spec.Payload.Prompt)}
		events = append(events, event("user_message_chunk", map[string]any{"content": content}))
	}
	if err := rt.note(true, append(events, more)...); err != nil {
		return err
	}
	r.told = true
	return rt.begin()
}

// inTurn hands something over to the agent if who sent it may drive the session, in one critical section with the check: of
// a take-over and a hand-over one comes first (L9).
func (r *run) inTurn(do func() error) error {
	if !r.spoken() || r.opens() {
		return do()
	}
	d, done := r.s.desk(r.st.Session)
	defer done()
	release, err := d.take(r.s.ctx)
	if err != nil {
		return err
	}
	defer release()
	sess, err := d.read()
	if err == nil {
		err = d.mayWrite(sess, r.spec.Client)
	}
	if err != nil {
		return err
	}
	return do()
}

// settleOwned ends a run that may not go into its session, since somebody else holds that by now.
func (r *run) settleOwned(why error) (bool, error) {
	return r.settleUnstarted(session.Ending{}, cause("session_owned", why.Error()))
}

// giveBack has a process kept on that could not be recorded as this run's.
func (r *run) giveBack() {
	rec, err := state.Read[record.Runtime](r.s.dir, record.RuntimeFile(r.st.RuntimeID))
	if err != nil {
		return
	}
	if t, err := r.s.tenureOf(r.st.RuntimeID, r.st.Session); err == nil && t.Idle != nil {
		r.s.keepAgain(rec, r.st.Session, t)
	}
}

// handTo makes a kept process another run's: nothing of the run before is left in it (W3).
func (rt *runtime) handTo(r *run) {
	rt.r, r.rt = r, rt
	rt.text.Reset()
	rt.partial, rt.resolved = false, map[string]api.Answered{}
}

// rest ends a run whose agent's process is kept. The end is in the journal first, then it is nobody's process, and then
// the run has ended: killed in between, the next supervisor keeps the process and ends the run by what the journal says.
func (r *run) rest() (bool, error) {
	rt := r.rt
	if err := r.fates(true); err != nil {
		return false, err
	}
	v := r.judge(shim.Exit{})
	text, said, err := rt.recall()
	if err != nil {
		return false, err
	}
	if said != nil {
		v = *said
	} else if err := r.sayResting(v); err != nil {
		return false, err
	}
	crash.At("supervisor.said")
	until := time.Now().Add(min(r.spec.Limits.Warm, maxAge-time.Since(rt.tenure.Since))).UTC()
	rt.tenure.Idle = &until
	if err := rt.save(); err != nil {
		return false, err
	}
	crash.At("supervisor.rested")
	_ = rt.control.Deadline(0)               // it was this run's
	_ = rt.control.Ack(rt.at.Out, rt.at.Err) // nothing of this run stays in the spool
	k := newKeeper(r.double(), rt, until)
	r.s.register(k) // before it leaves the queue: the next one must find the process
	if err := r.insist(func() error { return r.close(v, text) }); err != nil {
		r.rt, rt.r = nil, k.r
		r.s.work.Go(func() { k.stay(r.s.ctx) }) // it is kept all the same
		return false, err
	}
	r.rt, rt.r = nil, k.r
	r.s.work.Go(func() { k.stay(r.s.ctx) })
	return true, nil
}

// insist repeats what must be recorded before anything else may happen, until it is or the supervisor leaves.
func (r *run) insist(do func() error) error {
	for {
		err := do()
		if err == nil || blocked(err) {
			return err
		}
		r.s.log.Printf("run %s: %v", r.name(), err)
		if r.pause(r.s.ctx, retryDelay); r.s.ctx.Err() != nil {
			return r.s.ctx.Err()
		}
	}
}

// double is the run as its keeper has it.
func (r *run) double() *run {
	d := newRun(r.s, r.folder)
	d.spec, d.st, d.shim, d.kept = r.spec, r.st, r.shim, true
	return d
}

// sayResting puts the end of the turn into the journal. With secrets, what the agent has said is on no disk any more
// then: the shim has dropped it once it answers what it was asked behind the word to do so (E5).
func (r *run) sayResting(v record.Verdict) error {
	rt := r.rt
	if len(r.spec.Environment.Secrets) > 0 {
		if err := errors.Join(rt.book.w.Sync(), rt.save(), rt.control.Ack(rt.at.Out, rt.at.Err)); err != nil {
			return err
		}
		if _, err := rt.control.Environment(time.After(adoptLimit)); err != nil {
			return err
		}
	}
	ended, err := r.turnEnded(v)
	if err != nil {
		return err
	}
	return rt.note(true, append(r.lapsed("the turn has ended"), ended)...)
}
