package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// How a process ends that was kept between two runs: folded to the end of what it said, told in the journal, noted in the
// session's record, and then forgotten. Killed in between, the next supervisor begins again with what is on record.

// dead settles a process whose shim is proven dead: its lock is ours. What is left of it is ended first, whatever can be
// recorded of it.
func (k *keeper) dead(ctx context.Context) error {
	r := k.r
	exit, err := state.Read[shim.Exit](r.s.dir, shim.ExitFile(r.st.RuntimeID))
	left := exit.Left
	if err != nil {
		left = r.s.sweep(r.token(), k.pipes()...)
	}
	if err := r.reopen(); err != nil {
		return err
	}
	if k.rt = r.rt; err == nil {
		return k.over(ctx, exit.Out, exit.Err, left)
	}
	dir := r.s.dir.Path(shim.SpoolDir(r.st.RuntimeID))
	return k.over(ctx, shim.SpoolEnd(dir, shim.Out), shim.SpoolEnd(dir, shim.Err), left)
}

// pipes are those that its agent held, as far as they can be its own: of another boot, or of the state directory that this
// one is a copy of, the numbers mean somebody else's by now.
func (k *keeper) pipes() []uint64 {
	boot, err := proc.BootID()
	rec, unread := state.Read[record.Runtime](k.r.s.dir, record.RuntimeFile(k.r.st.RuntimeID))
	if err != nil || unread != nil || rec.BootID != boot || rec.Token != k.r.token() {
		return nil
	}
	agent, _ := state.Read[shim.Agent](k.r.s.dir, shim.AgentFile(k.r.st.RuntimeID))
	return agent.Pipes
}

// over takes in the end of the process, and its directory goes. What cannot be recorded is tried until it can be, or the
// supervisor leaves.
func (k *keeper) over(ctx context.Context, out, errs int64, left []proc.Identity) error {
	r := k.r
	r.rt, r.proven = k.rt, true
	r.vanished.Store(true)
	defer k.rt.release()
	if !k.tell(ctx, left, func() error { return r.takeRest(out, errs) }) {
		return ctx.Err()
	}
	if k.rt.control != nil {
		_ = k.rt.control.Ack(out, errs)
	}
	r.s.collect(k.rt.shimPID)
	return r.quit(r.st.RuntimeID)
}

// tell has the journal and the session's record know of the end, once all was taken in; false: the supervisor leaves.
func (k *keeper) tell(ctx context.Context, left []proc.Identity, takeIn func() error) bool {
	for told := k.told(); ; {
		err := takeIn()
		if err == nil && !told {
			err = k.rt.note(true, k.r.exited(left, "reason", k.reason))
			told = err == nil
			crash.At("supervisor.exited")
		}
		if err == nil {
			err = k.exited()
		}
		if err == nil {
			return true
		}
		k.log(err)
		if k.r.pause(ctx, retryDelay); ctx.Err() != nil {
			return false
		}
	}
}

// told reports whether an earlier supervisor has said in the journal that the process has ended, and died then.
func (k *keeper) told() bool {
	if !k.rt.recovered() || k.rt.tenure == nil {
		return false
	}
	events, err := journal.Scan(k.r.s.dir.Path(record.JournalDir(k.r.st.Session)), k.rt.tenure.Since, "runtime_exited")
	return err == nil && slices.ContainsFunc(events, func(e journal.Event) bool {
		var data struct{ Runtime string }
		return json.Unmarshal(e.Data, &data) == nil && data.Runtime == k.r.st.RuntimeID
	})
}

// exited has the session's record know of the exit, and what follows from it.
func (k *keeper) exited() error {
	r := k.r
	asked := k.reason != "" || k.rt.tenure != nil && k.rt.tenure.Closing != ""
	e, leased, now := r.s.endingOf(r.st.RuntimeID, asked, "its agent left while no turn ran"), r.held(), time.Now().UTC()
	err := state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if s.Version == 0 {
			return errGone
		}
		e.note(s, leased, now)
		r.dueAt, r.park = s.Restart.NextAt, s.Restart.Parked
		return nil
	})
	if err == nil {
		r.rt = k.rt
		r.tellRestart(e.why)
	}
	return ignoreAbsent(err)
}
