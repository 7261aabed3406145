package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/shim"
)

// hub holds the connection to the shim of a process that sessions share, and has a seat for each of them. To a runtime its
// seat is what a connection of its own would be. Who has a part in the process is on disk (partFile); the members here are
// that, those who are about to come, and how far each has come.
//
// Nothing that a member has not taken in and checkpointed is dropped by the shim, also of one that is not seated yet.
type hub struct {
	s     *Supervisor
	id    string
	cwd   string // in which the process was started
	offer *offer // what the process was started for, nil while that is not known, or nobody may come; guarded by s.mu
	users int    // who holds the hub; guarded by s.mu

	greeted chan struct{} // closed once the process can be joined: it was greeted
	closed  chan struct{} // closed once nobody may come any more

	mu      sync.Mutex // held for what follows, also while a shim is greeted
	control *shim.Control
	pid     int // of the shim, if this supervisor started it
	env     []string
	agent   *shim.Agent
	exit    *shim.Exit
	out     int64 // ends of the spools
	errs    int64
	members map[string]*member // by session
	writes  []written          // to be written, in their order; the first is being written
	until   time.Duration      // the deadline that the shim was told
	version string             // of the agent
	spoken  bool               // it was greeted
	endedBy string             // the session for whose stop the process is ended
	unlock  func()             // of the dead shim's lock, which those who settle it hold together
	holders int
}

// member is a session's part in the process.
type member struct {
	folder   string // of the run that has it, or had it last
	seat     *seat  // nil while nobody follows the process for it
	parting  bool   // it leaves, and the process stays for others
	out      int64  // so much it does not need any more
	errs     int64
	bounded  bool // it is a run's that has a deadline
	deadline time.Duration
}

// written is a frame to be written, and whose it is.
type written struct {
	seat  *seat
	op    string
	after int64
	data  []byte
}

// hubOf holds the hub of a shared runtime until leave is called.
func (s *Supervisor) hubOf(id string) (h *hub, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h = s.hubs[id]; h == nil {
		h = s.newHub(id)
		for _, session := range s.parts(id) {
			h.members[session] = &member{}
		}
	}
	return h, s.holdHub(h)
}

// newHub makes one that is found by its id. s.mu is held.
func (s *Supervisor) newHub(id string) *hub {
	if s.hubs == nil {
		s.hubs = map[string]*hub{}
	}
	h := &hub{s: s, id: id, members: map[string]*member{}, greeted: make(chan struct{}), closed: make(chan struct{})}
	s.hubs[id] = h
	return h
}

// holdHub keeps it as long as somebody holds it. s.mu is held.
func (s *Supervisor) holdHub(h *hub) (leave func()) {
	h.users++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.users--; h.users == 0 && s.hubs[h.id] == h {
			delete(s.hubs, h.id)
		}
	})
}

// greet says that the process was greeted, and which version of the agent it is, if that is known.
func (h *hub) greet(version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.spoken = cmp.Or(version, h.version), true
	h.open()
}

// open has others come, once the process was greeted and who it is is known, which may come later. h.mu is held.
func (h *hub) open() {
	if h.spoken && h.agent != nil && h.agent.Agent != nil {
		h.once(h.greeted)
	}
}

// shut has nobody come any more. h.mu is held.
func (h *hub) shut() { h.once(h.closed) }

func (h *hub) once(c chan struct{}) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func (h *hub) isShut() bool {
	select {
	case <-h.closed:
		return true
	default:
		return false
	}
}

// connect has the hub use a connection to the shim. h.mu is held.
func (h *hub) connect(c *shim.Control, pid int) {
	h.control, h.pid, h.writes, h.until = c, pid, nil, -1
	go h.listen(c)
}

