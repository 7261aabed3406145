package supervisor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/state"
)

// keeper keeps an agent's process between two runs of its session (W1). One goroutine owns it; the next run asks it for
// the process, and whoever wants that ended asks it to close it.
type keeper struct {
	r    *run // as whose it is kept: the last that had it
	rt   *runtime
	asks chan ask
	gone chan struct{} // closed when it keeps nothing any more

	poked  chan struct{} // capacity 1: its session may have been let go
	silent atomic.Bool   // its shim lives and does not answer

	until   time.Time
	rungs   []rung // of the close that is under way
	due     time.Time
	reason  string // for which it is closed
	wanted  string // for which it is to be closed, which could not be recorded yet
	parting bool   // by leaving it to others
	ticking *time.Timer
}

// ask is what is wanted of a keeper: the process for a run, or, without one, its end.
type ask struct {
	next   *run
	env    environ.Environment
	reason string
	answer chan *runtime // nil: it was not to be had; gone says when the old one is
}

func newKeeper(r *run, rt *runtime, until time.Time) *keeper {
	return &keeper{r: r, rt: rt, asks: make(chan ask), gone: make(chan struct{}), poked: make(chan struct{}, 1), until: until, ticking: time.NewTimer(time.Hour)}
}

// register has a keeper found by who wants its process.
func (s *Supervisor) register(k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[k.r.st.Session] = k
	s.used = time.Now()
}

func (s *Supervisor) keeperOf(session string) *keeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[session]
}

// keepers are all of them.
func (s *Supervisor) keepers() []*keeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.kept))
}

// leave keeps nothing any more.
func (k *keeper) leave() {
	s := k.r.s
	s.mu.Lock()
	if s.kept[k.r.st.Session] == k {
		delete(s.kept, k.r.st.Session)
	}
	s.used = time.Now()
	s.mu.Unlock()
	close(k.gone)
	s.mend(k.r.st.Session)
}

// stay keeps the process until it is asked for, its time is over, or it is gone. It begins by adopting it, if an earlier
// supervisor kept it.
func (k *keeper) stay(ctx context.Context) {
	defer k.leave()
	if k.rt == nil && !k.reach(ctx) {
		return
	}
	k.climb()
	for {
		var over bool
		var err error
		select {
		case ev, ok := <-k.rt.control.Events():
			over, err = k.hear(ctx, ev, ok)
		case a := <-k.asks:
			over = k.asked(a)
		case <-k.poked:
		case <-k.timer():
		case <-ctx.Done():
			k.rt.release()
			return
		}
		if err != nil {
			k.log(err)
		}
		if over {
			return
		}
		k.climb()
		if k.parted(ctx) {
			return
		}
	}
}

func (k *keeper) log(err error) { k.r.s.log.Printf("kept runtime %s: %v", k.r.st.RuntimeID, err) }

func (k *keeper) timer() <-chan time.Time {
	next := time.Until(k.until)
	switch {
	case k.reason != "":
		next = time.Until(k.due)
	case k.wanted == "" && k.r.held():
		next = time.Hour
	}
	k.ticking.Reset(max(next, time.Millisecond))
	return k.ticking.C
}

// climb closes it when its time is over, and goes on with a close.
func (k *keeper) climb() {
	switch {
	case k.reason == "" && k.rt.tenure != nil && k.rt.tenure.Closing != "": // by an earlier supervisor, or before its shim was lost
		k.begin(k.rt.tenure.Closing)
	case k.wanted != "" && !time.Now().Before(k.until):
		k.close(k.wanted)
	case k.rt.broken != nil:
		k.close(k.rt.broken.Error())
	case !k.r.held() && !time.Now().Before(k.until):
		k.close("idle timeout")
	}
	if k.reason == "" || len(k.rungs) == 0 || time.Now().Before(k.due) {
		return
	}
	step := k.rungs[0]
	k.rungs, k.due = k.rungs[1:], time.Now().Add(step.grace)
	k.r.rt = k.rt
	if err := k.r.signal(step.sig); err != nil {
		k.log(err)
	}
}

// close begins to close it: the intent is in the journal before (R3).
func (k *keeper) close(reason string) {
	if k.reason != "" {
		return
	}
	err := k.rt.note(true, event("runtime_closing", map[string]any{"runtime": k.r.st.RuntimeID, "reason": reason}))
	if err == nil {
		k.rt.tenure.Closing = reason
		err = k.rt.save()
	}
	if err != nil {
		k.log(err)
		k.rt.tenure.Closing, k.wanted, k.until = "", reason, time.Now().Add(retryDelay) // and then again
		return
	}
	crash.At("supervisor.closing")
	k.begin(reason)
}

// begin closes it from now on, or leaves it to others.
func (k *keeper) begin(reason string) {
	k.reason, k.rungs, k.due = reason, k.r.ladderFor("close"), time.Now()
	if !k.rt.alone() {
		k.part()
	}
}

// asked gives the process to the next run, if it is what that would make anew; else it is closed (W2).
func (k *keeper) asked(a ask) (given bool) {
	switch {
	case a.next == nil:
		k.close(a.reason)
	case k.reason != "":
	default:
		if a.next.spec.Environment.Inherit {
			a.env = k.rt.env
		}
		if why := k.differs(a.next, a.env); why != "" {
			k.close("the next run differs: " + why)
			break
		}
		k.rt.mask = environ.NewMasker(a.env.SecretValues())
		a.answer <- k.rt
		return true
	}
	if a.answer != nil {
		a.answer <- nil
	}
	return false
}

