package supervisor

import (
	"context"
	"time"

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
	folder, err := s.running(id)
	if err != nil || folder == "" {
		return err
	}
	_, err = s.recoverRun(ctx, folder, api.Recover{ID: folder, AssertDead: true})
	return err
}
