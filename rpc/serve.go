package rpc

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// MaxInFlight is how many requests of one connection are carried out at once. Beyond it the connection is
// not read until one is done: the peer feels it as back pressure, nothing is dropped. Cancels that lie
// behind are not seen until then either.
const MaxInFlight = 64

// MethodCancel is the notification {id} that ends the context of a request in flight. It is handled ahead
// of all that runs.
const MethodCancel = "$/cancel"

// NotifyFrame is the notification {code, message} for a binary frame that was not taken.
const NotifyFrame = "frame/error"

// Handler carries out requests and notifications, whose results go nowhere. Its context ends when the
// peer is gone or cancels the request. Calls of one connection run concurrently. Errors that are or wrap an
// *api.Error keep their code on the wire.
type Handler interface {
	Handle(ctx context.Context, p *Peer, method string, params json.RawMessage) (any, error)
}

// Then is a handler's result with what is to be done once its answer has been given. Of a peer that was not greeted when
// it asked nothing further is begun before Do returns: so a notification can follow the answer to a hello, with nothing in
// between (C7). Do must return soon.
type Then struct {
	Result any
	Do     func()
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, p *Peer, method string, params json.RawMessage) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, p *Peer, method string, params json.RawMessage) (any, error) {
	return f(ctx, p, method, params)
}

// Server serves connections. Only Handler is needed.
type Server struct {
	Handler Handler

	// Hello, if not 0, is how long a peer has until it must be greeted (Peer.Greet): then it is closed with
	// 4001 (C4). Until it is greeted its requests are carried out one by one, in order, so that what it
	// sends behind its hello without waiting finds it greeted.
	Hello time.Duration
	// After is time.AfterFunc, for the hello; tests give their own clock's.
	After func(d time.Duration, f func()) (stop func() bool)
	// OnFrame takes a greeted peer's binary frame, in order, and must return soon; its error is told to the
	// peer. Without it every frame is refused so. A frame before the greeting closes with 4002 (C13).
	OnFrame func(p *Peer, frame []byte) error
	// Gone is told of each peer whose connection has ended, when all its handlers have returned.
	Gone func(p *Peer)
	// Log is told of panics in handlers. Without it package log is.
	Log func(format string, args ...any)

	writeTimeout time.Duration // for tests
}

// Serve serves one connection with h alone. See Server.Serve.
func Serve(ctx context.Context, conn net.Conn, h Handler) error {
	return (&Server{Handler: h}).Serve(ctx, conn)
}

// Serve serves one connection, a Unix socket's, until the peer is gone or closed or ctx ends, and returns
// when all its handlers have. Errors: ErrForeign, for which nothing was read.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	uid, err := checkPeer(conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	p := newPeer(s, conn, uid)
	if s.Hello != 0 {
		p.stream.max.Store(MaxStranger) // strangers are many, and cost nothing
	}
	defer s.expectHello(p)()
	// The library closes the connection when its context ends, before a reason could be sent: it gets one
	// that does not, and it is closed below.
	c := jsonrpc2.NewConn(context.WithoutCancel(ctx), p.stream, p, silent)
	select {
	case <-c.DisconnectNotify():
	case <-p.stream.out.gone:
	case <-ctx.Done():
		p.Close(CloseGoing, "the supervisor leaves")
	}
	p.stream.out.end()
	_ = c.Close() // ends the contexts of all requests
	p.finish()
	if s.Gone != nil {
		s.Gone(p)
	}
	return nil
}

// silent keeps the library from writing to standard error.
var silent = jsonrpc2.SetLogger(log.New(io.Discard, "", 0))

func (s *Server) expectHello(p *Peer) (stop func() bool) {
	if s.Hello == 0 {
		return func() bool { return true }
	}
	after := s.After
	if after == nil {
		after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return after(s.Hello, func() {
		if !p.Greeted() {
			p.Close(CloseHelloTimeout, "hello timeout")
		}
	})
}

func (s *Server) logf(format string, args ...any) {
	if s.Log == nil {
		log.Printf(format, args...)
		return
	}
	s.Log(format, args...)
}
