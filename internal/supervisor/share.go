package supervisor

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
)

// offer is what makes two processes of an agent equal, so that one can serve in the other's place. The environment is
// compared in memory and is on no record.
type offer struct {
	controller, provider string
	program              record.Program
	args                 []string
	options              map[string]string
	umask                int
	vars                 map[string]string
	// dir is the directory in which the process must have been started, "" if any will do: the conversation states its own.
	dir string
}

// offered is what the run's process would be.
func (r *run) offered(env environ.Environment) *offer {
	p := r.spec.Payload
	o := &offer{
		controller: r.spec.Controller, provider: p.Provider, program: r.spec.Program, args: p.AgentArgs, options: p.Options,
		umask: r.spec.Environment.Umask, vars: theirs(env.Vars),
	}
	o.program.Path = r.program()
	if !r.provider().Roams(providers.Order{Cwd: r.st.Cwd, Approve: p.Approve}) {
		o.dir = r.st.Cwd
	}
	return o
}

// fits reports whether a process that was started in cwd for this can serve what is wanted. s.mu is held.
func (h *hub) fits(want *offer) bool {
	has := h.offer
	return has != nil && has.controller == want.controller && has.provider == want.provider && has.program.Equal(want.program) &&
		slices.Equal(has.args, want.args) && maps.Equal(has.options, want.options) && has.umask == want.umask &&
		maps.Equal(has.vars, want.vars) && (want.dir == "" || want.dir == h.cwd)
}

// shares reports whether the run may share its agent's process: what is a secret of one session's would not be masked in
// another's.
func (r *run) shares() bool {
	return r.spec.Limits.Share && r.provider().Owner != nil && len(r.spec.Environment.Secrets) == 0
}

// dir is where the run's process is started.
func (r *run) dir() string {
	if r.founds != nil {
		return r.founds.cwd
	}
	return r.st.Cwd
}

// housedByUs reports whether the run is in a worktree of pintle's.
func (r *run) housedByUs() bool {
	managed, err := filepath.EvalSymlinks(r.s.dir.Path("worktrees"))
	return r.st.Worktree != "" || err == nil && within(r.st.Cwd, managed)
}

// seek finds a process that the run can share, waiting until it can be joined. With none, others that come find the one
// that the run starts itself, from now on.
func (r *run) seek(ctx context.Context, env environ.Environment) (s *seat, start *joined, err error) {
	want := r.offered(env)
	if want.dir != "" && r.housedByUs() {
		return nil, nil, nil // it would be in the way of the worktree's removal
	}
	for {
		h, leave := r.s.fitting(want, r)
		if h == nil {
			return nil, nil, nil
		}
		if err := r.untilGreeted(ctx, h); err != nil {
			leave()
			return nil, nil, err
		}
		if s, start, err := h.join(r, leave); s != nil || err != nil {
			return s, start, err
		}
		r.s.withdraw(h, leave)
	}
}

// fitting is the process that fits; or the run's own one is to be found by others.
func (s *Supervisor) fitting(want *offer, r *run) (h *hub, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hubs {
		if h.fits(want) {
			return h, s.holdHub(h)
		}
	}
	h = s.newHub(r.st.RuntimeID)
	if h.cwd = r.st.Cwd; r.housedByUs() {
		h.cwd = "/" // it outlives this run's worktree
	}
	h.offer, r.founds, r.unfound = want, h, s.holdHub(h)
	return nil, nil
}

// withdraw has nobody find a process that takes none.
func (s *Supervisor) withdraw(h *hub, leave func()) {
	s.mu.Lock()
	h.offer = nil
	s.mu.Unlock()
	leave()
}

// abandonFounding is for a run that could not start the process that others wait for.
func (r *run) abandonFounding() {
	if r.founds == nil {
		return
	}
	h, leave := r.founds, r.unfound
	r.founds, r.unfound = nil, nil
	h.mu.Lock()
	h.shut()
	h.mu.Unlock()
	r.s.withdraw(h, leave)
}

