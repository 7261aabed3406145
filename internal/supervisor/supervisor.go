// Package supervisor makes what is wanted true. It reads the orders that verbs record, starts a shim for
// each, takes in what agents say, ends what must end, and records every outcome.
//
// It is level-triggered: each step looks at the records, has its intent on disk before its effect, and may
// be repeated. It can be killed between any two instructions; its successor goes on from the records.
//
// One runs per state directory, proven by the flock on supervisor.lock alone.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/state"
)

// ErrRunning is returned by Run when another supervisor serves the state directory.
var ErrRunning = errors.New("another supervisor is running")

// ErrMoved is returned when the state directory was taken away from under a supervisor: another one may serve what
// lies at its path by now.
var ErrMoved = errors.New("the state directory is not this supervisor's any more")

// Options are what a supervisor is made from.
type Options struct {
	Dir       *state.Dir
	Config    config.Config
	Providers map[string]providers.Provider
	Version   string
	// Locate finds an agent by the user's configuration: the program that is given, else what that PATH has, in a directory.
	Locate func(agent, given, cwd, path string) (record.Program, error)
	Env    []string      // of the supervisor itself, handed to those that shims start
	Log    *os.File      // also the standard error of shims
	Wait   time.Duration // how long to wait for a supervisor that is leaving
	Ready  func()        // called once it serves
}

// Supervisor is a running supervisor.
type Supervisor struct {
	o     Options
	dir   *state.Dir
	log   *log.Logger
	lock  os.FileInfo // of the lock that we hold
	self  Record
	ctx   context.Context // ends when it leaves; runtimes go on
	leave context.CancelFunc

	// forks is held shared while a child that is no shim lives, so that a sweep of orphans, which holds
	// it alone, cannot take such a child for one.
	forks sync.RWMutex

	mu       sync.Mutex
	runs     map[string]*run          // by folder, those that have not ended
	envs     map[string]brought       // by folder: values that no record holds
	books    map[string]*book         // by session, those that are open
	tidying  map[*run]struct{}        // those that have ended, and whose runtime goes behind that
	kept     map[string]*keeper       // by session: processes that wait for its next run
	attends  map[string]presence      // by folder: who will answer what the agent asks for
	hubs     map[string]*hub          // by runtime: processes that sessions share
	errands  map[string]*errand       // by workspace: what is being done with it
	trees    map[string]chan struct{} // by worktree: who is changing it has put something in
	asks     map[string]string        // by permission: the folder of whose agent asks, from before that is told
	feeds    *feeds
	desks    map[string]*desk // by session: where its operations come in
	leases   map[string]session.Leases
	void     map[string]map[string]bool     // by session: clients whose leases are to be removed from its record
	homes    map[string]environ.Environment // by session that is held: its agent's
	mending  map[string]bool                // by session: its runtime is waited for
	menders  sync.WaitGroup
	slots    *slots
	conns    int
	stopping bool     // ends all runtimes; takes no work
	forced   []string // what was ended by force since it was told to stop
	used     time.Time
	work     sync.WaitGroup

	// evictions are under way, of shared processes in which nobody has a part any more.
	evictions sync.WaitGroup

	clients *registry
}

// brought is the environment that came with the order of an attempt.
type brought struct {
	environ.Environment
	attempt int
}

// Record is supervisor.json.
type Record struct {
	Version int `json:"version"`
	proc.Identity
	Epoch     int64     `json:"epoch"`
	Socket    string    `json:"socket"`
	Release   string    `json:"release"`
	StartedAt time.Time `json:"startedAt"`
}

// File is the name of supervisor.json in the state directory.
const File = "supervisor.json"

// LockFile is the name of the lock that a supervisor holds while it lives.
const LockFile = "supervisor.lock"

// Run serves until ctx ends, until it is told to leave or until it has been idle for long. Errors:
// ErrRunning; those of package state.
func Run(ctx context.Context, o Options) error {
	unlock, err := acquire(ctx, o)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newSupervisor(ctx, cancel, o, log.New(o.Log, "", log.LstdFlags|log.LUTC))
	if s.lock, err = os.Stat(o.Dir.Path(LockFile)); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	if err := proc.BecomeSubreaper(); err != nil {
		return err
	}
	listener, err := s.open()
	if err != nil {
		return err
	}
	defer s.close(listener)
	s.log.Printf("supervisor %d: epoch %d, serving %s", s.self.PID, s.self.Epoch, s.self.Socket)
	return s.serve(listener)
}

// newSupervisor is one that does nothing yet.
func newSupervisor(ctx context.Context, leave context.CancelFunc, o Options, l *log.Logger) *Supervisor {
	s := &Supervisor{
		o: o, dir: o.Dir, log: l, ctx: ctx, leave: leave, runs: map[string]*run{}, envs: map[string]brought{}, used: time.Now(),
		feeds: newFeeds(), desks: map[string]*desk{}, leases: map[string]session.Leases{}, void: map[string]map[string]bool{},
		homes: map[string]environ.Environment{}, mending: map[string]bool{},
		books: map[string]*book{}, tidying: map[*run]struct{}{}, kept: map[string]*keeper{}, attends: map[string]presence{}, asks: map[string]string{},
		slots: newSlots(o.Config.Limits.Running), errands: map[string]*errand{},
	}
	s.clients = newRegistry(ctx, o.Dir, l, systemClock{}, s.clientGone)
	return s
}

