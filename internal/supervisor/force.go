package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/state"
)

// endUnsettled ends the shims that live though every run was driven as far as it could be, and what is below them: their
// records cannot be read. It names them.
func (s *Supervisor) endUnsettled(ctx context.Context) (forced []string) {
	for _, id := range s.runtimeDirs() {
		if !s.settled(id) {
			forced = append(forced, s.force(ctx, id)+", since its records cannot be read")
		}
	}
	return forced
}

// settled reports whether nothing of a runtime can be going on: its end is on record, or no shim holds it.
func (s *Supervisor) settled(id string) bool {
	if _, err := state.Read[shim.Exit](s.dir, shim.ExitFile(id)); err == nil || s.taken(id) {
		return true
	}
	unlock, err := shim.Dead(s.dir, id)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // it was settled just now, and its directory is gone
	}
	defer unlock()
	return len(s.sweepDead(id)) == 0
}

// taken reports whether the end of a runtime was taken in: its run has ended, and its directory is about to go. Its shim
// may still be writing that down for whoever comes later.
func (s *Supervisor) taken(id string) bool {
	rec, _ := state.Read[record.Runtime](s.dir, record.RuntimeFile(id))
	rec.ID = id
	all, err := s.tenures(rec)
	for _, t := range all {
		open, unread := s.unended(t.Folder)
		if open || unread != nil || t.Idle != nil {
			return false
		}
	}
	return err == nil && len(all) > 0
}

// sweepDead ends what a dead shim left. Its lock is held by us.
func (s *Supervisor) sweepDead(id string) []string {
	agent, _ := state.Read[shim.Agent](s.dir, shim.AgentFile(id)) // unreadable: by token alone
	var left []string
	for _, p := range s.sweep(s.dir.HomeID()+"."+id, agent.Pipes...) {
		left = append(left, fmt.Sprint(p.PID))
	}
	return left
}

// force ends a shim and what is below it, and says what became of it.
func (s *Supervisor) force(ctx context.Context, id string) string {
	who := s.executionOf(id)
	if err := s.endShim(ctx, id); err != nil {
		return fmt.Sprintf("%s goes on: %v", who, err)
	}
	unlock, err := shim.Dead(s.dir, id)
	if err != nil {
		return fmt.Sprintf("%s goes on: %v", who, err)
	}
	defer unlock()
	if left := s.sweepDead(id); len(left) > 0 {
		return fmt.Sprintf("%s was ended by force, but not processes %s", who, strings.Join(left, ", "))
	}
	return who + " was ended by force"
}

// executionOf names the run of a runtime as well as it can.
func (s *Supervisor) executionOf(id string) string {
	rec, err := state.Read[record.Runtime](s.dir, record.RuntimeFile(id))
	if err == nil {
		if spec, err := record.SpecOf(s.dir, rec.Folder); err == nil {
			return spec.ID
		}
	}
	if agent, err := state.Read[shim.Agent](s.dir, shim.AgentFile(id)); err == nil && agent.Agent != nil {
		return fmt.Sprintf("runtime %s (process %d)", id, agent.Agent.PID)
	}
	return "runtime " + id
}

// endShim ends a living shim, its identity checked.
func (s *Supervisor) endShim(ctx context.Context, id string) error {
	a, err := state.Read[shim.Agent](s.dir, shim.AgentFile(id))
	if err != nil {
		return err
	}
	if err := proc.Signal(a.Shim, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	return proc.Await(ctx, a.Shim)
}
