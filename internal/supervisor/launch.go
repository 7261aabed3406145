package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
	"github.com/pintle/pintle/worktree"
)

// newID makes an id of the given kind: s sessions, w workspaces, x runtimes.
func newID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return kind + "-" + hex.EncodeToString(b[:])
}

// begin starts the agent of an attempt that has begun nothing, and stays with it.
func (r *run) begin(ctx context.Context) (bool, error) {
	if waits, err := r.behindOthers(ctx); waits || err != nil { // nothing was told of it yet
		return false, err
	}
	if fenced, ended, err := r.fenced(); fenced {
		return ended, err
	}
	r.fresh = false
	env, missing := r.environment()
	if len(missing) > 0 && r.reopens() { // who knew them is dead: a message that brings them starts the process
		return r.settleUnstarted(session.Ending{}, cause(needsEnv, fmt.Sprintf("the values of %v are on no record", missing)))
	}
	if len(missing) > 0 {
		r.needEnv(ctx, missing)
		return false, nil
	}
	if !r.due(ctx) {
		return false, nil
	}
	if r.ordersTree() {
		if ready, ended, err := r.housed(ctx, env); !ready {
			return ended, err
		}
	}
	goesOn, err := r.goesOn()
	if err != nil {
		return false, err
	}
	if goesOn {
		kept, mine, err := r.comeOn(ctx, env)
		switch {
		case err != nil || !mine:
			return false, err
		case kept != nil:
			ended, err := r.goOn(ctx, kept)
			if api.CodeOf(err) == api.CodeOwned {
				return r.settleOwned(err)
			}
			return ended, err
		}
	} else if mine, err := r.admittedAlone(ctx); err != nil || !mine {
		return false, err
	}
	if r.shares() {
		defer r.abandonFounding()
		seat, start, err := r.seek(ctx, env)
		switch {
		case errors.Is(err, errWanted):
			return false, nil
		case err != nil:
			return false, err
		case seat != nil:
			ended, err := r.moveIn(ctx, env, seat, start)
			if api.CodeOf(err) == api.CodeOwned {
				return r.settleOwned(err)
			}
			return ended, err
		}
	}
	if err := r.underThisBoot(); err != nil {
		return false, err
	}
	rt, err := r.prepare(ctx, env)
	var none *treeless
	if errors.As(err, &none) { // it is in a worktree of ours that goes
		return r.settleUnstarted(session.Ending{}, cause(none.code, none.Error()))
	}
	if err != nil {
		return false, err
	}
	crash.At("supervisor.prepared")
	if err := r.launch(rt, env); err != nil {
		rt.release()
		if errors.Is(err, ErrMoved) {
			return false, err // what lies at our path is another supervisor's to write
		}
		if api.CodeOf(err) == api.CodeOwned {
			return r.settleOwned(err)
		}
		return r.failLaunch(err)
	}
	r.rt = rt
	return r.attend(ctx)
}

// underThisBoot corrects the record of an order that was taken up before a reboot and had begun nothing:
// otherwise what is started now would count as the other boot's.
func (r *run) underThisBoot() error {
	boot, err := proc.BootID()
	if err != nil || boot == r.st.BootID {
		return err
	}
	r.st.BootID = boot
	return r.save(session.Phase(r.st.Phase))
}

// environment is what the agent gets: the values that came with an order, else those on record if they are
// all (E4).
func (r *run) environment() (environ.Environment, []string) {
	r.s.mu.Lock()
	came, ok := r.s.envs[r.folder]
	if !ok && r.spec.Environment.Inherit {
		came.Environment, ok = r.s.homes[r.st.Session]
	}
	r.s.mu.Unlock()
	env, want := came.Environment, r.spec.Environment
	if !ok {
		env = environ.Environment{Vars: maps.Clone(want.Values), Secret: map[string]bool{}}
	}
	return env, env.Lacks(want.Names)
}

// needsEnv is why a process is not started whose environment nobody knows.
const needsEnv = "needs_env"

func (r *run) needEnv(ctx context.Context, names []string) {
	r.s.slots.withdraw(r.folder)
	r.wait(&api.WaitingFor{Kind: "needs_env", Names: names})
	r.pause(ctx, min(time.Minute, r.left()))
	r.wait(nil)
}

// prepare writes the records that a runtime needs before it is started: workspace, session with its journal, and
// the runtime's own, which is the intent. They are written side by side, since their syncs then share the disk's
// flushes; nothing is started before all of them are there, and whatever is missing after a death is made again.
func (r *run) prepare(ctx context.Context, env environ.Environment) (*runtime, error) {
	var w, s, x error
	var rt *runtime
	var all sync.WaitGroup
	all.Go(func() { w = r.prepareWorkspace(ctx) })
	all.Go(func() {
		if s = r.prepareSession(); s == nil {
			rt, s = r.openRuntime(env)
		}
	})
	all.Go(func() { x = r.prepareRuntime(ctx) })
	all.Wait()
	err := errors.Join(w, s, x)
	if err != nil && rt != nil {
		rt.release()
	}
	return rt, err
}

