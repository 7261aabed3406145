package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

// streams are the shim's ends of the agent's output pipes, and the copies that are under way.
type streams struct {
	out, err   *os.File
	outW, errW *os.File // the agent's ends, until it has them
	copies     sync.WaitGroup
}

// start forks the agent. For a command this is the hand-over, so its intent is durable before, and a
// runtime that has the intent is never started again by anybody.
func (s *shim) start() (*streams, error) {
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	spools := s.dir.Path(SpoolDir(s.cfg.Runtime))
	s.out = newSpool(spools, Out, s.cfg.SpoolLimit)
	s.err = newSpool(spools, Err, s.cfg.SpoolLimit)
	st, err := s.pipes()
	if err != nil {
		return nil, err
	}
	defer st.handedOver()
	s.agent = Agent{
		Version: state.RecordVersion, State: Starting, Shim: self, StartedAt: time.Now(), Pipes: inodes(st.out, st.err),
	}
	if err := s.save(AgentFile(s.cfg.Runtime), s.agent); err != nil {
		return nil, err
	}
	crash.At("shim.starting")
	if err := s.fork(st); err != nil {
		s.agent.State, s.agent.Error = Refused, err.Error()
		return nil, fmt.Errorf("%w%s", err, s.also(s.save(AgentFile(s.cfg.Runtime), s.agent)))
	}
	agent, err := s.identified()
	if err != nil {
		return nil, err
	}
	go s.announce(agent)
	return st, nil
}

func (s *shim) also(err error) string {
	if err == nil {
		return ""
	}
	return "; and recording that: " + err.Error()
}

// pipes are made before the record of the start, which has their inodes.
func (s *shim) pipes() (st *streams, err error) {
	st = &streams{}
	if st.out, st.outW, err = os.Pipe(); err == nil {
		st.err, st.errW, err = os.Pipe()
	}
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	return st, nil
}

// handedOver closes what the agent has by now.
func (st *streams) handedOver() { _, _ = st.outW.Close(), st.errW.Close() }

// fork starts the agent in a session of its own.
func (s *shim) fork(st *streams) error {
	stdin, ours, err := s.stdin()
	if err != nil {
		return err
	}
	defer stdin.Close()
	if s.in, err = newInput(s.dir.Path(StdinFile(s.cfg.Runtime)), ours); err != nil {
		return err
	}
	s.leader, err = proc.Spawn{
		Path: s.cfg.Path, Args: s.cfg.Args, Env: s.cfg.Env, Dir: s.cfg.Dir, Umask: s.cfg.Umask,
		Files: []*os.File{stdin, st.outW, st.errW}, Setsid: true,
	}.Start()
	if err != nil {
		return err
	}
	crash.At("shim.forked")
	st.copies.Go(func() { s.copy(s.out, st.out) })
	st.copies.Go(func() { s.copy(s.err, st.err) })
	return nil
}

// inodes are those of open files.
func inodes(files ...*os.File) (all []uint64) {
	for _, f := range files {
		if info, err := f.Stat(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				all = append(all, st.Ino)
			}
		}
	}
	return all
}

// stdin returns the agent's end and ours; nobody writes to a command.
func (s *shim) stdin() (theirs *os.File, ours io.WriteCloser, err error) {
	if !s.cfg.Stdin {
		theirs, err = os.Open(os.DevNull)
		return theirs, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	return r, w, nil
}

// identified is the record with the agent's identity. A leader that has ended by now has one as well: it is a zombie
// until it is collected.
func (s *shim) identified() (Agent, error) {
	st, err := proc.Read(s.leader)
	if err != nil {
		s.kill()
		_, swept := s.sweep()
		return Agent{}, errors.Join(err, swept)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent.State, s.agent.PGID = Running, s.leader
	s.agent.Agent = &proc.Identity{PID: s.leader, StartTicks: st.StartTicks, BootID: s.agent.Shim.BootID}
	return s.agent, nil
}

// announce puts the agent's identity on disk and then tells the controller, while the agent runs, or has ended. What
// cannot be recorded must not go on unknown.
func (s *shim) announce(agent Agent) {
	defer close(s.announced)
	if err := s.save(AgentFile(s.cfg.Runtime), agent); err != nil {
		warn("%s: %v", s.cfg.Runtime, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leader != 0 {
			s.kill()
		}
		return
	}
	crash.At("shim.announced")
	s.mu.Lock()
	controller := s.controller
	s.mu.Unlock()
	if controller != nil {
		_ = controller.send(message{M: "started", Agent: &agent})
	}
}

// maxPipe is the most that a pipe holds, in bytes.
const maxPipe = 1 << 20

// copy takes a stream into its spool until all who could write to it are gone, or the limit of the drain has
// passed. What lies in the pipe by then is taken too: a full disk may have kept us from it.
func (s *shim) copy(to *spool, from *os.File) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !s.keep(to, buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return
		}
	}
	_ = from.SetReadDeadline(time.Time{})
	for late := 0; late < maxPipe; {
		n := lying(from, buf)
		if n <= 0 || !s.keep(to, buf[:n]) {
			return
		}
		late += n
	}
}

func (s *shim) keep(to *spool, p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if err := to.write(p); err != nil {
		fmt.Fprintf(os.Stderr, "pintle shim: %s: %v\n", s.cfg.Runtime, err)
		return false
	}
	s.tell()
	return true
}

// lying reads what lies in a pipe, and does not wait for more.
func lying(pipe *os.File, p []byte) (n int) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { n, _ = unix.Read(int(fd), p); return true })
	}
	return n
}

// tell has the controller told, once for any number of calls until it is.
func (s *shim) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}