// close removes the socket as well, if the lock is still ours.
func (s *Supervisor) close(listener net.Listener) {
	_ = listener.Close()
	if s.ours() {
		_ = os.Remove(s.self.Socket)
	}
}

// ours reports whether the lock that we hold is the state directory's. If that was removed and made anew, another
// supervisor holds the one that lies there, and all that we find by path is its business.
func (s *Supervisor) ours() bool {
	info, err := os.Stat(s.dir.Path(LockFile))
	return err == nil && os.SameFile(info, s.lock)
}

// acquire takes the supervisor's lock, waiting a while for one that is leaving. One that serves is not waited for:
// who was started beside it must not succeed it when it is told to stop.
func acquire(ctx context.Context, o Options) (func(), error) {
	until := time.Now().Add(o.Wait)
	for {
		unlock, err := state.TryLock(o.Dir.Path(LockFile))
		if err == nil || !errors.Is(err, state.ErrLocked) {
			return unlock, err
		}
		if time.Now().After(until) || ctx.Err() != nil || served(ctx, o.Dir) {
			return nil, ErrRunning
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // flock(2) has no wait with a deadline
	}
}

// served reports whether a supervisor of the directory listens.
func served(ctx context.Context, d *state.Dir) bool {
	rec, err := state.Read[Record](d, File)
	if err != nil {
		return false
	}
	conn, err := rpc.Dial(ctx, rec.Socket)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// open makes the socket and says so in supervisor.json, with a higher epoch than any before.
func (s *Supervisor) open() (net.Listener, error) {
	id, err := proc.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	sockets, err := rpc.SocketDir(s.dir.Path())
	if err != nil {
		return nil, err
	}
	s.self = Record{
		Version: state.RecordVersion, Identity: id, Epoch: s.nextEpoch(), Release: s.o.Version,
		Socket: filepath.Join(sockets, "supervisor.sock"), StartedAt: time.Now().UTC(),
	}
	listener, err := rpc.Listen(s.self.Socket)
	if err != nil {
		return nil, err
	}
	return listener, state.Put(s.ctx, s.dir, File, s.self)
}

// nextEpoch is one more than the last. Where that cannot be read the time in milliseconds serves: it is
// greater than any count of starts, and the flock, not this file, says who supervises (case 7).
func (s *Supervisor) nextEpoch() int64 {
	last, err := state.Read[Record](s.dir, File)
	switch {
	case err == nil:
		return last.Epoch + 1
	case errors.Is(err, fs.ErrNotExist):
		return 1
	}
	s.log.Printf("%s: %v; going on with a new one", File, err)
	return time.Now().UnixMilli()
}

// serve accepts connections until it leaves. On an idle exit the listener is closed first, then the records
// are looked at once more: an order that came in between is carried out by whoever listens anew.
func (s *Supervisor) serve(listener net.Listener) error {
	s.clients.load()
	s.knowLeases() // before who keeps processes looks for whom
	if err := s.reconcile(); err != nil {
		return err
	}
	if s.o.Ready != nil {
		s.o.Ready()
	}
	s.work.Go(s.watch)
	s.work.Go(func() { <-s.ctx.Done(); _ = listener.Close() })
	for s.ctx.Err() == nil {
		conn, err := listener.Accept()
		switch {
		case s.ctx.Err() != nil:
		case err != nil && !passing(err):
			return fmt.Errorf("accept: %w", err)
		case err != nil:
			s.log.Printf("accept: %v", err)
			s.pause(acceptDelay)
		case !s.admits():
			_ = conn.Close() // files are left for runs
		default:
			s.work.Go(func() { s.serveConn(conn) })
		}
	}
	s.work.Wait()
	s.clients.close()
	s.log.Printf("supervisor %d: leaves", s.self.PID)
	return nil
}

// acceptDelay is how long a failure that may pass is waited out.
const acceptDelay = 50 * time.Millisecond

// passing reports whether the next connection may well be accepted.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Supervisor) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// maxConnections is how many are served at once, fewer where a process may not have that many files: half of them are
// for runs.
const maxConnections = 4096

func (s *Supervisor) admits() bool {
	limit := maxConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur/2 < uint64(limit) {
		limit = int(files.Cur / 2)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns < limit
}

// helloTimeout is how long a connection may take to say hello (C4).
const helloTimeout = 15 * time.Second

func (s *Supervisor) serveConn(conn net.Conn) {
	s.count(1)
	defer s.count(-1)
	server := &rpc.Server{Handler: s, Hello: helloTimeout, Log: s.log.Printf, Gone: s.peerGone}
	if err := server.Serve(s.ctx, conn); err != nil {
		s.log.Printf("connection: %v", err)
	}
}

func (s *Supervisor) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns += n
	s.used = time.Now()
}