// listen gives each member what the shim says, until the connection is gone.
func (h *hub) listen(c *shim.Control) {
	for ev := range c.Events() {
		for _, s := range h.hear(c, ev) {
			s.tell(ev)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.control != c {
		return
	}
	h.control, h.writes = nil, nil
	h.shut()
	for _, m := range h.members {
		if m.seat != nil {
			close(m.seat.heard)
			m.seat = nil
		}
	}
}

// hear notes what was said, and returns for whom it is: all, but what was written only for the one who wrote it.
func (h *hub) hear(c *shim.Control, ev shim.Event) (to []*seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.control != c:
		return nil // what a connection said that was let go of
	case ev.Started != nil:
		h.agent = ev.Started
		h.open()
	case ev.Exit != nil:
		h.exit = ev.Exit
		h.shut()
	case ev.Written != nil:
		return h.wrote(ev.Written)
	default:
		h.out, h.errs = max(h.out, ev.Out), max(h.errs, ev.Err)
	}
	for _, m := range h.members {
		if m.seat != nil {
			to = append(to, m.seat)
		}
	}
	return to
}

// wrote has the next frame written: one of each member at a time, so none waits for more than one of each other's.
func (h *hub) wrote(w *shim.Written) (to []*seat) {
	if len(h.writes) == 0 || h.writes[0].op != w.Op {
		return nil
	}
	done := h.writes[0]
	h.writes = h.writes[1:]
	h.write()
	return []*seat{done.seat}
}

// write sends the first frame. h.mu is held.
func (h *hub) write() {
	if len(h.writes) > 0 && h.control != nil {
		next := h.writes[0]
		_ = h.control.Write(next.op, next.after, next.data) // a broken connection shows in the events
	}
}

// ack lets the shim drop what no member needs. h.mu is held.
func (h *hub) ack() error {
	out, errs := h.out, h.errs
	if h.exit != nil {
		out, errs = h.exit.Out, h.exit.Err
	}
	for _, m := range h.members {
		out, errs = min(out, m.out), min(errs, m.errs)
	}
	if h.control == nil {
		return nil // a shim that has gone needs none
	}
	return h.control.Ack(out, errs)
}

// bound tells the shim until when the process may go on without a supervisor: the last deadline of its members, if all of
// them are runs that have one.
func (h *hub) bound() error {
	last := time.Duration(0)
	for _, m := range h.members {
		if !m.bounded {
			last = 0
			break
		}
		last = max(last, m.deadline)
	}
	if h.control == nil || h.until == last {
		return nil
	}
	h.until = last
	return h.control.Deadline(last)
}

// seated gives a session's runtime its seat on the connection, with what the shim has said by now. h.mu is held.
func (h *hub) seated(session, folder string, leave func()) (*seat, *shim.Event) {
	m := h.members[session]
	if m == nil {
		m = &member{}
		h.members[session] = m
	}
	m.folder = folder
	m.seat = newSeat(h, session, leave)
	return m.seat, &shim.Event{Started: h.agent, Exit: h.exit, Out: h.out, Err: h.errs}
}

// errTaken is for a session whose earlier part in the process is not given back yet.
var errTaken = errors.New("the session's earlier part in the process is being settled")

// errDead is for a process whose shim is dead, so that others settle it: it is looked at anew.
var errDead = errors.New("its shim is dead")

// adopt gives a session its seat in a process that it has a part in, greeting the shim if nobody has.
func (h *hub) adopt(ctx context.Context, r *run, socket string, leave func()) (*seat, *shim.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[r.st.Session]; m != nil && m.seat != nil {
		return nil, nil, errTaken
	}
	if h.holders > 0 {
		return nil, nil, errDead
	}
	if h.control == nil {
		if err := h.reach(ctx, r, socket); err != nil {
			return nil, nil, err
		}
	}
	s, hello := h.seated(r.st.Session, r.folder, leave)
	return s, hello, nil
}

// reach takes the shim over. h.mu is held: whoever else wants it waits, at most adoptLimit.
func (h *hub) reach(ctx context.Context, r *run, socket string) error {
	c, err := r.greet(ctx, socket)
	if err != nil {
		return err
	}
	env, err := c.Environment(time.After(adoptLimit))
	if err != nil {
		c.Close()
		return err
	}
	h.env, h.agent, h.exit, h.out, h.errs = env, c.Hello.Started, c.Hello.Exit, c.Hello.Out, c.Hello.Err
	if h.exit != nil {
		h.shut()
	}
	h.connect(c, 0)
	return nil
}

// dead takes the lock of a shared runtime as the proof that its shim is dead. Its members hold it together.
func (h *hub) dead() (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders == 0 {
		if h.unlock, err = shim.Dead(h.s.dir, h.id); err != nil {
			return nil, err
		}
	}
	h.holders++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.holders--; h.holders == 0 {
			h.unlock()
		}
	}, nil
}

// others reports whether members stay if that session goes. h.mu is held.
func (h *hub) others(session string) bool {
	for name, m := range h.members {
		if name != session && !m.parting {
			return true
		}
	}
	return false
}

// drop takes what a seat still had to write out of the line; what is being written is. h.mu is held.
func (h *hub) drop(s *seat) {
	if len(h.writes) > 1 {
		rest := slices.DeleteFunc(h.writes[1:], func(w written) bool { return w.seat == s })
		h.writes = h.writes[:1+len(rest)]
	}
}
