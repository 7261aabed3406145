package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/state"
)

// reconcile takes over what an earlier supervisor left: live runtimes first, since their agents wait, then
// everything else. Processes that no record accounts for are ended.
func (s *Supervisor) reconcile() error {
	if s.dir.Moved() {
		return s.reconcileCopy()
	}
	s.finishDrops()
	left := s.runtimeDirs()
	for _, r := range s.runtimes() {
		all, err := s.tenures(r)
		for session, t := range all {
			if t.Idle != nil {
				s.keepAgain(r, session, t)
			} else {
				s.ensure(t.Folder)
			}
		}
		switch {
		case errors.Is(err, errUnsure):
			s.log.Printf("runtime %s: %v", r.ID, err) // the run that names it says so too
		case err != nil:
			s.ensure(r.Folder) // it says what is wrong
		case len(all) == 0: // it was shared, and its last one left
			s.evictions.Go(func() { s.evict(s.ctx, r.ID) })
		}
	}
	s.work.Go(func() {
		s.findErrands()
		s.findOrders()
		for _, id := range s.clients.held() {
			s.mend(id)
		}
		s.slots.open()
		s.dropForgotten(left)
		s.endStrays()
	})
	return nil
}

// reconcileCopy is for a state directory that was copied or restored (X38): all that had not ended is
// host_died, without a signal to anything, since what runs belongs to the original. Then the copy gets an
// id of its own.
func (s *Supervisor) reconcileCopy() error {
	s.log.Printf("state directory was copied: what had not ended is host_died")
	for _, r := range s.runtimes() {
		if s.onlyWaits(r) {
			_ = s.dropRuntime(r.ID) // the process is the original's
		}
	}
	s.findOrders()
	s.mu.Lock()
	var runs []*run
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	for _, r := range runs {
		select {
		case <-r.done:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	s.slots.open()
	return s.dir.Settle(s.ctx)
}

// runtimeDirs lists the directories of runtimes, whatever is in them.
func (s *Supervisor) runtimeDirs() (ids []string) {
	entries, _ := os.ReadDir(s.dir.Path("runtimes"))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// dropForgotten removes those of the given runtimes that no unsettled execution names: their supervisor was
// killed before it came to it. The list is from before any run began, so no new runtime is in it.
func (s *Supervisor) dropForgotten(ids []string) {
	named := map[string]bool{}
	folders, _ := record.Folders(s.dir)
	for _, folder := range folders {
		st, err := state.Read[record.Status](s.dir, record.StatusFile(folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // an unreadable one may name any
		}
		if st.Phase != string(session.Ended) {
			named[st.RuntimeID] = true
		}
	}
	for _, id := range ids {
		if !named[id] && !s.waits(id) {
			s.dropDead(id)
		}
	}
}

// dropDead removes a runtime's directory with proof that nothing begins under it: its end is on record, which a
// shim may have stayed to tell, or no shim holds it.
func (s *Supervisor) dropDead(id string) {
	if _, err := state.Read[shim.Exit](s.dir, shim.ExitFile(id)); err != nil {
		unlock, err := shim.Dead(s.dir, id)
		if err != nil {
			return
		}
		defer unlock()
	}
	if err := errors.Join(s.abandonUnused(id), s.dropRuntime(id)); err != nil {
		s.log.Printf("runtime %s: %v", id, err)
	}
}

// abandonUnused marks a runtime that has no agent.json, for a shim that may yet come.
func (s *Supervisor) abandonUnused(id string) error {
	if _, err := state.Read[shim.Agent](s.dir, shim.AgentFile(id)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.abandon(id)
}

// runtimes reads the records of runtimes that are not settled.
func (s *Supervisor) runtimes() (all []record.Runtime) {
	entries, _ := os.ReadDir(s.dir.Path("runtimes"))
	for _, e := range entries {
		r, err := state.Read[record.Runtime](s.dir, record.RuntimeFile(e.Name()))
		if err == nil && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, r)
		}
	}
	return all
}

// finishDrops removes the directories whose removal was interrupted.
func (s *Supervisor) finishDrops() {
	entries, _ := os.ReadDir(s.dir.Path("runtimes"))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			_ = os.RemoveAll(s.dir.Path("runtimes", e.Name()))
		}
	}
}

// sweepLimit bounds how long SIGKILL may take to have effect.
const sweepLimit = 10 * time.Second

// endStrays ends what carries this home's token without a living shim and without a record that would
// have it ended (R9): by token, never by name, never another home's.
func (s *Supervisor) endStrays() {
	prefix := s.dir.HomeID() + "."
	found, err := proc.WithToken(shim.TokenVariable, func(v string) bool { return strings.HasPrefix(v, prefix) })
	if err != nil {
		s.log.Printf("look for stray processes: %v", err)
	}
	seen := map[string]bool{}
	for _, t := range found {
		if seen[t.Token] {
			continue
		}
		seen[t.Token] = true
		runtime := strings.TrimPrefix(t.Token, prefix)
		if _, err := os.Stat(s.dir.Path(record.RuntimeFile(runtime))); err == nil {
			continue // its execution is being driven and decides
		}
		s.log.Printf("process %d carries the token of runtime %s, which no record knows: ending it", t.PID, runtime)
		if left := s.sweep(t.Token); len(left) > 0 {
			s.log.Printf("runtime %s: %d processes could not be ended", runtime, len(left))
		}
	}
}

// sweep ends everything that carries the token. The shim of it is dead: its lock is ours, or it has no
// record. What had cleared its environment is found by the agent's outputs, if it holds one, and is a child of
// this process, if this process started that shim.
func (s *Supervisor) sweep(token string, pipes ...uint64) []proc.Identity {
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	s.forks.Lock()
	defer s.forks.Unlock()
	look := func() ([]proc.Identity, error) {
		tagged, err := proc.WithToken(shim.TokenVariable, func(v string) bool { return v == token })
		if err != nil {
			return nil, err
		}
		held, err := proc.WithPipe(pipes...)
		if err != nil {
			return nil, err
		}
		found, err := proc.Descendants(os.Getpid(), isShim)
		for _, t := range tagged {
			found = append(found, t.Identity)
		}
		return append(found, held...), err
	}
	left, err := proc.KillAll(ctx, func() ([]proc.Identity, error) {
		found, err := look()
		if len(found) > 0 || err != nil {
			return found, err
		}
		return look() // once more: what forked and died during a look left a child that it did not see
	})
	if err != nil {
		s.log.Printf("end the processes of %s: %v", token, err)
	}
	return left
}

// isShim spares shims, which are children of ours, with all that is theirs.
func isShim(_ proc.Stat, args []string) bool { return len(args) > 1 && args[1] == shim.Verb }
