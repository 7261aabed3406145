package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// A stop ends every runtime, and nothing is started behind it: not by what was about to open a session again, which is waited
// for first, and not by the next supervisor, since no restart is due any more (R5).

// endAll ends every runtime and takes no more work. What cannot be settled, or be proven to have ended without force, is
// reported, and then the supervisor stays: it serves what is on record until a stop succeeds (R6).
func (s *Supervisor) endAll(ctx context.Context) error {
	s.mu.Lock()
	s.stopping, s.forced = true, nil
	s.mu.Unlock()
	s.menders.Wait() // from now on nobody gives the order for an opening
	s.findOrders()
	for _, r := range s.driven() {
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.closeAllKept(ctx)
	for _, r := range s.untidied() {
		select {
		case <-r.quitted:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.evictions.Wait()
	left := s.endUnsettled(ctx)
	if err := s.restNoMore(ctx); err != nil {
		left = append(left, err.Error())
	}
	return s.unproven(left)
}

// driven are all runs, which are to look at what is wanted of them.
func (s *Supervisor) driven() (runs []*run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.wake()
		runs = append(runs, r)
	}
	return runs
}

// untidied are the runs that have ended, and whose runtimes are about to be removed.
func (s *Supervisor) untidied() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.tidying))
}

// forcing notes that a runtime is ended by force, in a stop: it could not be told to end, or did not.
func (s *Supervisor) forcing(runtime string) {
	who := s.executionOf(runtime) + " was ended by force, since its shim did not end it"
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping && !slices.Contains(s.forced, who) {
		s.forced = append(s.forced, who)
	}
}

// unproven is an error if something was left, or was ended by force.
func (s *Supervisor) unproven(left []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left = append(left, s.forced...); len(left) == 0 {
		return nil
	}
	return api.E(api.CodeCorrupt, "not closed: %s", strings.Join(left, "; ")).WithNext("pintle doctor, and pintle supervise stop once more")
}

// restNoMore has no restart be due any more, in no session.
func (s *Supervisor) restNoMore(ctx context.Context) error {
	s.mu.Lock()
	held := slices.Collect(maps.Keys(s.leases))
	s.mu.Unlock()
	for _, id := range held {
		err := state.Update(ctx, s.dir, record.SessionFile(id), func(r *record.Session) error {
			if r.Version == 0 {
				return errGone
			}
			r.Restart = r.Restart.Released()
			return nil
		})
		if ignoreAbsent(err) != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
	}
	return nil
}
