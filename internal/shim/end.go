package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

const (
	sweepLimit = 10 * time.Second // for SIGKILL to take effect; what is left then is named
	drainLimit = time.Second      // for output that somebody outside the tree may hold open
)

// reap collects orphans until the agent itself is dead, and then ends its tree.
func (s *shim) reap(st *streams) error {
	for {
		pid, err := proc.NextExited()
		if err != nil {
			return err
		}
		if pid == s.leader {
			return s.end(st)
		}
		if _, err := proc.Reap(pid); err != nil {
			return err
		}
	}
}

// end is called with the leader dead and not yet reaped, so that the number of its group is still its own.
func (s *shim) end(st *streams) error {
	crash.At("shim.exited")
	s.kill()
	left, err := s.sweep()
	if err != nil {
		return err
	}
	s.leave()
	<-s.announced
	crash.At("shim.swept")
	exit, err := s.collect()
	if err != nil {
		return err
	}
	s.drain(st)
	for _, sp := range []*spool{s.out, s.err} {
		if err := sp.sync(); err != nil {
			return err
		}
	}
	crash.At("shim.drained")
	exit.Out, exit.Err, exit.Left = s.out.length(), s.err.length(), left
	return s.close(exit)
}

// kill ends the agent's process group.
func (s *shim) kill() {
	if err := proc.SignalGroup(s.leader, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		fmt.Fprintf(os.Stderr, "pintle shim: %s: %v\n", s.cfg.Runtime, err)
	}
}

// sweep ends what left the group: all that carries the token, and all below us that is neither a
// supervisor that we started nor a shim of its.
func (s *shim) sweep() ([]proc.Identity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	return proc.KillAll(ctx, func() ([]proc.Identity, error) {
		found, err := s.below()
		if err != nil {
			return nil, err
		}
		tagged, err := proc.WithToken(TokenVariable, func(v string) bool { return v == s.cfg.Token })
		for _, t := range tagged {
			found = append(found, t.Identity)
		}
		return found, err
	})
}

// below are the live processes of our tree. It looks again as long as it finds zombies that it can reap: what died
// during a look may have left children that the look did not see.
func (s *shim) below() ([]proc.Identity, error) {
	for {
		found, zombies, err := proc.Tree(os.Getpid(), spare)
		if err != nil || !s.reaps(zombies) {
			return found, err
		}
	}
}

// reaps collects orphans, and reports whether there were any. The agent itself is collected last.
func (s *shim) reaps(zombies []int) (some bool) {
	for _, pid := range zombies {
		if pid == s.leader {
			continue
		}
		if _, err := proc.Reap(pid); err == nil {
			some = true
		}
	}
	return some
}

// spare reports whether a process below a shim is not the agent's: a supervisor that this shim started, or
// a shim of that one. An agent's own pintle verbs carry the token, so they are no exception.
func spare(st proc.Stat, args []string) bool {
	if len(args) < 2 || (args[1] != Verb && args[1] != "supervise") {
		return false
	}
	_, tagged := proc.Variable(st.PID, TokenVariable)
	return !tagged
}

// collect reaps the leader.
func (s *shim) collect() (Exit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, err := proc.Reap(s.leader)
	s.leader = 0
	exit := Exit{Version: state.RecordVersion, Code: ended.Code, Deadline: s.cut, Signalled: s.signalled, At: time.Now()}
	if ended.Signal != 0 {
		exit.Signal = signalName(ended.Signal)
	}
	return exit, err
}

func signalName(sig syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(sig), "SIG") }

// drain waits for the rest of the output. All writers of the tree are dead, so the end of file is near,
// unless a pipe was handed to somebody else.
func (s *shim) drain(st *streams) {
	s.out.lift()
	s.err.lift()
	limit := time.Now().Add(drainLimit)
	for _, f := range []*os.File{st.out, st.err} {
		_ = f.SetReadDeadline(limit)
	}
	st.copies.Wait()
}

// close tells the controller the end and writes it down, in this order: for a controller that waits the journal is
// the record, and who comes later reads the file. If there is no controller, somebody has to take the end in.
func (s *shim) close(exit Exit) error {
	s.mu.Lock()
	s.exit = &exit
	controller := s.controller
	s.mu.Unlock()
	told := controller != nil && controller.send(message{M: "exit", Exit: &exit}) == nil
	crash.At("shim.told")
	err := s.save(ExitFile(s.cfg.Runtime), exit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the directory is gone: the end was taken in
	}
	if err != nil {
		return err
	}
	crash.At("shim.recorded")
	if !told {
		if err := s.startSupervisor(); err != nil {
			return err
		}
	}
	if s.cfg.Hold {
		s.hold()
	}
	return nil
}

// holdLimit is how long an end waits to be taken in while secrets are known to this process alone.
const holdLimit = time.Minute

// hold stays until the end was taken in: the controller says so, or the runtime's directory is gone. Meanwhile
// guard starts supervisors.
func (s *shim) hold() {
	limit, tick := time.NewTimer(holdLimit), time.NewTicker(look)
	defer limit.Stop()
	defer tick.Stop()
	for {
		select {
		case <-s.taken:
			return
		case <-limit.C:
			return
		case <-tick.C:
		}
		if _, err := os.Stat(s.dir.Path(ExitFile(s.cfg.Runtime))); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
