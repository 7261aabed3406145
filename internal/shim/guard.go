package shim

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

const (
	lonely  = 2 * time.Second // without a controller, until the shim starts one
	between = 5 * time.Second // two such starts
	look    = 100 * time.Millisecond
)

// guard watches over a shim that nobody controls: it starts a supervisor, and holds the whole run's
// deadline, which a dead supervisor cannot.
func (s *shim) guard(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var started time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			alone := s.aloneFor(now)
			s.overdue(alone)
			if alone < lonely || now.Sub(started) < between {
				continue
			}
			started = now
			if err := s.startSupervisor(); err != nil {
				warn("%s: %v", s.cfg.Runtime, err)
			}
		}
	}
}

// aloneFor is how long there has been no controller.
func (s *shim) aloneFor(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controller != nil {
		s.alone = time.Time{}
		return 0
	}
	if s.alone.IsZero() {
		s.alone = now
	}
	return now.Sub(s.alone)
}

// overdue ends the tree at the deadline. With a controller that is its business, and its ladder's; the
// shim steps in 30 s later, in case the controller is frozen.
func (s *shim) overdue(alone time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline == 0 || s.leader == 0 || s.cut {
		return
	}
	grace := 30 * time.Second
	if alone > 0 {
		grace = 0
	}
	if proc.BootClock() >= time.Duration(s.deadline)+grace {
		s.cut = true
		s.kill()
	}
}

// startSupervisor starts a supervisor from our own executable, which may no longer have a name. Of many
// shims that lost the same one, the holder of the start lock does it.
func (s *shim) startSupervisor() error {
	unlock, err := state.TryLock(s.dir.Path("locks", "start"))
	if err != nil {
		return nil // somebody is at it
	}
	defer unlock()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer null.Close()
	log, err := os.OpenFile(s.dir.Path("supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer log.Close()
	_, err = proc.Spawn{
		Path: "/proc/self/exe", Args: []string{"pintle", "supervise"}, Env: s.cfg.SupervisorEnv, Dir: "/",
		Files: []*os.File{null, null, log}, Setsid: true, Umask: -1,
	}.Start()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	return nil
}
