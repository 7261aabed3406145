package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

// Verb is the hidden first argument that makes a process a shim; the runtime's id follows, for ps(1) alone.
const Verb = "shim"

// TokenVariable carries a runtime's token in the environment of everything that its agent starts.
const TokenVariable = "PINTLE_RUNTIME"

// shim is one running shim.
type shim struct {
	cfg Config
	dir *state.Dir
	out *spool
	err *spool
	in  *input
	// leave lets go of the guard.
	leave func()
	news  chan struct{} // capacity 1: the spools have grown
	// announced is closed when the agent's identity is on disk and told, or could not be.
	announced chan struct{}
	// taken is closed when the controller has taken the end in.
	taken chan struct{}

	// intents is held while a write is recorded, and while another controller comes; before mu.
	intents sync.Mutex

	mu         sync.Mutex
	agent      Agent
	leader     int  // pid, 0 before the fork and after it was reaped
	cut        bool // ended by the deadline
	signalled  bool // by a controller, and it lived
	deadline   int64
	controller *link
	last       *link // that was the controller, or is
	epoch      int64
	alone      time.Time // since when there is no controller
	exit       *Exit
}

// Main runs a shim and returns its exit code. Its first controller, and its configuration, are at
// descriptor 3. What it cannot tell anybody else it says on standard error, which is the supervisor's log.
func Main() int {
	debug.SetGCPercent(25) // small: the shim holds a few buffers, and there may be hundreds of it
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "pintle shim: %v\n", err)
		return 1
	}
	return 0
}

func run() error {
	first, cfg, err := inherit()
	if err != nil {
		return err
	}
	dir, err := state.OpenExisting(cfg.Home)
	if err != nil {
		return err
	}
	crash.At("shim.began")
	unlock, err := claim(dir, cfg.Runtime)
	if err != nil {
		return err
	}
	defer unlock()
	crash.At("shim.locked")
	if err := unused(dir, cfg.Runtime); err != nil {
		return err
	}
	if err := proc.BecomeSubreaper(); err != nil {
		return err
	}
	s := &shim{cfg: cfg, dir: dir, news: make(chan struct{}, 1), announced: make(chan struct{}), taken: make(chan struct{}), deadline: cfg.Deadline, epoch: cfg.Epoch, controller: first, last: first}
	return s.serve()
}

// claimLimit is how long the lock is tried for. Who holds it is either a reader that looks whether we live,
// for an instant, or a supervisor that has declared us dead, for good.
const claimLimit = 2 * time.Second

func claim(d *state.Dir, runtime string) (unlock func(), err error) {
	for until := time.Now().Add(claimLimit); ; {
		unlock, err = Dead(d, runtime)
		if !errors.Is(err, state.ErrLocked) || time.Now().After(until) {
			break
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // flock(2) has no wait with a deadline
	}
	if err != nil {
		return nil, fmt.Errorf("claim runtime %s: %w", runtime, err)
	}
	return unlock, nil
}

// unused refuses a runtime under which something was begun, or that was given up: a free lock alone does not
// say that we are the first, since another shim may have come and gone while we waited for it.
func unused(d *state.Dir, runtime string) error {
	_, err := state.Read[Agent](d, AgentFile(runtime))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("runtime %s was used before, or given up (%v): it is never started again", runtime, err)
}

// inherit takes over descriptor 3 and reads the configuration from it.
func inherit() (*link, Config, error) {
	var cfg Config
	f := os.NewFile(3, "controller")
	if f == nil {
		return nil, cfg, errors.New("is started by a supervisor, not by hand")
	}
	conn, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return nil, cfg, fmt.Errorf("is started by a supervisor, not by hand: %w", err)
	}
	l := newLink(conn)
	line, err := readLine(l.in, maxMessage)
	if err != nil {
		return nil, cfg, fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(line, &cfg); err != nil {
		return nil, cfg, fmt.Errorf("read configuration: %w", err)
	}
	return l, cfg, nil
}

func (s *shim) serve() error {
	listener, err := listen(s.cfg.Socket)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close(); _ = os.Remove(s.cfg.Socket) }()
	first := s.controller
	if err := s.enter(); err != nil {
		return s.neverRan(err)
	}
	streams, err := s.start()
	if err != nil {
		return s.neverRan(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.control(first) // before an adopter may come in
	go s.accept(ctx, listener)
	go s.report(ctx)
	go s.guard(ctx)
	return s.reap(streams)
}

// listen binds the socket by its bare name from its directory, since a path may be longer than bind(2)
// takes. Nothing else of the shim depends on the working directory.
func listen(path string) (net.Listener, error) {
	if err := os.Chdir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	_ = os.Remove(filepath.Base(path)) // of a dead shim: we hold the runtime's lock
	l, err := net.Listen("unix", filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(filepath.Base(path), 0o600); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// enter takes the guard. It is free again before the end is told, or when this process is dead: then what is left of the
// agent is ended before anybody goes on.
func (s *shim) enter() (err error) {
	s.leave = func() {}
	if s.cfg.Guard != "" {
		s.leave, err = state.TryLock(s.dir.Path(s.cfg.Guard))
	}
	return err
}

// neverRan records that the agent could not be started, which is an end like any other.
func (s *shim) neverRan(cause error) error {
	exit := Exit{Version: state.RecordVersion, Code: -1, Error: cause.Error(), At: time.Now(), Busy: errors.Is(cause, state.ErrLocked)}
	if exit.Busy {
		exit.Error = "another process of pintle's has the conversation"
	}
	if err := s.save(ExitFile(s.cfg.Runtime), exit); err != nil {
		return err
	}
	return s.controller.send(message{M: "exit", Exit: &exit})
}

// save writes one of the shim's own records, durably. On a full disk it waits for space: what the shim knows
// is known by nobody else.
func (s *shim) save(path string, record any) error {
	for {
		err := state.Put(context.Background(), s.dir, path, record)
		if !errors.Is(err, state.ErrFull) {
			return err
		}
		time.Sleep(retryFull) //nolint:forbidigo // nothing tells when a disk has space again
	}
}