func (r *run) prepareRuntime(ctx context.Context) error {
	r.vanished.Store(false) // it may be another try's
	if err := r.s.dir.Mkdir("runtimes", r.st.RuntimeID); err != nil {
		return err
	}
	rec := record.Runtime{
		Version: record.Version, ID: r.st.RuntimeID, Token: r.token(), Folder: r.folder, Session: r.st.Session,
		Attempt: r.st.Attempt, Fence: r.st.Fence, BootID: r.st.BootID, Socket: r.socket(), CreatedAt: time.Now().UTC(),
		Spool: int64(r.s.o.Config.Limits.Spool), Shared: r.founds != nil,
	}
	if rec.Shared {
		rec.Cwd = r.dir()
	}
	return state.Put(ctx, r.s.dir, record.RuntimeFile(rec.ID), rec)
}

func (r *run) token() string  { return r.s.dir.HomeID() + "." + r.st.RuntimeID }
func (r *run) socket() string { return filepath.Join(filepath.Dir(r.s.self.Socket), r.st.RuntimeID) }

func (r *run) prepareWorkspace(ctx context.Context) error {
	if r.spec.Chore != nil || r.ordersTree() {
		return nil // it was there before
	}
	if err := r.s.dir.Mkdir("workspaces"); err != nil {
		return err
	}
	w := record.Workspace{Version: record.Version, ID: r.st.Workspace, Cwd: r.st.Cwd, Session: r.st.Session, CreatedAt: time.Now().UTC()}
	was, err := state.Read[record.Workspace](r.s.dir, record.WorkspaceFile(w.ID))
	if err == nil && (r.opens() || r.spec.Client != "") { // a message tells no changes of its own
		r.st.Worktree = was.Root
		return nil
	}
	repo, probeErr := r.s.probe(ctx, r.st.Cwd)
	if probeErr == nil {
		w.Repository, w.Branch, w.Base, w.Head = repo.CommonDir, repo.Branch, repo.Head, repo.Head
		r.st.Branch, r.st.Base, r.st.Head = repo.Branch, repo.Head, repo.Head
	}
	if err == nil && within(r.st.Cwd, was.Root) {
		r.st.Worktree = was.Root
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err // it is the session's, where that began
	}
	if err := r.s.lodge(&w); err != nil {
		return err
	}
	r.st.Worktree = w.Root
	return state.Put(ctx, r.s.dir, record.WorkspaceFile(w.ID), w)
}

// lodge has a workspace refer to the worktree of ours in which it is, if it is in one (X18).
func (s *Supervisor) lodge(w *record.Workspace) error {
	managed, linkErr := filepath.EvalSymlinks(s.dir.Path("worktrees"))
	inside := linkErr == nil && within(w.Cwd, managed)
	if w.Repository == "" && !inside {
		return nil
	}
	home, id, err := worktree.Owner(w.Cwd)
	switch ours := err == nil && home == s.dir.HomeID(); {
	case !ours && inside: // who works in it now would be in the way of who makes it, or lose what he writes
		return &treeless{"worktree_failed", fmt.Errorf("%s is no worktree of pintle's, or is being made or removed", w.Cwd)}
	case !ours:
		return nil
	}
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(id))
	if err != nil {
		return ignoreAbsent(err)
	}
	w.Worktree, w.Root = t.ID, t.Dir
	err = s.refer(t.ID, w.ID)
	crash.At("supervisor.lodged")
	return err
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	return root != "" && (dir == root || strings.HasPrefix(dir, root+string(filepath.Separator)))
}

// probe runs git, which must not be taken for an orphan meanwhile.
func (s *Supervisor) probe(ctx context.Context, dir string) (worktree.Repository, error) {
	s.forks.RLock()
	defer s.forks.RUnlock()
	return worktree.Probe(ctx, dir)
}

func (r *run) prepareSession() error {
	if err := r.s.dir.Mkdir("sessions", r.st.Session); err != nil {
		return err
	}
	// Durable with the record beside it.
	if err := os.Mkdir(r.s.dir.Path(record.JournalDir(r.st.Session)), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", state.Full(err))
	}
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if s.Version == 0 {
			*s = record.Session{
				Version: record.Version, ID: r.st.Session, Execution: r.folder, Workspace: r.st.Workspace,
				Provider: r.st.Provider, BootID: r.st.BootID, CreatedAt: time.Now().UTC(),
			}
			if r.spoken() {
				s.Enqueue(r.place())
			}
		}
		if err := r.admit(s); err != nil {
			return err
		}
		s.Fence = max(s.Fence, r.st.Fence)
		return nil
	})
}

// errArchived is for a run that would go on in a session that is archived (case 28).
var errArchived = errors.New("the session is archived")

