package supervisor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// recoverSession has a session that is parked be started again, and looks anew at one whose owner is uncertain.
func (s *Supervisor) recoverSession(ctx context.Context, t api.RecoverSession) (any, error) {
	id, err := s.sessionNamed(t.Session)
	if err != nil {
		return nil, err
	}
	if s.isStopping() {
		return nil, api.E(api.CodeStopping, "the supervisor is being stopped")
	}
	if err := s.unpark(ctx, id); err != nil {
		return nil, err
	}
	if t.AssertDead {
		if err := s.assertDead(ctx, id); err != nil {
			return nil, err
		}
	}
	s.pokeAll() // what was stored meanwhile
	s.mend(id)
	return s.viewSession(id)
}

// unpark has a session that is parked be started again: at once, if a client holds it.
func (s *Supervisor) unpark(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, s.operationLimit())
	defer cancel()
	d, done := s.desk(id)
	defer done()
	release, err := d.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	leased := s.leased(id)
	return d.change(ctx, func(r *record.Session) error {
		if r.Restart.Parked == nil {
			return nil
		}
		now := time.Now().UTC()
		if r.Restart = r.Restart.Recovered(); leased {
			r.Restart.NextAt = &now
		}
		return nil
	})
}

// assertDead has the process of a session taken for dead, since the user says so: its shim is ended, and what is below it.
func (s *Supervisor) assertDead(ctx context.Context, id string) error {
	if k := s.keeperOf(id); k != nil {
		return s.closeKept(ctx, k, "said to be dead")
	}
	if err := s.setAside(ctx, id); err != nil {
		return err
	}
	folder, err := s.running(id)
	if err != nil || folder == "" {
		return err
	}
	_, err = s.recoverRun(ctx, folder, api.Recover{ID: folder, AssertDead: true})
	return err
}

// setAside ends what is left of a session's runtimes that nobody can go on with, since it cannot be read whose they are, and
// puts their directories beside the other damaged records: killed before that, it is done again.
func (s *Supervisor) setAside(ctx context.Context, id string) error {
	for _, rec := range s.runtimesOf(id) {
		if _, err := s.tenureOf(rec.ID, id); rec.Shared || !errors.Is(err, errUnsure) {
			continue
		}
		if !s.settled(rec.ID) {
			if err := s.endShim(ctx, rec.ID); err != nil {
				return err
			}
		}
		if !s.settled(rec.ID) {
			return api.E(api.CodeBusy, "runtime %s of session %s goes on", rec.ID, id).WithNext("pintle doctor")
		}
		if err := s.dir.Mkdir("quarantine"); err != nil {
			return err
		}
		crash.At("supervisor.set_aside")
		if err := os.Rename(s.dir.Path("runtimes", rec.ID), s.dir.Path("quarantine", rec.ID)); err != nil {
			return err
		}
	}
	return nil
}
