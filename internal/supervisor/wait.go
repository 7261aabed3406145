package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

// wait answers once the attempt has ended, or waits for somebody. A later one may have been ordered by then, and
// that one's outcome is nobody's who waited for an earlier one.
func (s *Supervisor) wait(ctx context.Context, w api.Wait) (any, error) {
	far, err := farOf(w.Until)
	if err != nil {
		return nil, err
	}
	folder, err := record.Find(s.dir, w.ID)
	if err != nil {
		return nil, err
	}
	if w.Answers {
		defer s.attend(folder)()
	}
	for {
		if e, err := record.View(s.dir, folder); err == nil {
			if was, past := record.AsOf(e, w.Attempt); past {
				return was, nil
			}
			if e.EndedAt != nil && session.Phase(e.Phase) == session.Ended {
				return e, nil
			}
		}
		if r := s.driver(folder); r != nil && far != nil {
			return r.awaitDelivery(ctx, far)
		} else if r != nil {
			if e, err := r.await(ctx, w.Answers); err != nil || e != nil {
				return e, err
			}
			continue
		}
		e, err := record.View(s.dir, folder)
		if err != nil || session.Phase(e.Phase) == session.Ended {
			return e, err
		}
		// Another attempt was ordered between the two looks: wait for that one.
		if _, err := s.unended(folder); err != nil {
			return nil, err
		}
	}
}

// awaitDelivery returns once a run's prompt has come so far, its end has, or nothing goes on before somebody brings a value.
func (r *run) awaitDelivery(ctx context.Context, far func(api.Delivery) bool) (any, error) {
	err := r.reach(ctx, func(d api.Delivery, w *api.WaitingFor) bool {
		return far(d) || w != nil && w.Kind == "needs_env" && !r.provided(w.Names)
	})
	if err != nil {
		return nil, err
	}
	if r.s.ctx.Err() != nil {
		return nil, api.E(api.CodeStopping, "the supervisor leaves")
	}
	return r.view()
}

// driver is the run of an execution that has not ended, nil if it has or nobody could drive it.
func (s *Supervisor) driver(folder string) *run {
	if open, err := s.unended(folder); err != nil || !open {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.runs[folder]
	}
	return s.ensure(folder)
}

// await returns nil when the run is done, and the execution when it waits for somebody.
func (r *run) await(ctx context.Context, answers bool) (*api.Execution, error) {
	for {
		r.mu.Lock()
		waiting, changed := r.waiting, r.changed
		r.mu.Unlock()
		if waiting != nil && waiting.Kind == "needs_env" && !r.provided(waiting.Names) {
			e, err := r.viewWaiting(waiting) // by now it may look whether the values came
			return &e, err
		}
		if waiting != nil && waiting.Kind == "needs_approval" && !answers {
			seen, err := record.View(r.s.dir, r.folder)
			if err != nil || session.Phase(seen.Phase) != session.Ended { // else its agent is gone, and the end is being taken in
				e, err := r.viewWaiting(waiting)
				return &e, err
			}
		}
		select {
		case <-changed:
		case <-r.done:
			if r.s.ctx.Err() != nil {
				return nil, api.E(api.CodeStopping, "the supervisor leaves")
			}
			return nil, r.failure()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// provided reports whether an order has brought values that the run waits for: it goes on with them in an
// instant.
func (r *run) provided(names []string) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	env, ok := r.s.envs[r.folder]
	return ok && len(env.Lacks(names)) == 0
}

// failure is why a run that is done has not ended: its records cannot be read.
func (r *run) failure() error {
	open, err := r.s.unended(r.folder)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if open && r.blocker != nil {
		return fmt.Errorf("%s: %w", r.name(), r.blocker)
	}
	return nil
}

// ended returns once the attempt that is to be cancelled has ended, whatever it waits for meanwhile.
func (s *Supervisor) ended(ctx context.Context, folder string) error {
	spec, err := record.SpecOf(s.dir, folder)
	if err != nil || spec.Desired.Cancel == nil {
		return err
	}
	for {
		st, err := record.StatusOf(s.dir, folder)
		past := st.Attempt > spec.Desired.Cancel.Attempt
		if past || (st.Attempt == spec.Desired.Cancel.Attempt && session.Phase(st.Phase) == session.Ended) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r := s.ensure(folder)
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.failure(); err != nil {
			return err
		}
		if s.ctx.Err() != nil {
			return api.E(api.CodeStopping, "the supervisor leaves")
		}
	}
}

// waits is closed when the run comes to wait for somebody.
func (r *run) waits() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// isWaiting reports whether the run waits for somebody now.
func (r *run) isWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting != nil
}
