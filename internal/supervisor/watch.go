package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
)

// period is how often the records are looked at for what no verb told: it died between recording an order
// and knocking.
const period = time.Second

// watch is the level trigger: orders and wishes are found on disk even if nobody says a word.
func (s *Supervisor) watch() {
	tick := time.NewTicker(period)
	defer tick.Stop()
	seen, cleaned := time.Now(), false
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if !s.ours() {
			s.log.Printf("supervisor %d: %v", s.self.PID, ErrMoved)
			s.leave()
			return
		}
		if now := time.Now(); now.Sub(seen) >= rescan {
			s.findChanged(seen.Add(-rescan))
			seen = now
		}
		s.pokeAll()
		s.reapStrays()
		if !cleaned && s.quiet() >= calm {
			cleaned = true
			s.work.Go(s.clean)
		}
		if s.idle() {
			s.leave()
			return
		}
	}
}

// rescan is how often orders are looked for that were changed on disk; twice as far back, since a clock may
// be set and a file system's times are coarse.
const rescan = 2 * time.Second

// findChanged takes up what was ordered since then: a new order, or a further attempt of an old one. It only
// looks at times, so that ten thousand finished runs cost some milliseconds.
func (s *Supervisor) findChanged(since time.Time) {
	folders, err := record.Folders(s.dir)
	if err != nil {
		s.log.Printf("look for orders: %v", err)
	}
	for _, folder := range folders {
		info, err := os.Stat(s.dir.Path(record.SpecFile(folder)))
		if err == nil && info.ModTime().After(since) {
			s.takeUp(folder)
		}
	}
}

// takeUp has an execution driven that has not ended. An unreadable one is left alone and said.
func (s *Supervisor) takeUp(folder string) {
	open, err := s.unended(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Printf("execution %s: %v", folder, err)
	}
	if open {
		s.ensure(folder)
		return
	}
	if st, err := record.StatusOf(s.dir, folder); err == nil && st.Leaving {
		s.dispatch(departure(folder, st))
	}
}

// findOrders takes up every execution that has not ended. An unreadable one is left alone and said.
func (s *Supervisor) findOrders() {
	folders, err := record.Folders(s.dir)
	if err != nil {
		s.log.Printf("look for orders: %v", err)
	}
	for _, folder := range folders {
		s.takeUp(folder)
	}
}

// unended reports whether an execution has not ended. The spec is only read where the status does not tell.
func (s *Supervisor) unended(folder string) (bool, error) {
	st, err := record.StatusOf(s.dir, folder)
	if err == nil && session.Phase(st.Phase) != session.Ended {
		return true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	spec, err := record.SpecOf(s.dir, folder)
	if errors.Is(err, fs.ErrNotExist) { // it was archived since we looked, or all but its tombstone has expired
		e, viewErr := record.View(s.dir, folder)
		return viewErr == nil && session.Phase(e.Phase) != session.Ended, viewErr
	}
	return err == nil && spec.Desired.Attempt > st.Attempt, err
}

func (s *Supervisor) pokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.wake()
	}
}

// idle reports whether nothing has been going on for long.
func (s *Supervisor) idle() bool { return s.quiet() >= time.Duration(s.o.Config.Supervise.Idle) }

// quiet is how long nothing has been going on.
func (s *Supervisor) quiet() time.Duration {
	awaited := s.clients.busy()
	s.mu.Lock()
	defer s.mu.Unlock()
	if awaited || s.conns > 0 || len(s.runs) > 0 || len(s.kept) > 0 || len(s.errands) > 0 {
		s.used = time.Now()
	}
	return time.Since(s.used)
}

const (
	calm     = 3 * time.Second // without work, until leftovers are looked for, once in a supervisor's life
	leftover = time.Minute     // the age at which no write can still be going on
)

// clean removes the temporary files of writes that were interrupted by a kill.
func (s *Supervisor) clean() {
	dirs := []string{".", "workspaces", "worktrees", "pending", "trusted", "clients"}
	for _, parent := range []string{"executions", "sessions"} {
		entries, _ := os.ReadDir(s.dir.Path(parent))
		for _, e := range entries {
			dirs = append(dirs, filepath.Join(parent, e.Name()))
		}
	}
	for _, dir := range dirs {
		if s.ctx.Err() != nil {
			return
		}
		s.dir.CleanTemporary(s.ctx, dir, leftover)
	}
}

// reapStrays collects children that have exited: shims, and orphans of shims that were killed.
func (s *Supervisor) reapStrays() {
	if !s.forks.TryLock() {
		return // a child that somebody waits for lives: next time
	}
	defer s.forks.Unlock()
	for _, pid := range proc.Zombies() {
		_, _ = proc.Reap(pid)
	}
}