// admit has an execution among those of a session. Into one that is archived, or about to be, nobody comes any more; who
// is in it is stopped by the archiving. What came in at the session's desk was admitted there, and is found by the journal and
// by its number: a conversation has thousands of messages.
func (r *run) admit(s *record.Session) error {
	switch {
	case r.spec.Client != "" || r.opens():
	case s.ArchivedAt != nil && !slices.Contains(s.Runs, r.folder):
		return errArchived
	default:
		s.Join(r.folder)
	}
	return nil
}

// launch notes the turn and starts the shim.
func (r *run) launch(rt *runtime, env environ.Environment) error {
	err := r.inTurn(func() error { return rt.beginWith(event("runtime_started", map[string]any{"runtime": r.st.RuntimeID})) })
	if err != nil {
		return err
	}
	if !r.s.ours() {
		return ErrMoved
	}
	crash.At("supervisor.turn")
	control, pid, err := shim.Launch(r.config(env), r.s.o.Log, r.s.o.Env)
	if err != nil {
		return err
	}
	rt.control, rt.shimPID = r.line(control, pid, env), pid
	crash.At("supervisor.launched")
	rt.flush()
	return nil
}

// own is what we set ourselves. A process that sessions share is none's of them.
func (r *run) own() map[string]string {
	vars := map[string]string{"PINTLE_HOME": r.s.dir.Path(), shim.TokenVariable: r.token()}
	if r.founds == nil {
		vars["PINTLE_EXECUTION"], vars["PINTLE_SESSION"] = r.st.ID, r.st.Session
	}
	return vars
}

// config is all that the shim needs. Ours are set last, so nothing overrides them (E3).
func (r *run) config(env environ.Environment) shim.Config {
	env = env.With(r.own())
	p, provider := r.spec.Payload, r.s.o.Providers[r.spec.Payload.Provider]
	args := p.Argv
	if provider.Args != nil {
		args = provider.Args(p.AgentArgs)
	}
	return shim.Config{
		Runtime: r.st.RuntimeID, Home: r.s.dir.Path(), Token: r.token(), Socket: r.socket(), Epoch: r.s.self.Epoch,
		Path: r.program(), Args: args, Env: env.List(), Dir: r.dir(), Umask: r.spec.Environment.Umask,
		Stdin: provider.Stdin, Deadline: int64(r.spec.Desired.Deadline),
		SpoolLimit: int64(r.s.o.Config.Limits.Spool), SupervisorEnv: r.s.o.Env, Hold: len(r.spec.Environment.Secrets) > 0,
	}
}

// program is what is started: a relative path is one in the worktree that was ordered.
func (r *run) program() string {
	if r.ordersTree() && r.spec.Tree.Program != "" {
		return filepath.Join(r.st.Cwd, r.spec.Tree.Program)
	}
	return r.spec.Path
}

// failLaunch is for a shim that could not be started, so that nothing has begun: tried again, a few times,
// after a while (B2).
func (r *run) failLaunch(why error) (bool, error) {
	if errors.Is(why, state.ErrFull) {
		return false, why // no try: it goes on when there is space
	}
	tries := r.s.o.Config.Recovery.Tries
	c := cause("shim_exited", why.Error())
	c.Try, c.Disposition = r.st.Try, "exhausted"
	if r.st.Try >= tries || r.opens() { // of openings the session's own policy says when there is another
		return r.settleUnstarted(session.Ending{Refused: true}, c)
	}
	next := time.Now().Add(time.Duration(r.s.o.Config.Recovery.Delay)).UTC()
	c.Retryable, c.Disposition, c.NextTryAt = true, "retryable", &next
	r.st.Cause, r.st.WaitingFor = c, &api.WaitingFor{Kind: "retry", Until: &next}
	r.st.Try++
	return false, r.again()
}

// again gives the attempt another runtime: the one before began nothing. That one is marked first, durably,
// so that a shim of it that is late to its lock finds the mark and begins nothing. Its id is never used again.
func (r *run) again() error {
	old := r.st.RuntimeID
	if err := r.s.abandon(old); err != nil {
		return err
	}
	crash.At("supervisor.abandoned")
	r.st.RuntimeID = newID("x")
	if boot, err := proc.BootID(); err == nil {
		r.st.BootID = boot
	}
	if err := r.save(session.Phase(r.st.Phase)); err != nil {
		return err
	}
	return r.quit(old)
}

// abandon marks a runtime under which nothing was begun: nothing ever will be.
func (s *Supervisor) abandon(id string) error {
	if _, err := os.Stat(s.dir.Path("runtimes", id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return state.Put(s.ctx, s.dir, shim.AgentFile(id), shim.Agent{
		Version: record.Version, State: shim.Abandoned, StartedAt: time.Now(),
	})
}

func event(kind string, data map[string]any) journal.Event {
	e := journal.Event{Type: kind}
	if len(data) > 0 {
		e.Data, _ = json.Marshal(data) // plain values: cannot fail
	}
	return e
}
