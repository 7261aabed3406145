package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

var (
	// ErrLagged is returned by Peer.Notify when the peer reads too slowly: the notification was not
	// queued. The caller says so with Peer.Send, which waits, and reads on from the journal.
	ErrLagged = errors.New("peer lags: its queue is full")
	// ErrGone is returned for a connection that has ended.
	ErrGone = errors.New("connection is gone")
	// ErrDirectory is returned by Listen, DialSocket and SocketDir for a directory that is another
	// user's or open to others. The user has to mend it.
	ErrDirectory = errors.New("socket directory is not safe")
	// ErrPathTooLong is returned by Listen and DialSocket for a path that this system cannot bind. The
	// caller takes the directory that SocketDir names.
	ErrPathTooLong = errors.New("socket path is too long")
	// ErrForeign is returned by Serve and DialSocket when the other end is another user's.
	ErrForeign = errors.New("belongs to another user")
)

// data is what a refusal carries besides JSON-RPC's number and text. Its members stand beside those of
// Error.Data, so that a refusal reads {code, retryable, currentFence, owner, next}.
type data struct {
	Code      api.Code `json:"code"`
	Retryable bool     `json:"retryable"`
	Next      string   `json:"next"`
	Fields    []string `json:"fields"`
}

func toWire(err error) *jsonrpc2.Error {
	e := api.As(err)
	w := &jsonrpc2.Error{Code: int64(e.Code.Wire()), Message: e.Message}
	raw, err := json.Marshal(members(e))
	if err != nil { // an Error.Data that is no JSON must not hide the refusal
		raw, _ = json.Marshal(data{Code: e.Code, Retryable: e.Retryable, Next: e.Next, Fields: e.Fields})
	}
	w.Data = (*json.RawMessage)(&raw)
	return w
}

func members(e *api.Error) map[string]any {
	m := map[string]any{}
	maps.Copy(m, e.Data)
	m["code"] = e.Code
	if e.Code != api.CodeAccess { // whose data is exactly {code, method} (X29)
		m["retryable"] = e.Retryable
	}
	if e.Next != "" {
		m["next"] = e.Next
	}
	if e.Fields != nil {
		m["fields"] = e.Fields
	}
	return m
}

// fromWire makes the typed error of an answer, so that errors.As and errors.Is work across the wire.
func fromWire(w *jsonrpc2.Error) *api.Error {
	var d data
	var more map[string]any
	if w.Data != nil {
		_ = json.Unmarshal(*w.Data, &d) // a foreign peer's data may have any shape: its number counts then
		_ = json.Unmarshal(*w.Data, &more)
	}
	if d.Code == "" {
		d.Code = api.OfWire(int(w.Code))
	}
	maps.DeleteFunc(more, func(k string, _ any) bool {
		return k == "code" || k == "retryable" || k == "next" || k == "fields"
	})
	if len(more) == 0 {
		more = nil
	}
	return &api.Error{Code: d.Code, Message: w.Message, Retryable: d.Retryable, Next: d.Next, Fields: d.Fields, Data: more}
}

// refusalOf is the answer for a handler's error. A cancelled request is told apart from a cancelled run.
func refusalOf(ctx context.Context, err error) *jsonrpc2.Error {
	var typed *api.Error
	if ctx.Err() != nil && !errors.As(err, &typed) {
		return toWire(api.E(api.CodeAbandoned, "request was cancelled"))
	}
	return toWire(err)
}
