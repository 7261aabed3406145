package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// Client is the calling end of a connection. Its methods may be called from any goroutine.
type Client struct {
	conn    *jsonrpc2.Conn
	stream  *stream
	turn    chan struct{} // held while sending: a lock that can be waited for with a context
	last    atomic.Uint64 // request id
	closing atomic.Pointer[api.Closing]
}

// NewClient speaks on conn. onNotify, if not nil, gets notifications in order and must return soon: no
// answer is read meanwhile.
func NewClient(conn net.Conn, onNotify func(method string, params json.RawMessage)) *Client {
	c := &Client{stream: newStream(conn, writeTimeout), turn: make(chan struct{}, 1)}
	c.stream.out.lingers = true
	c.conn = jsonrpc2.NewConn(context.Background(), c.stream, &listener{c, onNotify}, silent)
	return c
}

type listener struct {
	c        *Client
	onNotify func(string, json.RawMessage)
}

// Handle is the library's handler.
func (l *listener) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if !r.Notif {
		return
	}
	params := json.RawMessage("{}")
	if r.Params != nil {
		params = *r.Params
	}
	if r.Method == api.NotifyClosing {
		var why api.Closing
		if json.Unmarshal(params, &why) == nil {
			l.c.closing.Store(&why)
		}
	}
	if l.onNotify != nil {
		l.onNotify(r.Method, params)
	}
}

// Call makes a request and decodes its answer into result, unless that is nil. An answer that is an error
// comes as *api.Error; a broken connection as CodeUnreachable, whatever became of the request. When ctx
// ends the peer is told to give up, and ctx's error returned.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	id := jsonrpc2.ID{Num: c.last.Add(1)}
	var call jsonrpc2.Waiter
	err := c.send(ctx, method, params, func(raw any) (err error) {
		call, err = c.conn.DispatchCall(ctx, method, raw, jsonrpc2.PickID(id))
		return err
	})
	if err != nil {
		return err
	}
	var raw json.RawMessage
	err = call.Wait(ctx, &raw)
	var refusal *jsonrpc2.Error
	switch {
	case errors.As(err, &refusal):
		return fromWire(refusal)
	case err != nil && ctx.Err() != nil:
		c.cancel(ctx, id)
		return ctx.Err()
	case err != nil:
		return c.broken(method, err)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return api.E(api.CodeInternal, "answer to %s: %w", method, err)
	}
	return nil
}

// Notify sends a notification; it returns once that is out.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, method, params, func(raw any) error { return c.conn.Notify(ctx, method, raw) })
}

// cancel tells the peer to give a request up, if it listens: it may have gone, and the caller wants to.
func (c *Client) cancel(ctx context.Context, id jsonrpc2.ID) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer done()
	_ = c.Notify(ctx, MethodCancel, map[string]any{"id": id})
}

// send has f write one message. When ctx ends meanwhile the writing stops: before the first byte nothing is
// lost, after it the connection is, since nothing can follow half a line.
func (c *Client) send(ctx context.Context, method string, params any, f func(raw any) error) error {
	raw, err := body(params)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.stream.out.limit(time.Unix(1, 0))
	})
	err = f(raw)
	if !stop() {
		<-stopped
		c.stream.out.limit(time.Time{})
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return c.broken(method, err)
	}
	return nil
}

// body encodes parameters, so that what cannot be sent is no broken connection. Nil leaves them out.
func body(params any) (any, error) {
	if params == nil {
		return nil, nil
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, api.E(api.CodeParams, "encode parameters: %w", err)
	}
	return json.RawMessage(raw), nil
}

// broken is the error for a connection that ended, with the reason that the peer gave.
func (c *Client) broken(method string, err error) error {
	var typed *api.Error
	if errors.As(err, &typed) { // the message itself was refused, by encode
		return typed
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		select { // what the peer wrote before it closed is being read
		case <-c.Done():
		case <-time.After(lastTimeout):
		}
	}
	if code, reason := c.Reason(); code != 0 {
		return api.E(api.CodeUnreachable, "call %s: the supervisor closed the connection: %s (%d): %w", method, reason, code, ErrGone)
	}
	return api.E(api.CodeUnreachable, "call %s: connection to the supervisor broke: %w: %w", method, ErrGone, err)
}

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Done is closed when the connection is gone.
func (c *Client) Done() <-chan struct{} { return c.conn.DisconnectNotify() }

// Reason is what the peer gave for closing the connection; 0 if nothing.
func (c *Client) Reason() (code int, reason string) {
	if why := c.closing.Load(); why != nil {
		return why.Code, why.Reason
	}
	return 0, ""
}