// untilGreeted waits until a process can be joined, or will not be.
func (r *run) untilGreeted(ctx context.Context, h *hub) error {
	for {
		select {
		case <-h.greeted:
			return nil
		case <-h.closed:
			return nil
		case <-r.poked:
			if err := r.reload(); err != nil {
				return err
			}
			if r.wanted() || r.left() == 0 {
				return errWanted
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// line is the run's line to the shim that it has started.
func (r *run) line(c *shim.Control, pid int, env environ.Environment) line {
	if r.founds == nil {
		return c
	}
	h, leave := r.founds, r.unfound
	r.founds, r.unfound = nil, nil
	h.mu.Lock()
	h.connect(c, pid)
	h.env = env.List()
	s, _ := h.seated(r.st.Session, r.folder, leave)
	h.mu.Unlock()
	_ = s.Deadline(r.spec.Desired.Deadline)
	return s
}

// joined is what a session finds in a process that it comes into: its own part of the output begins behind all that is there.
type joined struct {
	out, errs int64
	agent     api.Runtime
}

// join gives the run a part in the process, nil if that takes nobody. The part is held in memory until it is on disk.
func (h *hub) join(r *run, leave func()) (*seat, *joined, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isShut() || h.control == nil || time.Since(h.agent.StartedAt) >= maxAge {
		return nil, nil, nil
	}
	if m := h.members[r.st.Session]; m != nil && m.seat != nil {
		leave()
		return nil, nil, errTaken
	}
	// What an earlier run of the session left there was settled: its turn is over.
	if err := ignoreAbsent(os.Remove(h.s.dir.Path(partFile(h.id, r.st.Session)))); err != nil {
		leave()
		return nil, nil, err
	}
	delete(h.members, r.st.Session)
	s, _ := h.seated(r.st.Session, r.folder, leave)
	m := h.members[r.st.Session]
	m.out, m.errs = h.out, h.errs
	a := h.agent
	r.shim, r.st.AgentVersion = a.Shim, h.version
	return s, &joined{h.out, h.errs, api.Runtime{
		ID: h.id, PID: a.Agent.PID, PGID: a.PGID, StartTicks: a.Agent.StartTicks, BootID: a.Agent.BootID,
	}}, nil
}

// moveIn gives the run to a process that others have. The write of its fold file is what makes a part of that its own: it
// has the order and the tenure in one. Killed before it, nothing of the run is known to the agent, and it looks for a
// process anew; after it, its part is adopted.
func (r *run) moveIn(ctx context.Context, env environ.Environment, s *seat, start *joined) (bool, error) {
	rt, err := r.join(ctx, env, s, start)
	if err != nil {
		if rt == nil {
			s.Close()
		} else {
			rt.release()
		}
		r.rt = nil
		if !r.mine(s.h.id) {
			err = errors.Join(err, r.quit(s.h.id))
		}
		return false, err
	}
	_ = rt.control.Deadline(r.spec.Desired.Deadline)
	rt.flush()
	return r.attend(ctx)
}

func (r *run) join(ctx context.Context, env environ.Environment, s *seat, start *joined) (rt *runtime, err error) {
	now := time.Now().UTC()
	r.st.RuntimeID, r.st.BootID, r.st.Runtime, r.st.StartedAt, r.st.WaitingFor = s.h.id, start.agent.BootID, &start.agent, &now, nil
	var looked, opened error
	var both sync.WaitGroup
	both.Go(func() { looked = r.prepareWorkspace(ctx) }) // before the agent changes anything
	both.Go(func() {
		if opened = r.prepareSession(); opened == nil {
			rt, opened = r.openRuntime(env)
		}
	})
	both.Wait()
	if err := errors.Join(looked, opened); err != nil {
		return rt, err
	}
	rt.control, rt.shimPID, rt.partial, r.rt = s, s.pid(), false, rt
	rt.at.Out, rt.at.Err = start.out, start.errs
	rt.checkpoint = start.out + start.errs
	rt.tenure = &tenure{Since: now, Joined: true}
	if err := r.save(session.Running); err != nil {
		return rt, err
	}
	crash.At("supervisor.joining")
	err = r.inTurn(func() error { return rt.beginOnce("runtime_joined") })
	crash.At("supervisor.turn")
	return rt, err
}

// pid is the shim's, if this supervisor has started it.
func (s *seat) pid() int {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.pid
}

// hold takes hold of the shim of a runtime that is on record: with a connection, or, of one that sessions share, with the
// session's seat.
func (r *run) hold(ctx context.Context, rec record.Runtime) (line, *shim.Event, error) {
	if !rec.Shared {
		c, err := r.greet(ctx, rec.Socket)
		if err != nil {
			return nil, nil, err
		}
		return c, c.Hello, nil
	}
	h, leave := r.s.hubOf(rec.ID)
	s, hello, err := h.adopt(ctx, r, rec.Socket, leave)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return s, hello, nil
}

// dead takes the lock of the run's runtime as the proof that its shim is dead.
func (r *run) dead() (release func(), err error) {
	id := r.st.RuntimeID
	if !r.s.isShared(id) {
		return shim.Dead(r.s.dir, id)
	}
	h, leave := r.s.hubOf(id)
	unlock, err := h.dead()
	if err != nil {
		leave()
		return nil, err
	}
	return func() { unlock(); leave() }, nil
}

// reopen has others find a process again that was adopted for a session.
func (rt *runtime) reopen(rec record.Runtime) {
	s := rt.seat()
	if s == nil {
		return
	}
	if want := rt.r; want.spec.Path != "" && !s.h.isShut() {
		s.h.s.mu.Lock()
		s.h.offer, s.h.cwd = want.offered(rt.env), rec.Cwd
		s.h.s.mu.Unlock()
	}
	rt.welcome()
}
