package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// superviseVerb is `pintle supervise`.
type superviseVerb struct {
	Run     superviseRun     `cmd:"" default:"withargs" help:"Supervise, in the foreground."`
	Status  superviseStatus  `cmd:"" help:"Say whether a supervisor runs, and what it holds."`
	Stop    superviseStop    `cmd:"" help:"End all runs and the supervisor."`
	Restart superviseRestart `cmd:"" help:"Replace the supervisor; runs go on."`
}

type superviseRun struct {
	output
	Ready bool `hidden:"" help:"Say so on descriptor 3, and wait for one that is leaving."`
}

// Run supervises until it is told to leave. SIGTERM and SIGINT leave the runtimes to their shims.
func (v *superviseRun) Run(a *app) error {
	debug.SetGCPercent(100) // it lives long
	d, err := a.open(a.ctx)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(a.ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o := supervisor.Options{
		Dir: d, Config: cfg, Providers: drivers(), Version: Version, Env: a.supervisorEnv(d), Log: os.Stderr, Locate: a.located,
	}
	o.Wait = lookWait
	if v.Ready {
		ready := os.NewFile(3, "ready")
		o.Wait = reachLimit / 2
		o.Ready = func() { _, _ = ready.Write([]byte{1}); _ = ready.Close() }
	}
	err = supervisor.Run(ctx, o)
	if errors.Is(err, supervisor.ErrRunning) {
		return api.E(api.CodeOwned, "%w", err).WithNext("pintle supervise status")
	}
	return err
}

// lookWait is how long the lock is tried for that somebody may hold for an instant, looking whether it is held.
const lookWait = 200 * time.Millisecond

type superviseStatus struct{ output }

// Run asks the supervisor, or looks at the records if there is none. It starts nothing.
func (v *superviseStatus) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	st := api.Supervisor{Runtimes: []api.RuntimeSummary{}}
	if d != nil {
		st.Runtimes = supervisor.Runtimes(d)
		st.Sessions = len(st.Runtimes)
		if err := a.status(d, &st); err != nil {
			return err
		}
	}
	held := fmt.Sprintf("%d runtimes", len(st.Runtimes))
	if len(st.Runtimes) == 1 {
		held = "1 runtime"
	}
	switch {
	case v.JSON:
		a.print(st)
	case st.Frozen:
		fmt.Fprintf(a.stdout, "running, and does not answer: pid %d, epoch %d, %s\n", st.PID, st.Epoch, held)
	case st.Running:
		fmt.Fprintf(a.stdout, "running: pid %d, epoch %d, %s\n", st.PID, st.Epoch, held)
	default:
		fmt.Fprintf(a.stdout, "not running; %s\n", held)
	}
	if st.Frozen {
		a.say("hint: pintle supervise restart --force")
		return exit(api.CodeUnreachable.Exit())
	}
	return nil
}

// status asks the supervisor. One that holds its lock and does not answer is told from its record.
func (a *app) status(d *state.Dir, st *api.Supervisor) error {
	ctx, cancel := context.WithTimeout(a.ctx, helloLimit)
	defer cancel()
	c, _, err := dial(ctx, d)
	if err == nil {
		defer c.Close()
		err = c.Call(ctx, api.MethodStatus, struct{}{}, st)
	}
	switch {
	case err == nil || a.ctx.Err() != nil:
		return err
	case ctx.Err() == nil && typed(err).Code != api.CodeUnreachable && c != nil:
		return err
	}
	if rec, err := supervisorOf(d); err == nil && supervised(d) {
		st.Running, st.Frozen, st.PID, st.Epoch = true, true, rec.PID, rec.Epoch
		st.Socket, st.Version, st.StartedAt = rec.Socket, rec.Release, &rec.StartedAt
	}
	return nil
}

// supervised reports whether a supervisor lives, whether it answers or not.
func supervised(d *state.Dir) bool {
	unlock, err := state.TryShared(d.Path(supervisor.LockFile))
	if err == nil {
		unlock()
	}
	return errors.Is(err, state.ErrLocked)
}

type superviseStop struct{ output }

// Run ends all runs and the supervisor. Where only shims are left, a supervisor is started to end them.
func (v *superviseStop) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	if d == nil || (!supervised(d) && len(supervisor.Runtimes(d)) == 0) {
		a.say("no supervisor is running")
		return nil
	}
	return a.dismiss(d, true)
}

// serving reports whether a supervisor answers.
func serving(ctx context.Context, d *state.Dir) bool {
	c, _, err := dial(ctx, d)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// dismiss asks the supervisor to go and waits until its lock is free. One that was being started meanwhile and
// came to the lock next is asked as well.
func (a *app) dismiss(d *state.Dir, runtimes bool) error {
	c, err := a.reach(a.ctx, d)
	for err == nil {
		rec, _ := supervisorOf(d)
		err = c.Call(a.ctx, api.MethodSupervisor, api.Leave{Runtimes: runtimes}, nil)
		c.Close()
		if err != nil && typed(err).Code != api.CodeUnreachable {
			return err
		}
		died := err != nil && runtimes // before it had ended them all
		var left bool
		if left, err = a.gone(d, rec); err != nil || (left && !died) {
			return err
		}
		if left {
			c, err = a.reach(a.ctx, d)
			continue
		}
		if c, _, err = dial(a.ctx, d); err != nil && !supervised(d) {
			return nil // that one has gone by itself
		}
	}
	return err
}

// gone waits until no supervisor holds the lock; it returns false when another one than rec serves by now.
func (a *app) gone(d *state.Dir, rec supervisor.Record) (bool, error) {
	ctx, cancel := context.WithTimeout(a.ctx, reachLimit)
	defer cancel()
	for ctx.Err() == nil {
		if !supervised(d) {
			return true, nil
		}
		if now, err := supervisorOf(d); err == nil && now.Identity != rec.Identity && serving(ctx, d) {
			return false, nil
		}
		pause(ctx, 5*time.Millisecond)
	}
	return false, api.E(api.CodeUnreachable, "the supervisor does not leave").WithNext("pintle supervise restart --force")
}

type superviseRestart struct {
	output
	Force bool `help:"Kill one that is frozen; its identity is checked."`
}

// Run replaces the supervisor. Runtimes stay with their shims and are adopted by the next one.
func (v *superviseRestart) Run(a *app) error {
	d, err := a.open(a.ctx)
	if err != nil {
		return err
	}
	if v.Force {
		err = a.kill(d)
	} else if supervised(d) {
		err = a.dismiss(d, false)
	}
	if err != nil {
		return err
	}
	c, err := a.reach(a.ctx, d)
	if err == nil {
		c.Close()
	}
	return err
}

// kill ends the very process that the record names.
func (a *app) kill(d *state.Dir) error {
	rec, err := supervisorOf(d)
	if err != nil {
		return err
	}
	if err := proc.Signal(rec.Identity, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	return proc.Await(a.ctx, rec.Identity)
}
