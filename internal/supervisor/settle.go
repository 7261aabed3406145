package supervisor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// settleExit settles an agent whose shim has told its end.
func (r *run) settleExit(exit shim.Exit) (ended bool, err error) {
	pid := r.rt.shimPID
	r.part()
	r.proven = true
	if ended, err = r.conclude(exit.Out, exit.Err, func() record.Verdict { return r.dated(r.judge(exit), exit) }, exit.Left); ended {
		r.s.collect(pid)
	}
	return ended, err
}

// part notes that the process has gone: whatever can be recorded of that, it is nobody's any more.
func (r *run) part() {
	r.parted = true
	r.vanished.Store(true)
}

// collect reaps a shim that is ending, so that no zombie waits for the next round.
func (s *Supervisor) collect(pid int) {
	if pid > 0 {
		s.work.Go(func() { _, _ = proc.Reap(pid) })
	}
}

// settleRecorded settles an agent whose end is on disk and whose shim is gone.
func (r *run) settleRecorded(exit shim.Exit) (bool, error) {
	r.part()
	r.proven = true
	if err := r.reopen(); err != nil {
		return false, err
	}
	return r.conclude(exit.Out, exit.Err, func() record.Verdict { return r.dated(r.judge(exit), exit) }, exit.Left)
}

// settleLost settles an agent whose shim was killed: what it said is what is in the spool.
func (r *run) settleLost(v record.Verdict, left []proc.Identity) (bool, error) {
	r.part()
	r.proven = true
	if err := r.reopen(); err != nil {
		return false, err
	}
	dir := r.s.dir.Path(shim.SpoolDir(r.st.RuntimeID))
	return r.conclude(shim.SpoolEnd(dir, shim.Out), shim.SpoolEnd(dir, shim.Err), func() record.Verdict { return r.judgeLost(v) }, left)
}

