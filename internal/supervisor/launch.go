package supervisor

import (
	"cmp"
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

// newID makes an id of the given kind: s sessions, w workspaces, x runtimes.
func newID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return kind + "-" + hex.EncodeToString(b[:])
}

// begin starts the agent of an attempt that has begun nothing, or gives it a process that is there, and stays with it.
func (r *run) begin(ctx context.Context) (bool, error) {
	env, clear, ended, err := r.clears(ctx)
	if !clear || err != nil {
		return ended, err
	}
	came, ended, err := r.comesIn(ctx, env)
	if api.CodeOf(err) == api.CodeOwned {
		return r.settleOwned(err)
	}
	if came || err != nil {
		return ended, err
	}
	return r.start(ctx, env)
}

// clears sees to what comes before any process: the turn, the environment, the time of the next try, the worktree. If one is
// wanting, the records are looked at anew.
func (r *run) clears(ctx context.Context) (env environ.Environment, clear, ended bool, err error) {
	if waits, err := r.behindOthers(ctx); waits || err != nil { // nothing was told of it yet
		return env, false, false, err
	}
	if fenced, ended, err := r.fenced(); fenced {
		return env, false, ended, err
	}
	r.fresh = false
	env, missing := r.environment()
	switch {
	case len(missing) > 0 && r.reopens(): // who knew them is dead: a message that brings them starts the process
		ended, err = r.settleUnstarted(session.Ending{}, cause(needsEnv, fmt.Sprintf("the values of %v are on no record", missing)))
		return env, false, ended, err
	case len(missing) > 0:
		r.needEnv(ctx, missing)
		return env, false, false, nil
	case !r.due(ctx):
		return env, false, false, nil
	case r.ordersTree():
		clear, ended, err = r.housed(ctx, env)
		return env, clear, ended, err
	}
	return env, true, false, nil
}

// comesIn has the run have its turn: in the process that is kept for its session, or in one that it may share. If it did not
// come into one, and may, it starts its own.
func (r *run) comesIn(ctx context.Context, env environ.Environment) (came, ended bool, err error) {
	goesOn, err := r.goesOn()
	if err != nil {
		return true, false, err
	}
	mine := false
	var kept *runtime
	if goesOn {
		kept, mine, err = r.comeOn(ctx, env)
	} else {
		mine, err = r.admittedAlone(ctx)
	}
	switch {
	case err != nil || !mine:
		return true, false, err
	case kept != nil:
		ended, err = r.goOn(ctx, kept)
		return true, ended, err
	case !r.shares():
		return false, false, nil
	}
	return r.comesToOthers(ctx, env)
}

// comesToOthers has the run come into a process that sessions share, if there is one; else it is about to start one, which
// others may find.
func (r *run) comesToOthers(ctx context.Context, env environ.Environment) (came, ended bool, err error) {
	seat, start, err := r.seek(ctx, env)
	switch {
	case errors.Is(err, errWanted):
		return true, false, nil
	case err != nil:
		return true, false, err
	case seat == nil:
		return false, false, nil
	}
	ended, err = r.moveIn(ctx, env, seat, start)
	return true, ended, err
}

// start starts a process for the run.
func (r *run) start(ctx context.Context, env environ.Environment) (bool, error) {
	defer r.abandonFounding()
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
		switch {
		case errors.Is(err, ErrMoved):
			return false, err // what lies at our path is another supervisor's to write
		case api.CodeOf(err) == api.CodeOwned:
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

func (r *run) token() string  { return r.s.dir.HomeID() + "." + r.st.RuntimeID }
func (r *run) socket() string { return filepath.Join(filepath.Dir(r.s.self.Socket), r.st.RuntimeID) }

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
	started := r.startedAs(rt.order)
	if err := cmp.Or(r.lay(started.Files), r.putAside(rt.order, env.Vars)); err != nil {
		return err
	}
	control, pid, err := shim.Launch(r.config(env.With(started.Env), rt.order, started.Args), r.s.o.Log, r.s.o.Env)
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
func (r *run) config(env environ.Environment, o providers.Order, args []string) shim.Config {
	env = env.With(r.own())
	return shim.Config{
		Runtime: r.st.RuntimeID, Home: r.s.dir.Path(), Token: r.token(), Socket: r.socket(), Epoch: r.s.self.Epoch,
		Path: r.program(), Args: args, Env: env.List(), Dir: r.dir(), Umask: r.spec.Environment.Umask,
		Stdin: r.spoken(), Guard: r.guard(o), Deadline: int64(r.spec.Desired.Deadline),
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
