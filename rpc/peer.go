package rpc

import (
	"fmt"
	"net"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// Peer is the other end of one connection that is being served. Its methods may be called from any
// goroutine, also after the connection has ended.
type Peer struct {
	srv    *Server
	conn   net.Conn
	uid    int
	stream *stream
	slots  chan struct{} // one for each request in flight
	closes sync.Once

	mu     sync.Mutex
	hello  bool
	ended  bool // no request begins any more
	value  any
	cancel map[jsonrpc2.ID]*inFlight
	calls  sync.WaitGroup
}

func newPeer(s *Server, conn net.Conn, uid int) *Peer {
	timeout := writeTimeout
	if s.writeTimeout != 0 {
		timeout = s.writeTimeout
	}
	p := &Peer{
		srv: s, conn: conn, uid: uid, stream: newStream(conn, timeout),
		slots: make(chan struct{}, MaxInFlight), cancel: map[jsonrpc2.ID]*inFlight{},
	}
	p.stream.refuse, p.stream.frame = p.refuse, p.frame
	return p
}

// UID is the user at the other end, which is ours.
func (p *Peer) UID() int { return p.uid }

// Notify queues a notification, in order with answers given later. It never waits for the peer. Errors:
// ErrLagged, ErrGone, and those of encoding.
func (p *Peer) Notify(method string, params any) error {
	line, err := encode(notification{Method: method, Params: params})
	if err == nil {
		err = p.stream.out.enqueue(line)
	}
	if err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	return nil
}

// Send is Notify for a goroutine that may wait for the peer: it returns once this and all that was queued
// before is out. A peer that does not read for long loses its connection.
func (p *Peer) Send(method string, params any) error {
	if err := p.stream.WriteObject(notification{Method: method, Params: params}); err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	return nil
}

// Close tells the peer why, after what was queued, and ends the connection (C6). The first reason counts.
// A handler that closes its peer has no answer sent.
func (p *Peer) Close(code int, reason string) {
	p.closes.Do(func() {
		line, err := encode(notification{Method: api.NotifyClosing, Params: api.Closing{Code: code, Reason: reason}})
		if err == nil {
			p.stream.out.last(line)
		}
		p.stream.out.end()
	})
}

// Greet notes that the peer said hello; false if it had already.
func (p *Peer) Greet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.hello
	p.hello = true
	p.stream.max.Store(MaxLine)
	return first
}

// Greeted reports whether the peer said hello.
func (p *Peer) Greeted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello
}

// Value is what the handler keeps with the peer.
func (p *Peer) Value() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value
}

// SetValue keeps a value of the handler's.
func (p *Peer) SetValue(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value = v
}

// refuse answers what is no message (C12).
func (p *Peer) refuse(m *malformed) error {
	if m.closing != 0 {
		p.Close(m.closing, m.why.Message)
		return m
	}
	return p.stream.WriteObject(answer{ID: m.id, Error: toWire(m.why)})
}