// settleGone settles an attempt whose processes cannot be here: another boot's, or another directory's.
func (r *run) settleGone(e session.Ending, why string) (bool, error) {
	if !r.begun() {
		return r.settleUnstarted(e, cause("host_died", why))
	}
	e.Began = true
	if r.s.dir.Moved() { // what lies in the copy's runtimes is the original's
		return r.settleLost(r.verdict(e, cause("host_died", why)), nil)
	}
	exit, err := state.Read[shim.Exit](r.s.dir, shim.ExitFile(r.st.RuntimeID))
	if err == nil {
		return r.settleRecorded(exit) // it had ended by itself, before
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	left := r.s.sweep(r.token()) // by token: if the record errs about the boot, nothing of it goes on
	return r.settleLost(r.verdict(e, cause("host_died", why)), left)
}

// settleUnstarted settles an attempt of which nothing was begun.
func (r *run) settleUnstarted(e session.Ending, why *api.Cause) (bool, error) {
	if r.ordersTree() {
		if err := r.giveUp(&record.GivenUp{Ending: e, Cause: why, Cancel: r.st.Cancel}); err != nil {
			return false, err
		}
	}
	if err := r.s.dislodge(r.st.Workspace); err != nil {
		return false, err
	}
	v := r.verdict(e, why)
	if r.anothers() {
		r.st.RuntimeID = newID("x") // a kept process that it never had
	}
	if c := r.cancelled(); c != nil && r.st.Cancel == nil {
		r.st.Cancel = c
	}
	if err := r.reopen(); err != nil {
		return false, err
	}
	return r.conclude(0, 0, func() record.Verdict { return v }, nil)
}

// giveUp takes the attempt's worktree back. That it does, and why, is on record before: whoever finds it killed in
// between does not begin to make another.
func (r *run) giveUp(g *record.GivenUp) error {
	if r.st.GivenUp == nil {
		r.st.GivenUp = g
		if err := r.save(session.Phase(r.st.Phase)); err != nil {
			return err
		}
		crash.At("supervisor.given_up")
	}
	if err := r.stopChore(); err != nil {
		return err
	}
	return r.takeBack()
}

// reopen opens the journal of a runtime that no shim holds. The environment of a dead one is only known if
// this supervisor started it.
func (r *run) reopen() error {
	if err := r.prepareSession(); err != nil {
		return err // a death while all was being prepared may have come before it
	}
	env, missing := r.environment()
	if len(missing) > 0 {
		env = environ.Environment{}
	}
	rt, err := r.openRuntime(env)
	if r.rt = rt; err != nil || r.kept {
		return err
	}
	if err := r.recallAnswers(); err != nil {
		return err
	}
	r.recallHandedOver()
	return nil
}

// judge makes the verdict of a proven end.
func (r *run) judge(exit shim.Exit) record.Verdict {
	if _, ok := r.rt.fold.(providers.Agent); ok {
		return r.judgeAgent(exit, r.rt.about())
	}
	return record.JudgeExit(exit, r.st.Cancel)
}

// dated says when it was, of a turn that ended with its process.
func (r *run) dated(v record.Verdict, exit shim.Exit) record.Verdict {
	if (v.Outcome == session.AgentDied || v.Outcome == session.Unknown) && !exit.At.IsZero() {
		at := exit.At.UTC()
		v.EndedAt = &at
	}
	return v
}

// judgeLost is the verdict on an agent that was ended with its shim, or with its host: what it had said of its turn
// stands.
func (r *run) judgeLost(v record.Verdict) record.Verdict {
	about := r.rt.about()
	switch {
	case about.End != nil && about.End.Outcome != session.Cancelled:
		return r.judgeAgent(shim.Exit{}, about)
	case v.Outcome == session.AgentDied && r.spoken() && !about.Confirmed && r.rt.handedOver():
		v.Outcome, v.ExitCode = session.Unknown, session.Unknown.Exit()
	}
	return v
}

// verdict judges an ending together with what had been dispatched.
func (r *run) verdict(e session.Ending, why *api.Cause) record.Verdict {
	v := record.Judge(e, why, r.st.Cancel)
	if v.Cause != nil && v.Cause.Code == string(api.CodeOwned) {
		v.ExitCode = api.CodeOwned.Exit()
	}
	return v
}

// conclude ends an attempt: take in the rest, drop the spool, say it in the journal, write the record. Each
// step may be repeated after a crash; the journal's turn_ended, once there, is the verdict.
func (r *run) conclude(out, errs int64, judge func() record.Verdict, left []proc.Identity) (bool, error) {
	rt := r.rt
	defer func() { rt.release(); r.rt = nil }()
	if err := r.takeRest(out, errs); err != nil {
		return false, err
	}
	if err := r.fates(true); err != nil {
		return false, err
	}
	v := judge() // after all that it said
	text, said, lookErr := rt.recall()
	if lookErr != nil {
		return false, lookErr
	}
	if said == nil {
		if n := r.another(v); n != nil {
			return false, r.tryAgain(v, n, left)
		}
	}
	if said != nil {
		v = *said // it was told: the journal decides
	} else if err := r.say(v, left); err != nil {
		return false, err
	}
	crash.At("supervisor.said")
	if err := r.close(v, text); err != nil {
		return false, err // not ended before it is on record
	}
	if rt.control != nil {
		_ = rt.control.Ack(out, errs) // a shim that waits to be taken in may leave
	}
	return true, nil
}

// takeRest folds to the spool's end. With secrets that nobody knows any more, what was not folded is
// dropped: it could not be masked (E5).
func (r *run) takeRest(out, err int64) error {
	rt := r.rt
	for _, s := range []struct {
		stream providers.Stream
		end    int64
	}{{providers.Stdout, out}, {providers.Stderr, err}} {
		if r.unmasked() && *rt.offset(s.stream) < s.end {
			if err := rt.lose(s.stream, s.end, errors.New("it may hold secrets, and who knew them is dead")); err != nil {
				return err
			}
		}
		if err := rt.take(s.stream, s.end, true); err != nil {
			return err
		}
	}
	return nil
}

// unmasked reports whether the run had secrets whose values are not known here.
func (r *run) unmasked() bool {
	return len(r.spec.Environment.Secrets) > 0 && r.rt.control == nil && !r.hasEnv()
}

// hasEnv reports whether the values of all secrets came with an order.
func (r *run) hasEnv() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	env, ok := r.s.envs[r.folder]
	return ok && len(env.Lacks(r.spec.Environment.Secrets)) == 0
}

