package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

// Event is what a shim told its controller. Just one of the pointers is set, or none: the spools grew.
type Event struct {
	Started *Agent
	Exit    *Exit
	Written *Written
	Out     int64 // ends of the spools in bytes
	Err     int64
}

// Written is the answer to Write.
type Written struct {
	N     int64
	Op    string
	Error string
}

// Control is a supervisor's hold on one shim.
type Control struct {
	link   *link
	events chan Event
	env    chan []string // capacity 1: the newest answer
	closed chan struct{}
	close  func()
	n      atomic.Int64
	Hello  *Event // what an adopted shim said first: agent, exit, ends
}

// ErrSuperseded is returned by Adopt when a supervisor with a higher epoch has the runtime.
var ErrSuperseded = errors.New("runtime belongs to a newer supervisor")

// Launch starts a shim from this process's own executable. The runtime's directory and record exist. The
// shim lives on when this process dies. It returns the shim's pid, which the caller reaps.
func Launch(cfg Config, log *os.File, env []string) (*Control, int, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, 0, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("launch shim: %w", err)
	}
	defer null.Close()
	pid, err := proc.Spawn{
		Path: "/proc/self/exe", Args: []string{"pintle", Verb, cfg.Runtime}, Env: env, Dir: "/",
		Files: []*os.File{null, null, log, theirs}, Setsid: true, Umask: -1,
	}.Start()
	if err != nil {
		_ = ours.Close()
		return nil, 0, fmt.Errorf("launch shim: %w", err)
	}
	c := newControl(newLink(ours))
	data, err := json.Marshal(cfg)
	if err == nil {
		_, err = ours.Write(append(data, '\n'))
	}
	if err != nil {
		_ = ours.Close()
		return nil, pid, fmt.Errorf("configure shim: %w", err)
	}
	go c.listen()
	return c, pid, nil
}

// pair makes a connection, one end as a file to be inherited.
func pair() (net.Conn, *os.File, error) {
	fds, err := socketpair()
	if err != nil {
		return nil, nil, fmt.Errorf("make connection: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "shim")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, fmt.Errorf("make connection: %w", err)
	}
	return conn, os.NewFile(uintptr(fds[1]), "controller"), nil
}

// socketpair makes two descriptors that no child inherits by accident: forks wait until both are marked.
func socketpair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}

// Adopt takes a running shim over, on a connection to its socket.
func Adopt(conn net.Conn, epoch int64) (*Control, error) {
	c := newControl(newLink(conn))
	if err := c.link.send(message{M: "hello", Epoch: epoch}); err != nil {
		return nil, err
	}
	m, err := c.link.receive()
	switch {
	case err != nil:
		_ = conn.Close()
		return nil, fmt.Errorf("greet shim: %w", err)
	case m.M != "hello":
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %s", ErrSuperseded, m.Error)
	}
	c.Hello = &Event{Started: m.Agent, Exit: m.Exit, Out: m.Out, Err: m.Err}
	go c.listen()
	return c, nil
}

