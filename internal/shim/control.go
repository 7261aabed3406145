package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/pintle/pintle/internal/proc"
)

// accept lets adopters in.
func (s *shim) accept(ctx context.Context, l net.Listener) {
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if uid, err := proc.PeerUID(conn); err != nil || uid != os.Geteuid() {
			warn("%s: a peer of uid %d is refused: %v", s.cfg.Runtime, uid, err)
			_ = conn.Close()
			continue
		}
		go s.admit(newLink(conn))
	}
}

// admit makes the connection the controller if its epoch is not lower than the current one's. Then the
// older connection is cut, and what was still unread on it is never carried out.
func (s *shim) admit(l *link) {
	hello, err := l.receive()
	if err != nil || hello.M != "hello" {
		_ = l.conn.Close()
		return
	}
	if s.supersede(l, hello.Epoch) {
		s.control(l)
	}
}

// supersede has the connection be the controller from now on. What the older one has recorded by then counts, and is there
// for this one to see; nothing that comes later does.
func (s *shim) supersede(l *link, epoch int64) bool {
	s.intents.Lock()
	defer s.intents.Unlock()
	s.mu.Lock()
	if epoch < s.epoch {
		answer := message{M: "refused", Epoch: s.epoch, Error: "a supervisor with a higher epoch has this runtime"}
		s.mu.Unlock()
		_ = l.send(answer)
		_ = l.conn.Close()
		return false
	}
	older := s.controller
	if s.last != nil {
		s.last.late = true
	}
	s.controller, s.last, s.epoch = l, l, epoch
	agent := s.agent
	// Said under the lock: nothing else may be told before it. A new connection has room for it.
	_ = l.send(message{M: "hello", Version: WireVersion, Agent: &agent, Out: s.out.length(), Err: s.err.length(), Exit: s.exit})
	s.mu.Unlock()
	if older != nil {
		_ = older.conn.Close()
	}
	return true
}

// control carries out what a controller says until it is gone or superseded.
func (s *shim) control(l *link) {
	for {
		m, err := l.receive()
		if errors.Is(err, errMessage) {
			_ = l.send(message{M: "refused", Error: err.Error()})
		}
		if err != nil {
			s.lose(l)
			return
		}
		if !s.obey(l, m) {
			_ = l.conn.Close()
			return
		}
	}
}

func (s *shim) lose(l *link) {
	_ = l.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controller == l {
		s.controller = nil
	}
}

// obey carries out one message if l is still the controller. The check and the effect are one critical
// section for all that reaches the agent; a write, which may block, checks and records in it and is
// ordered by the input's own lock.
func (s *shim) obey(l *link, m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controller != l {
		return false
	}
	switch m.M {
	case "ack":
		s.acked(m.Out, m.Err)
	case "deadline":
		s.deadline = m.At
	case "env":
		go func() { _ = l.send(message{M: "env", Env: s.cfg.Env}) }()
	case "signal":
		answer := message{M: "signalled", N: m.N, Error: s.signal(syscall.Signal(m.Sig))}
		go func() { _ = l.send(answer) }()
	case "end":
		go s.in.end(s.stillFrom(l))
	case "write":
		s.write(l, m)
	default:
		answer := message{M: "refused", N: m.N, Error: fmt.Sprintf("no %s here", m.M)}
		go func() { _ = l.send(answer) }()
	}
	return true
}

// acked drops what was taken in. After the end, an ack of all is the controller's word that it has the end too.
func (s *shim) acked(out, err int64) {
	s.out.ack(out)
	s.err.ack(err)
	if s.exit != nil && out >= s.exit.Out && err >= s.exit.Err {
		select {
		case <-s.taken:
		default:
			close(s.taken)
		}
	}
}

// signal signals the agent's group; the leader is unreaped as long as its pid is kept.
func (s *shim) signal(sig syscall.Signal) string {
	if s.leader == 0 {
		return proc.ErrGone.Error()
	}
	st, err := proc.Read(s.leader)
	lives := err == nil && st.State != 'Z' // a zombie is signalled without a word, and has ended by itself
	if err := proc.SignalGroup(s.leader, sig); err != nil {
		return err.Error()
	}
	s.signalled = s.signalled || lives
	return ""
}

// stillFrom reports whether nobody has come in the place of l, and has nobody come until done is called: a write that waited
// for the agent to read may be due when another one is the controller.
func (s *shim) stillFrom(l *link) func() (done func(), ok bool) {
	return func() (done func(), ok bool) {
		s.intents.Lock()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.intents.Unlock, !l.late
	}
}

// write hands one message over in order. The controller sends the next when this one is answered, so there
// is one such goroutine at a time.
func (s *shim) write(l *link, m message) {
	go func() {
		in, err := s.in.write(Input{N: m.N, Op: m.Op, After: m.After, Data: m.Data}, s.stillFrom(l))
		answer := message{M: "written", N: m.N, Op: m.Op, Error: in.Error}
		if err != nil {
			answer.Error = err.Error()
		}
		_ = l.send(answer)
	}()
}

// report tells the controller how far the spools have grown.
func (s *shim) report(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		s.mu.Lock()
		l := s.controller
		s.mu.Unlock()
		if l != nil {
			_ = l.send(message{M: "data", Out: s.out.length(), Err: s.err.length()})
		}
	}
}

func warn(format string, args ...any) { fmt.Fprintf(os.Stderr, "pintle shim: "+format+"\n", args...) }
