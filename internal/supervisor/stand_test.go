package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// stand is a supervisor over a state directory of its own that serves nobody: its steps are taken one by one.
func stand(t *testing.T) *Supervisor {
	t.Helper()
	return standIn(t, filepath.Join(t.TempDir(), "home"))
}

func standIn(t *testing.T, home string) *Supervisor {
	t.Helper()
	d, err := state.Open(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := state.TryLock(d.Path(LockFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	lock, err := os.Stat(d.Path(LockFile))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := newSupervisor(ctx, cancel, Options{
		Dir: d, Config: config.Default(), Providers: map[string]providers.Provider{command.Name: command.Provider()},
	}, log.New(io.Discard, "", 0))
	s.lock, s.self = lock, Record{Epoch: 1, Socket: d.Path("s", "supervisor.sock")}

	t.Cleanup(s.clients.close)
	return s
}

// order records an order that change may alter, and returns its run with nothing done for it yet.
func (s *Supervisor) order(t *testing.T, change func(*record.Spec)) *run {
	t.Helper()
	order := record.Spec{
		ID: "k", Controller: session.Local, CreatedAt: time.Now().UTC(),
		Payload: session.Payload{Argv: []string{"true"}, Provider: command.Name, Cwd: "/"},
	}
	if change != nil {
		change(&order)
	}
	c, err := record.Claim(t.Context(), s.dir, order, 0, func(*record.Spec) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(s, c.Folder)
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	return r
}

// claimed is an order that was taken up.
func (s *Supervisor) claimed(t *testing.T, change func(*record.Spec)) *run {
	t.Helper()
	r := s.order(t, change)
	if err := r.claim(); err != nil {
		t.Fatal(err)
	}
	return r
}

// cancel records a wish and has the run read it.
func (r *run) want(t *testing.T, action, reason string) {
	t.Helper()
	c := api.Cancel{Action: action, Reason: reason, RequestedAt: time.Now().UTC()}
	if _, err := record.Cancel(t.Context(), r.s.dir, r.folder, c); err != nil {
		t.Fatal(err)
	}
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
}

// intend puts the intent of the run's runtime on disk.
func (r *run) intend(t *testing.T) {
	t.Helper()
	if err := r.prepareSession(); err != nil {
		t.Fatal(err)
	}
	if err := r.prepareRuntime(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// put writes a record of the run's runtime as its shim would.
func (r *run) put(t *testing.T, path string, rec any) {
	t.Helper()
	if err := state.Put(t.Context(), r.s.dir, path, rec); err != nil {
		t.Fatal(err)
	}
}

// saved is the status on record.
func (r *run) saved(t *testing.T) record.Status {
	t.Helper()
	st, err := state.Read[record.Status](r.s.dir, record.StatusFile(r.folder))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// signalled is a signal that a shim was told to send, and when.
type signalled struct {
	sig syscall.Signal
	at  time.Duration
}

// fakeShim is a shim's end of the wire: it notes what it is told to signal, and does nothing.
type fakeShim struct {
	begin time.Time

	mu  sync.Mutex
	all []signalled
}

func (f *fakeShim) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			M   string
			Sig int
		}
		_ = json.Unmarshal(line, &m)
		switch m.M {
		case "hello":
			_, _ = io.WriteString(conn, `{"m":"hello","version":1}`+"\n")
		case "signal":
			f.mu.Lock()
			f.all = append(f.all, signalled{syscall.Signal(m.Sig), time.Since(f.begin)})
			f.mu.Unlock()
		}
	}
}

// heard is what it was told so far.
func (f *fakeShim) heard() []signalled {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]signalled(nil), f.all...)
}

// attached is a run that has an agent, behind a fake shim.
func (s *Supervisor) attached(t *testing.T, change func(*record.Spec)) (*run, *fakeShim) {
	t.Helper()
	r := s.claimed(t, change)
	r.intend(t)
	rt, err := r.openRuntime(environ.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.release)
	ours, theirs := net.Pipe()
	f := &fakeShim{begin: time.Now()}
	go f.serve(theirs)
	if rt.control, err = shim.Adopt(ours, 1); err != nil {
		t.Fatal(err)
	}
	r.rt = rt
	if r.shim, err = proc.Identify(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	r.shim.StartTicks++ // a process that is no more, whose pid is another's
	r.st.Runtime = &api.Runtime{ID: r.st.RuntimeID}
	if err := r.save(session.Running); err != nil {
		t.Fatal(err)
	}
	return r, f
}

// blockStatus makes that no status can be written until the returned function is called: nothing takes a
// directory's place, for root neither.
func (r *run) blockStatus(t *testing.T) (unblock func()) {
	t.Helper()
	path, aside := r.s.dir.Path(record.StatusFile(r.folder)), r.s.dir.Path("aside")
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
	}
}