func newControl(l *link) *Control {
	c := &Control{link: l, events: make(chan Event), env: make(chan []string, 1), closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Events are what the shim says. The channel is closed when the connection is gone and all was read, or by Close. Who
// waits for something else meanwhile need not read it: the shim is always listened to, since it lets go of a controller
// that is not.
func (c *Control) Events() <-chan Event { return c.events }

// listen hands on what the shim says, until all of it was read or nobody wants it any more.
func (c *Control) listen() {
	heard := make(chan Event)
	go c.hear(heard)
	Relay(heard, c.events, c.closed)
}

// Relay hands on what is heard, and closes events when all of it was read, or closed is closed. Who tells need not wait for
// who reads: what was not read yet is bounded by what was asked for: the start, the exit, how far the spools have grown, and
// an answer to each write.
func Relay(heard <-chan Event, events chan<- Event, closed <-chan struct{}) {
	defer close(events)
	var waiting []Event
	for heard != nil || len(waiting) > 0 {
		var next Event
		var to chan<- Event // nil, to which nothing is sent, as long as there is nothing
		if len(waiting) > 0 {
			next, to = waiting[0], events
		}
		select {
		case ev, ok := <-heard:
			if !ok {
				heard = nil
				continue
			}
			waiting = await(waiting, ev)
		case to <- next:
			waiting = waiting[1:]
		case <-closed:
			return
		}
	}
}

// await puts an event behind those that wait to be read. Of the spools' ends the newest count, and they may be told
// early: the bytes are there.
func await(waiting []Event, ev Event) []Event {
	i := slices.IndexFunc(waiting, Event.grown)
	if i < 0 || !ev.grown() {
		return append(waiting, ev)
	}
	waiting[i] = ev
	return waiting
}

// grown reports whether the event just says how far the spools have grown.
func (e Event) grown() bool { return e.Started == nil && e.Exit == nil && e.Written == nil }

// hear decodes what the shim says until the connection is gone.
func (c *Control) hear(to chan<- Event) {
	defer close(to)
	for {
		m, err := c.link.receive()
		if err != nil {
			return
		}
		ev, ok := c.event(m)
		if !ok {
			continue
		}
		select {
		case to <- ev:
		case <-c.closed:
			return
		}
	}
}

// event is what a message says. An environment is for who asked for it; if he has gone, for the next one.
func (c *Control) event(m message) (Event, bool) {
	switch m.M {
	case "started":
		return Event{Started: m.Agent}, m.Agent != nil
	case "data":
		return Event{Out: m.Out, Err: m.Err}, true
	case "exit":
		return Event{Exit: m.Exit}, m.Exit != nil
	case "written":
		return Event{Written: &Written{N: m.N, Op: m.Op, Error: m.Error}}, true
	case "env":
		select {
		case <-c.env:
		default:
		}
		c.env <- m.Env
	}
	return Event{}, false
}

// Environment asks for the environment that the agent was started with, until limit fires.
func (c *Control) Environment(limit <-chan time.Time) ([]string, error) {
	if err := c.link.send(message{M: "env"}); err != nil {
		return nil, err
	}
	select {
	case env := <-c.env:
		return env, nil
	case <-limit:
		return nil, errors.New("shim does not answer")
	}
}

// Signal has the agent's process group signalled.
func (c *Control) Signal(sig syscall.Signal) error {
	return c.link.send(message{M: "signal", N: c.n.Add(1), Sig: int(sig)})
}

// Ack lets the shim drop what was taken in.
func (c *Control) Ack(out, err int64) error {
	return c.link.send(message{M: "ack", Out: out, Err: err})
}

// Write has data written to the agent, once for its op; the answer comes as an Event.
func (c *Control) Write(op string, after int64, data []byte) error {
	return c.link.send(message{M: "write", N: c.n.Add(1), Op: op, After: after, Data: data})
}

// Deadline has the shim end the tree at that time of proc.BootClock if its supervisor does not; 0: never.
func (c *Control) Deadline(at time.Duration) error {
	return c.link.send(message{M: "deadline", At: int64(at)})
}

// End closes the agent's input.
func (c *Control) End() error { return c.link.send(message{M: "end"}) }

// Close lets go of the shim, which goes on. It may be called again.
func (c *Control) Close() {
	c.close()
	_ = c.link.conn.Close()
}

// Dead takes the lock of a runtime as the proof that its shim is dead. state.ErrLocked: it lives.
func Dead(d *state.Dir, runtime string) (unlock func(), err error) {
	return state.TryLock(d.Path(LockFile(runtime)))
}

// SeenDead is Dead for who only looks.
func SeenDead(d *state.Dir, runtime string) (unlock func(), err error) {
	return state.TryShared(d.Path(LockFile(runtime)))
}