// differs names in what a run's own process would be another one, "" if in nothing.
func (k *keeper) differs(next *run, env environ.Environment) string {
	was, is := k.r.spec, next.spec
	fields := made(was.Payload).Differing(made(is.Payload))
	if !was.Program.Equal(is.Program) {
		fields = append(fields, "program")
	}
	if (was.Policy == nil) != (is.Policy == nil) {
		fields = append(fields, "policy")
	}
	if was.Environment.Umask != is.Environment.Umask {
		fields = append(fields, "umask")
	}
	if !maps.Equal(theirs(k.rt.env.Vars), theirs(env.Vars)) {
		fields = append(fields, "environment")
	}
	return strings.Join(fields, ", ")
}

// made is of an order what its agent's process is made from. A worktree shows in the directory.
func made(p session.Payload) session.Payload {
	return session.Payload{
		Provider: p.Provider, Model: p.Model, Mode: p.Mode, AgentArgs: p.AgentArgs, Cwd: p.Cwd, Approve: p.Approve, Options: p.Options,
	}
}

// theirs is an environment without what we set ourselves, which differs from run to run.
func theirs(vars map[string]string) map[string]string {
	vars = maps.Clone(vars)
	for _, name := range []string{"PINTLE_HOME", "PINTLE_EXECUTION", "PINTLE_SESSION", shim.TokenVariable} {
		delete(vars, name)
	}
	return vars
}

// hear takes in what the shim tells.
func (k *keeper) hear(ctx context.Context, ev shim.Event, ok bool) (over bool, err error) {
	switch {
	case !ok:
		return k.lost(ctx)
	case ev.Exit != nil:
		return true, k.over(ctx, ev.Exit.Out, ev.Exit.Err, ev.Exit.Left)
	case ev.Written != nil:
		k.rt.written(ev.Written)
	case ev.Started == nil:
		return false, errors.Join(k.rt.take(providers.Stdout, ev.Out, false), k.rt.take(providers.Stderr, ev.Err, false))
	}
	return false, nil
}

// lost looks what a broken connection means.
func (k *keeper) lost(ctx context.Context) (over bool, err error) {
	k.rt.release()
	k.rt = nil
	return !k.reach(ctx), nil
}

// reach adopts the process, until it can be or is gone. One that cannot be, since its shim does not answer or a record
// cannot be read, is ended with its shim when its time is over or somebody wants it: nothing goes on in it.
func (k *keeper) reach(ctx context.Context) bool {
	for ctx.Err() == nil {
		there, err := k.adopt(ctx)
		var silent *silence
		if errors.As(err, &silent) && k.r.shimGone() {
			continue // it was dying: its lock was let go of last
		}
		k.silent.Store(silent != nil)
		if err == nil {
			return there
		}
		k.log(err)
		if k.wait(ctx) {
			_ = k.r.endShim(ctx) // it may have ended by now
		}
	}
	return false
}

// wait pauses, and reports whether the process is to be ended.
func (k *keeper) wait(ctx context.Context) bool {
	select {
	case a := <-k.asks:
		if a.answer != nil {
			a.answer <- nil
		}
		return true
	case <-time.After(retryDelay):
	case <-ctx.Done():
		return false
	}
	return !k.r.held() && !time.Now().Before(k.until)
}

// adopt takes the shim over, or settles the process if that is gone.
func (k *keeper) adopt(ctx context.Context) (there bool, err error) {
	r := k.r
	unlock, err := r.dead()
	switch {
	case errors.Is(err, state.ErrLocked):
		r.rt = nil
		exit, err := r.takeOver(ctx)
		if k.rt = r.rt; err != nil || exit == nil {
			return true, err
		}
		return false, k.over(ctx, exit.Out, exit.Err, exit.Left)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, err
	}
	defer unlock()
	if err := k.dead(ctx); err != nil {
		return true, err // once more
	}
	return false, nil
}

// poke has the keeper look whether its session is held.
func (k *keeper) poke() {
	select {
	case k.poked <- struct{}{}:
	default:
	}
}

// closeKept has the process that is kept for a session closed, and returns when it is gone.
func (s *Supervisor) closeKept(ctx context.Context, k *keeper, reason string) error {
	select {
	case k.asks <- ask{reason: reason}:
	case <-k.gone:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-k.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeLimit is how long the close of a kept process is waited for: its shim may be frozen, and is ended by force then.
const closeLimit = 20 * time.Second

// closeAllKept has all of them closed, for a supervisor that stops.
func (s *Supervisor) closeAllKept(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, k := range s.keepers() {
		all.Go(func() { _ = s.closeKept(ctx, k, "supervise stop") })
	}
	all.Wait()
}

// closeKeptOf closes the process that is kept since a run has ended.
func (s *Supervisor) closeKeptOf(ctx context.Context, folder string) error {
	for _, k := range s.keepers() {
		if k.r.folder == folder {
			return s.closeKept(ctx, k, "stopped")
		}
	}
	return nil
}

// keepAgain takes up the keeping of a process that an earlier supervisor kept.
func (s *Supervisor) keepAgain(rec record.Runtime, session string, t tenure) {
	r := newRun(s, t.Folder)
	r.kept = true
	if err := r.load(); err != nil {
		s.log.Printf("kept runtime %s: %v", rec.ID, err)
		now := time.Now()
		t.Idle, r.spec.Environment.Secrets = &now, t.Secrets // nobody can tell for whom it is fit: it is closed
	}
	r.st.Session, r.st.RuntimeID, r.st.Fence, r.st.BootID = session, rec.ID, cmp.Or(t.Fence, rec.Fence), rec.BootID
	if sess, err := state.Read[record.Session](s.dir, record.SessionFile(session)); err == nil {
		r.st.Provider, r.st.Kind, r.st.Workspace = sess.Provider, sess.Kind, sess.Workspace
	}
	k := newKeeper(r, nil, *t.Idle)
	s.register(k)
	s.work.Go(func() { k.stay(s.ctx) })
}
