package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// run carries one execution's newest attempt to its end. One goroutine owns it; others may wake it, wait
// for done and read what current returns.
type run struct {
	s       *Supervisor
	folder  string
	poked   chan struct{} // capacity 1
	done    chan struct{} // closed when the attempt is settled, or the supervisor leaves
	quitted chan struct{} // closed behind that, once its runtime is removed

	spec record.Spec
	st   record.Status
	rt   *runtime // nil while no shim is held
	shim proc.Identity
	// orphaned says that the shim which this supervisor launched went before it had started anything.
	orphaned bool
	park     *session.Parked // what the session's record says of its exit
	dueAt    *time.Time      // when its session is opened again
	told     bool            // its prompt is in the journal, of whatever try
	fresh    bool            // it was taken up by this run, and nothing was begun since
	parted   bool            // a process of it has ended, which its session's record is to note
	vanished atomic.Bool     // the same, for who looks at it
	said     *record.Verdict // that is being recorded

	proven  bool   // its process has ended, and nothing of it is left that could be ended
	founds  *hub   // that others find, while the run starts the process that they may share
	unfound func() // lets go of it

	answers chan question                     // to what the agent asks for
	steers  chan steering                     // messages for the turn that runs
	heeds   map[string]chan providers.Steered // by message: who wants to know how it is
	fated   map[string]bool                   // messages whose fate is in the journal
	unruled map[string]bool                   // permissions of which the rules say nothing
	kept    bool                              // it is as its keeper has it: nothing of the run is recorded any more
	since   time.Time                         // when this supervisor took it up

	came    bool          // who gives slots out knows of it
	claimed chan struct{} // closed by drive once the attempt has its ids on record

	mu      sync.Mutex
	blocker error           // why it was given up
	waiting *api.WaitingFor // why it does not go on by itself
	changed chan struct{}   // closed when waiting is set, or the delivery has come on
	handing api.Delivery    // of its prompt
}

// ensure has the execution driven, by the one run that does or a new one.
func (s *Supervisor) ensure(folder string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.runs[folder]; ok {
		r.wake()
		return r
	}
	r := newRun(s, folder)
	s.runs[folder] = r
	s.slots.announce(folder)
	s.used = time.Now()
	s.work.Go(func() { r.drive(s.ctx) })
	return r
}

func newRun(s *Supervisor, folder string) *run {
	return &run{
		s: s, folder: folder, poked: make(chan struct{}, 1), done: make(chan struct{}), quitted: make(chan struct{}), claimed: make(chan struct{}),
		changed: make(chan struct{}), answers: make(chan question), since: time.Now(),
		steers: make(chan steering), heeds: map[string]chan providers.Steered{}, fated: map[string]bool{}, unruled: map[string]bool{},
	}
}

func (r *run) wake() {
	select {
	case r.poked <- struct{}{}:
	default:
	}
}

// retryDelay is how long a step waits that could not be recorded, for want of space say.
const retryDelay = time.Second

// drive repeats steps until the attempt has ended or the supervisor leaves. A step that fails is tried
// again: its records say how far it came.
func (r *run) drive(ctx context.Context) {
	ended := false
	defer func() { r.finish(ended) }()
	for ctx.Err() == nil && !ended {
		var err error
		if ended, err = r.step(ctx); err == nil || ctx.Err() != nil {
			continue
		}
		r.s.log.Printf("run %s: %v", r.name(), err)
		r.wait(&api.WaitingFor{Kind: waitKind(err), Detail: err.Error()})
		if blocked(err) {
			r.block(err)
			return
		}
		r.pause(ctx, retryDelay)
	}
}

// block keeps why the run cannot go on.
func (r *run) block(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocker = err
}

func waitKind(err error) string {
	if errors.Is(err, state.ErrFull) {
		return "space"
	}
	return "error"
}

// blocked reports whether an error will not pass by itself: a record that cannot be read blocks its id.
func blocked(err error) bool {
	return errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrNewer) || errors.Is(err, fs.ErrNotExist)
}

func (r *run) name() string {
	if r.spec.ID != "" {
		return r.spec.ID
	}
	return r.folder
}

