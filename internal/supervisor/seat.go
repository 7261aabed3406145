package supervisor

import (
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/shim"
)

// seat is a session's place in the hub of a process that it shares: a line to the shim.
type seat struct {
	h       *hub
	session string
	heard   chan shim.Event // from the hub, which closes it when the connection is gone
	events  chan shim.Event // to the runtime
	closed  chan struct{}
	close   func()
}

func newSeat(h *hub, session string, leave func()) *seat {
	s := &seat{h: h, session: session, heard: make(chan shim.Event), events: make(chan shim.Event), closed: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closed); leave() })
	go shim.Relay(s.heard, s.events, s.closed)
	return s
}

// tell is the hub's: it waits for nobody who has gone.
func (s *seat) tell(ev shim.Event) {
	select {
	case s.heard <- ev:
	case <-s.closed:
	}
}

// part is the session's part, while the seat is its. h.mu is held.
func (s *seat) part() *member {
	if m := s.h.members[s.session]; m != nil && m.seat == s {
		return m
	}
	return &member{} // it is another's by now: nothing of it is changed
}

// Events are what the shim says to all, and what became of our own writes.
func (s *seat) Events() <-chan shim.Event { return s.events }

// Write has a frame written when it is its turn.
func (s *seat) Write(op string, after int64, data []byte) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.writes = append(s.h.writes, written{s, op, after, data})
	if len(s.h.writes) == 1 {
		s.h.write()
	}
	return nil
}

// End closes the agent's input, for all who share it.
func (s *seat) End() error { return s.ends(func(c *shim.Control) error { return c.End() }) }

// Signal signals the agent, which is all's who share it.
func (s *seat) Signal(sig syscall.Signal) error {
	return s.ends(func(c *shim.Control) error { return c.Signal(sig) })
}

// ends ends the process. The others are told for whom.
func (s *seat) ends(how func(*shim.Control) error) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.endedBy == "" {
		s.h.endedBy = s.session
	}
	s.h.shut()
	if s.h.control == nil {
		return nil
	}
	return how(s.h.control)
}

// endedByOther reports whether the process was ended for another session's sake.
func (s *seat) endedByOther() bool {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.endedBy != "" && s.h.endedBy != s.session
}

// Ack says what of the spools this session does not need any more.
func (s *seat) Ack(out, errs int64) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	m := s.part()
	m.out, m.errs = max(m.out, out), max(m.errs, errs)
	return s.h.ack()
}

// Environment is what the agent was started with.
func (s *seat) Environment(<-chan time.Time) ([]string, error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.env, nil
}

// Deadline is the run's own; 0: none.
func (s *seat) Deadline(at time.Duration) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	m := s.part()
	m.bounded, m.deadline = at > 0, at
	return s.h.bound()
}

// belong notes whose the session's part is.
func (s *seat) belong(folder string) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.part().folder = folder
}

// alone reports whether nobody stays in the process if this session leaves it. Then nobody comes any more either: it is to
// be closed. Else the session is on its way out.
func (s *seat) alone() bool {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.others(s.session) {
		s.part().parting = true
		return false
	}
	s.h.shut()
	return true
}

// shim is the process that has the agent's.
func (s *seat) shim() (id proc.Identity) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.agent != nil {
		id = s.h.agent.Shim
	}
	return id
}

// version is the agent's, if it is known.
func (s *seat) version() string {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.version
}

// vanish closes a seat that was no session's.
func (s *seat) vanish() {
	s.Close()
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	delete(s.h.members, s.session)
}

// Close lets go of the shim, which goes on; the session's part stays its own.
func (s *seat) Close() {
	s.h.mu.Lock()
	if m := s.h.members[s.session]; m != nil && m.seat == s {
		m.seat = nil
	}
	s.h.drop(s)
	last := true
	for _, m := range s.h.members {
		last = last && m.seat == nil
	}
	if c := s.h.control; last && c != nil {
		s.h.control, s.h.writes = nil, nil
		c.Close()
	}
	s.h.mu.Unlock()
	s.close()
}