// say puts the end into the journal. Where there are secrets the spool goes before: once the end is told, no
// file holds what was not masked.
func (r *run) say(v record.Verdict, left []proc.Identity) error {
	ended, err := r.turnEnded(v)
	if err != nil {
		return err
	}
	gone := r.lapsed("the agent is gone")
	if r.parted && !r.rt.gone { // else nothing of it was started
		gone = append(gone, r.exited(left))
	}
	if len(r.spec.Environment.Secrets) == 0 {
		return r.rt.note(true, append(gone, ended)...) // the spool goes with the runtime's directory
	}
	if err := r.rt.note(true, gone...); err != nil {
		return err
	}
	r.rt.gone = true
	if r.parted && r.spoken() { // what it said of its turn is known from the spool alone
		if err := r.rt.save(); err != nil {
			return err
		}
	}
	crash.At("supervisor.taken")
	if err := r.dropSpool(); err != nil {
		return err
	}
	return r.rt.note(true, ended)
}

func (r *run) turnEnded(v record.Verdict) (journal.Event, error) {
	data, err := json.Marshal(v)
	return journal.Event{Type: r.word("turn_ended"), Data: data}, err
}

func (r *run) dropSpool() error {
	dir := r.s.dir.Path("runtimes", r.st.RuntimeID)
	err := errors.Join(os.RemoveAll(filepath.Join(dir, "spool")), os.RemoveAll(filepath.Join(dir, "stdin.jsonl")))
	if err != nil {
		return fmt.Errorf("drop spool: %w", err)
	}
	return nil
}

// close writes the result and the record, which is what everybody waits for.
func (r *run) close(v record.Verdict, text []byte) error {
	if r.ordersTree() && v.Outcome == session.Failed && v.ExitCode == api.CodeNoAgent.Exit() {
		if err := r.takeBack(); err != nil { // nothing was started in it
			return err
		}
	}
	about := r.rt.about()
	r.said = &v
	var wrote, left error
	var all sync.WaitGroup
	all.Go(func() { wrote = r.writeText(text) })
	all.Go(func() { left = r.leaveSession(about) })
	all.Go(r.changes)
	all.Wait()
	if err := errors.Join(wrote, left); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if r.over() {
		r.tellRestart(r.ending().why)
	}
	r.st.AgentVersion = cmp.Or(r.rt.version(), r.st.AgentVersion)
	if u := spend(r.st.Spent, cmp.Or(about.Usage, r.rt.used)); u != (api.Usage{}) {
		r.st.Usage = &u
	}
	now := time.Now().UTC()
	code := v.ExitCode
	r.st.Outcome, r.st.ExitCode, r.st.Cause, r.st.EndedAt, r.st.Runtime = string(v.Outcome), &code, v.Cause, &now, nil
	if v.EndedAt != nil {
		r.st.EndedAt = v.EndedAt
	}
	r.st.WaitingFor, r.st.Next, r.st.Permissions, r.st.GivenUp = nil, "", nil, nil
	if about.Confirmed && r.handing.ConfirmedAt == nil { // said in what nobody had read when its agent died
		r.note(handedOver, cmp.Or(r.handing.HandedOverAt, r.st.EndedAt))
		r.note(confirmed, r.st.EndedAt)
	}
	r.st.Delivery = r.delivered(v)
	r.st.Leaving = r.spec.Limits.Archive && v.Outcome == session.Completed
	if r.st.Cancel != nil {
		r.st.Cancel.ConfirmedAt = &now
	}
	if err := r.save(session.Ended); err != nil {
		return err
	}
	crash.At("supervisor.ended")
	r.s.dir.CleanTemporary(r.s.ctx, filepath.Dir(record.StatusFile(r.folder)), 0)
	return nil
}

// tidy removes the runtime of a settled attempt, after those who wait were told. Killed before it is done, the
// next supervisor does it. Nothing else of the execution is touched: its next attempt may have begun.
func (r *run) tidy() {
	if r.anothers() {
		return // it is kept, or another's by now
	}
	if err := r.quit(r.st.RuntimeID); err != nil {
		r.s.log.Printf("run %s: %v", r.name(), err)
	}
}

// dropRuntime removes a settled runtime's directory, by way of a name under which nobody looks.
func (s *Supervisor) dropRuntime(id string) error {
	if sockets := filepath.Dir(s.self.Socket); sockets != "" {
		_ = os.Remove(filepath.Join(sockets, id))
	}
	dead := s.dir.Path("runtimes", "."+id)
	err := os.Rename(s.dir.Path("runtimes", id), dead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop runtime %s: %w", id, err)
	}
	return os.RemoveAll(dead)
}
