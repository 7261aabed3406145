package supervisor

import (
	"context"
	"errors"
	"syscall"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// attend stays with a running agent: it takes in what the shim tells, does what is wanted, and settles the
// end. It returns early, without an end, when the shim is lost or something could not be recorded; the
// next step then begins from the records.
func (r *run) attend(ctx context.Context) (ended bool, err error) {
	r.wait(nil)
	l := newLadder(r)
	defer func() {
		if !ended && r.rt != nil {
			r.rt.release()
			r.rt = nil
		}
	}()
	if err := r.permissions(); err != nil { // what was answered before is heard before anything new
		return false, err
	}
	for {
		select {
		case ev, ok := <-r.rt.control.Events():
			if !ok {
				r.orphaned = r.st.Runtime == nil
				return false, nil
			}
			if ev.Exit != nil {
				return r.settleExit(*ev.Exit)
			}
			err = r.hear(ev, l)
		case q := <-r.answers:
			err = r.hearAnswer(q)
		case m := <-r.steers:
			err = r.hearSteering(m)
		case <-r.poked:
			err = r.reload()
		case <-l.timer():
		case <-ctx.Done():
			return false, nil
		}
		if err == nil {
			err = r.permissions()
		}
		if err == nil {
			err = r.fates(false)
		}
		if err == nil {
			err = l.climb()
		}
		if err != nil {
			return false, err
		}
		switch {
		case l.resting:
			return r.rest()
		case l.parted:
			return r.moveOut()
		}
	}
}

// hear takes in one message of the shim's.
func (r *run) hear(ev shim.Event, l *ladder) error {
	if ev.Started != nil {
		return r.started(ev.Started)
	}
	if ev.Written != nil {
		if ev.Written.Op == r.rt.about().Prompt && ev.Written.Error == "" {
			if err := r.handedOver(); err != nil {
				return err
			}
		}
		r.rt.written(ev.Written)
		return nil
	}
	if err := r.rt.take(providers.Stdout, ev.Out, false); err != nil {
		return err
	}
	if err := r.rt.take(providers.Stderr, ev.Err, false); err != nil {
		return err
	}
	if r.rt.lively {
		r.rt.lively = false
		l.heard()
	}
	return r.learn()
}

// started notes the process. Its identity is on disk already, by the shim (O1).
func (r *run) started(a *shim.Agent) error {
	if a.Agent == nil {
		return nil
	}
	r.shim = a.Shim
	r.st.Runtime = &api.Runtime{
		ID: r.st.RuntimeID, PID: a.Agent.PID, PGID: a.PGID, StartTicks: a.Agent.StartTicks, BootID: a.Agent.BootID,
	}
	if r.kept {
		return nil // the run that had it is over
	}
	if r.st.StartedAt == nil {
		at := a.StartedAt.UTC()
		r.st.StartedAt = &at
	}
	crash.At("supervisor.started")
	if len(r.st.Permissions) > 0 {
		return r.save(session.Waiting) // it asks already
	}
	r.st.WaitingFor = nil
	return r.save(session.Running)
}

// reload reads what is wanted anew.
func (r *run) reload() error {
	st, rt := r.st, r.rt
	err := r.load()
	r.st, r.rt = st, rt // the status is ours; only the spec has another writer
	return err
}

// signal takes one step. The last has no signal: SIGKILL had no effect through the shim, so the shim is
// frozen; it is ended, identity checked, and the sweep that follows its death proves the end.
func (r *run) signal(sig syscall.Signal) error {
	switch sig {
	case askToEnd:
		return r.rt.interrupt()
	case endInput:
		_ = r.rt.control.End()
		return nil
	}
	if sig != 0 {
		_ = r.rt.control.Signal(sig) // a broken connection shows in Events
		return nil
	}
	r.s.forcing(r.st.RuntimeID)
	if r.st.Runtime == nil { // it has not said who it is: its record does
		a, err := state.Read[shim.Agent](r.s.dir, shim.AgentFile(r.st.RuntimeID))
		if err != nil {
			return ignoreAbsent(err)
		}
		r.shim = a.Shim
	}
	if err := proc.Signal(r.shim, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	return nil
}

// isStopping reports whether all runtimes are to be ended.
func (s *Supervisor) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}
