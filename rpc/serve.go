package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime/debug"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// MaxInFlight is how many requests of one connection are carried out at once. Beyond it the connection is
// not read until one is done: the peer feels it as back pressure, nothing is dropped.
const MaxInFlight = 64

// MethodCancel is the notification {id} that ends the context of a request in flight. It is handled ahead
// of all that is queued.
const MethodCancel = "$/cancel"

// Handler carries out requests. Its context ends when the peer is gone or cancels the request.
type Handler interface {
	Handle(ctx context.Context, p *Peer, method string, params json.RawMessage) (any, error)
}

// Peer is the other end of one connection that is being served.
type Peer struct {
	conn   *jsonrpc2.Conn
	stream *stream
	slots  chan struct{}
	h      Handler
	ctx    context.Context // of the connection; ends every request of it

	mu     sync.Mutex
	hello  bool
	cancel map[jsonrpc2.ID]context.CancelFunc
	calls  sync.WaitGroup
}

// Serve serves one connection until the peer is gone or ctx ends, and returns when all its handlers have.
// It refuses a peer of another user.
func Serve(ctx context.Context, conn net.Conn, h Handler) error {
	if err := checkPeer(conn); err != nil {
		_ = conn.Close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Peer{
		stream: newStream(conn), slots: make(chan struct{}, MaxInFlight), h: h, ctx: ctx,
		cancel: map[jsonrpc2.ID]context.CancelFunc{},
	}
	ready := make(chan struct{})
	p.conn = jsonrpc2.NewConn(ctx, p.stream, gate{p, ready})
	close(ready)
	select {
	case <-p.conn.DisconnectNotify():
	case <-ctx.Done():
		p.stream.close(CloseGoing, "the supervisor leaves")
		_ = p.conn.Close()
	}
	cancel()
	p.calls.Wait()
	return nil
}

// gate is the library's handler: it is called in the reading goroutine, in order.
type gate struct {
	p     *Peer
	ready chan struct{} // p.conn is set
}

func (g gate) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	<-g.ready
	p := g.p
	if r.Method == MethodCancel {
		p.abandon(r)
		return
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.ctx.Done():
		return
	}
	ctx, done := p.begin(r)
	p.calls.Go(func() {
		defer func() { done(); <-p.slots }()
		p.answer(ctx, r)
	})
}

// begin notes a request as being in flight, so that it can be cancelled by its id.
func (p *Peer) begin(r *jsonrpc2.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	if r.Notif {
		return ctx, cancel
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel[r.ID] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.cancel, r.ID)
	}
}

func (p *Peer) abandon(r *jsonrpc2.Request) {
	var params struct {
		ID jsonrpc2.ID `json:"id"`
	}
	if r.Params == nil || json.Unmarshal(*r.Params, &params) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel, ok := p.cancel[params.ID]; ok {
		cancel()
	}
}

func (p *Peer) answer(ctx context.Context, r *jsonrpc2.Request) {
	result, err := p.call(ctx, r)
	if r.Notif || p.ctx.Err() != nil {
		return
	}
	if err != nil {
		_ = p.conn.ReplyWithError(p.ctx, r.ID, toWire(err))
		return
	}
	_ = p.conn.Reply(p.ctx, r.ID, result)
}

// call is the handler's call. A panic in it is an error of that request alone.
func (p *Peer) call(ctx context.Context, r *jsonrpc2.Request) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = api.E(api.CodeInternal, "panic in %s: %v\n%s", r.Method, v, debug.Stack())
		}
	}()
	params := json.RawMessage("{}")
	if r.Params != nil {
		params = *r.Params
	}
	return p.h.Handle(ctx, p, r.Method, params)
}

// Notify sends a notification. It does not outlast writeTimeout: a peer that never reads is dropped.
func (p *Peer) Notify(method string, params any) error {
	if err := p.conn.Notify(p.ctx, method, params); err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	return nil
}

// Close tells the peer why and ends the connection.
func (p *Peer) Close(code int, reason string) { p.stream.close(code, reason) }

// Greet notes that the peer said hello; false if it had already.
func (p *Peer) Greet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.hello
	p.hello = true
	return first
}

// Greeted reports whether the peer said hello.
func (p *Peer) Greeted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello
}