// finish lets go of the execution. An attempt that was ordered while this one ended is taken up at once.
func (r *run) finish(ended bool) {
	if r.rt != nil {
		r.rt.release()
	}
	r.s.slots.leave(r.folder) // before another run of it may be there
	r.s.mu.Lock()
	delete(r.s.runs, r.folder)
	if r.s.envs[r.folder].attempt <= r.st.Attempt { // else it came for the next attempt
		delete(r.s.envs, r.folder)
	}
	if _, ok := r.s.attends[r.folder]; ok && r.s.attends[r.folder].n == 0 {
		delete(r.s.attends, r.folder)
	}
	maps.DeleteFunc(r.s.asks, func(_, folder string) bool { return folder == r.folder })
	r.s.used = time.Now()
	r.s.tidying[r] = struct{}{} // found by who does not find the run any more
	r.s.mu.Unlock()
	defer r.tidied()
	close(r.done)
	r.wakeFor()
	r.s.leaveHome(r.st.Session)
	if ended {
		r.s.mend(r.st.Session)
		if r.st.Leaving {
			r.s.dispatch(departure(r.folder, r.st))
		}
		r.tidy()
		if r.spoken() {
			r.s.pokeAll() // the next one of its session
		}
	}
	if open, err := r.s.unended(r.folder); ended && open && err == nil && r.s.ctx.Err() == nil {
		r.s.ensure(r.folder)
	}
}

// tidied lets those go on who wait for what comes behind the run's end.
func (r *run) tidied() {
	r.s.mu.Lock()
	delete(r.s.tidying, r)
	r.s.mu.Unlock()
	close(r.quitted)
}

// pause waits, until it is woken or the context ends, at most d.
func (r *run) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.poked:
	case <-ctx.Done():
	}
}

// load reads the records anew.
func (r *run) load() (err error) {
	if r.spec, err = record.SpecOf(r.s.dir, r.folder); err != nil {
		return err
	}
	r.store()
	r.st, err = state.Read[record.Status](r.s.dir, record.StatusFile(r.folder))
	if errors.Is(err, fs.ErrNotExist) {
		r.st, err = record.Status{}, nil
	}
	return err
}

// save makes the status durable in a phase that may follow.
func (r *run) save(phase session.Phase) error {
	next, err := session.Transition(session.Phase(r.st.Phase), phase)
	if err != nil {
		return err
	}
	r.st.Phase = string(next)
	return state.Put(r.s.ctx, r.s.dir, record.StatusFile(r.folder), r.st)
}

// step does what comes next.
func (r *run) step(ctx context.Context) (ended bool, err error) {
	if !r.s.ours() {
		r.s.leave()
		return false, ErrMoved
	}
	if err := r.load(); err != nil {
		return false, err
	}
	r.comes() // before its order is answered
	phase := session.Phase(r.st.Phase)
	if phase != "" && r.spec.Desired.Attempt <= r.st.Attempt && (!r.ordersTree() || r.st.Worktree != "") {
		r.taken() // else its directory is a part of the answer (X26)
	}
	ended, err = r.next(ctx, phase)
	if errors.Is(err, errArchived) {
		return r.estrange()
	}
	return ended, err
}

// next is what comes next of an attempt in that phase.
func (r *run) next(ctx context.Context, phase session.Phase) (ended bool, err error) {
	switch {
	case phase == session.Ended && r.spec.Desired.Attempt <= r.st.Attempt:
		return true, nil
	case phase == "" || phase == session.Ended:
		return false, r.claim()
	case r.foreign():
		return r.settleGone(session.Ending{HostDied: true}, "the host that ran it is gone: a reboot, or a copied state directory")
	case r.begun():
		return r.resume(ctx)
	case r.st.GivenUp != nil:
		r.st.Cancel = r.st.GivenUp.Cancel
		return r.settleUnstarted(r.st.GivenUp.Ending, r.st.GivenUp.Cause)
	case r.spec.When == whenSteer && !r.misses():
		return r.steer(ctx)
	case r.cancelled() != nil:
		return r.settleUnstarted(session.Ending{Cancelled: true}, cause("cancelled", r.cancelled().Reason))
	case r.needless():
		return r.settleUnstarted(session.Ending{Cancelled: true}, cause("cancelled", r.unwanted().Reason))
	case r.s.isStopping():
		return r.settleUnstarted(session.Ending{HostDied: true}, cause("stopped", "supervise stop"))
	case r.left() == 0:
		return r.settleOverdue()
	case r.misses():
		return r.settleUnstarted(session.Ending{Refused: true}, r.missing())
	}
	return r.begin(ctx)
}

