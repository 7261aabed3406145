package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// Client is the calling end of a connection. Its methods may be called from any goroutine.
type Client struct {
	conn *jsonrpc2.Conn
	last atomic.Uint64 // request id
}

// NewClient speaks on conn. onNotify, if not nil, gets notifications in order and must return soon.
func NewClient(conn net.Conn, onNotify func(method string, params json.RawMessage)) *Client {
	return &Client{conn: jsonrpc2.NewConn(context.Background(), newStream(conn), notifier(onNotify))}
}

type notifier func(string, json.RawMessage)

func (n notifier) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if n != nil && r.Notif && r.Params != nil {
		n(r.Method, *r.Params)
	}
}

// Call makes a request and decodes its answer into result. An answer that is an error comes as
// *api.Error; a broken connection as CodeUnreachable. When ctx ends the peer is told to give up.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	id := jsonrpc2.ID{Num: c.last.Add(1)}
	call, err := c.conn.DispatchCall(ctx, method, params, jsonrpc2.PickID(id))
	if err == nil {
		err = call.Wait(ctx, result)
	}
	var answer *jsonrpc2.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return fromWire(err)
	case ctx.Err() != nil:
		_ = c.conn.Notify(context.Background(), MethodCancel, map[string]any{"id": id})
		return ctx.Err()
	}
	return api.E(api.CodeUnreachable, "%s: connection to the supervisor broke: %w", method, err)
}

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Done is closed when the connection is gone.
func (c *Client) Done() <-chan struct{} { return c.conn.DisconnectNotify() }

var errForeign = errors.New("belongs to another user")

// checkPeer refuses a peer of another user. Root is no exception: a supervisor serves its own uid.
func checkPeer(conn net.Conn) error {
	uid, err := peerUID(conn)
	if err != nil {
		return fmt.Errorf("look at the peer: %w", err)
	}
	if uid != currentUID() {
		return fmt.Errorf("peer (uid %d): %w", uid, errForeign)
	}
	return nil
}