// left is how long the run may still take by its own deadline; an hour if it has none.
func (r *run) left() time.Duration {
	d := r.spec.Desired.Deadline
	if d == 0 {
		return time.Hour
	}
	return max(d-proc.BootClock(), 0)
}

// settleOverdue ends a run whose deadline has passed before it came to begin, or to its next try.
func (r *run) settleOverdue() (bool, error) {
	now := time.Now().UTC()
	r.st.Cancel = &api.Cancel{
		Action: "deadline", Reason: "run deadline: " + r.spec.Limits.Timeout.String(), RequestedAt: now, DispatchedAt: &now,
	}
	return r.settleUnstarted(session.Ending{}, &api.Cause{})
}

// taken says that the attempt has its ids on record.
func (r *run) taken() {
	select {
	case <-r.claimed:
	default:
		close(r.claimed)
	}
}

// foreign reports whether the runtime on record was another boot's or the original's of a copy, so that
// nothing of it can live here. What had begun nothing is only given up in a copy: the original has it too.
func (r *run) foreign() bool {
	boot, err := proc.BootID()
	return r.s.dir.Moved() || (r.begun() && err == nil && r.st.BootID != boot)
}

// begun reports whether a runtime's intent is on record.
func (r *run) begun() bool {
	if r.st.RuntimeID == "" {
		return false
	}
	return r.mine(r.st.RuntimeID)
}

// cancelled is the cancel that is wanted of this attempt, nil for none.
func (r *run) cancelled() *api.Cancel {
	c := r.spec.Desired.Cancel
	if c == nil || c.Attempt != r.st.Attempt {
		return nil
	}
	return c
}

// claim takes up a new attempt: all ids are fixed and durable before anything bears them.
func (r *run) claim() error {
	old, spec := r.st, r.spec
	st := record.Status{Version: record.Version, Kind: spec.Kind, Try: 1}
	st.Execution = api.Execution{
		ID: spec.ID, Controller: spec.Controller, Provider: spec.Payload.Provider, Cwd: spec.Payload.Cwd,
		Attempt: spec.Desired.Attempt, Labels: spec.Labels, CreatedAt: spec.CreatedAt,
		Session: old.Session, Workspace: old.Workspace, Attempts: old.Attempts, Fence: old.Fence + 1,
		Worktree: old.Worktree, Branch: old.Branch, Base: old.Base,
		Policy: InForce(r.provider(), spec.Payload.Approve, spec.Policy),
	}
	if old.Worktree != "" {
		st.Cwd = old.Cwd // in the worktree that it has
	}
	if old.Phase == string(session.Ended) {
		st.Attempts = append(st.Attempts, record.Past(old))
	}
	if st.Session == "" {
		if err := r.joinSession(&st); err != nil {
			return err
		}
	}
	if r.spec.Chore != nil {
		st.Workspace = r.spec.Chore.Workspace
	}
	st.RuntimeID, r.fresh = newID("x"), true
	r.told = false
	boot, err := proc.BootID()
	if err != nil {
		return err
	}
	st.BootID = boot
	st.Phase, st.Since = old.Phase, r.s.lastSequence(st.Session)
	r.st = st
	phase, err := r.lineUp()
	if err != nil {
		return err
	}
	return r.save(phase)
}

// lineUp takes the order's place in the queue of its session, if that was there before it, and sees whether too many
// others run.
func (r *run) lineUp() (session.Phase, error) {
	goesOn, err := r.goesOn()
	if err == nil && goesOn && r.spec.When == whenSteer { // which has no turn of its own
		return session.Claimed, r.joinIn()
	}
	if err != nil {
		return session.Claimed, err
	}
	if goesOn {
		ahead, err := r.ahead()
		if err != nil {
			return session.Claimed, err
		}
		if ahead != "" {
			r.st.WaitingFor = r.behind(ahead)
			if r.spec.When == whenInterrupt {
				r.st.Replaces = ahead
			}
			return session.Queued, nil
		}
	}
	if _, missing := r.environment(); len(missing) > 0 || r.ours() {
		return session.Claimed, nil
	}
	if r.st.WaitingFor = r.s.slots.full(r.place()); r.st.WaitingFor != nil {
		return session.Queued, nil
	}
	return session.Claimed, nil
}

func cause(code, message string) *api.Cause { return record.Cause(code, message) }
