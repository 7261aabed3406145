package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// serve has s serve one connection over a real socket and returns the other end. The test fails if Serve
// does not return once that is closed.
func serve(t testing.TB, s *Server) (conn net.Conn, served <-chan struct{}) {
	t.Helper()
	return serveContext(context.Background(), t, s)
}

func serveContext(ctx context.Context, t testing.TB, s *Server) (net.Conn, <-chan struct{}) {
	t.Helper()
	dir, err := SocketDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(dir, "test.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.Serve(ctx, conn); err != nil {
			t.Error(err)
		}
	}()
	conn, err := DialSocket(t.Context(), filepath.Join(dir, "test.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); <-served })
	return conn, served
}

// client is a Client of a served connection.
func client(t testing.TB, s *Server) *Client {
	conn, _ := serve(t, s)
	c := NewClient(conn, nil)
	t.Cleanup(c.Close)
	return c
}

// echo answers with the parameters.
var echo = HandlerFunc(func(_ context.Context, _ *Peer, _ string, params json.RawMessage) (any, error) {
	return params, nil
})

// wire is any message, as a peer that is not ours sees it.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

type rawPeer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func raw(t testing.TB, s *Server) *rawPeer {
	conn, _ := serve(t, s)
	return &rawPeer{t, conn, bufio.NewReader(conn)}
}

func (p *rawPeer) say(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.Conn, line); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *rawPeer) hear() wire {
	p.t.Helper()
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	var m wire
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return m
}

// refused wants an error answer under the id with the code.
func (p *rawPeer) refused(id string, code api.Code) {
	p.t.Helper()
	m := p.hear()
	if string(m.ID) != id || m.Error == nil || m.Error.Code != code.Wire() || m.Error.Data["code"] != string(code) {
		p.t.Errorf("heard id %s, error %+v, result %s; want id %s, %s", m.ID, m.Error, m.Result, id, code)
	}
}

// alive wants the connection to go on.
func (p *rawPeer) alive() {
	p.t.Helper()
	p.say(`{"jsonrpc":"2.0","id":"alive","method":"echo","params":["yes"]}` + "\n")
	if m := p.hear(); string(m.ID) != `"alive"` || string(m.Result) != `["yes"]` {
		p.t.Errorf("heard id %s, result %s, error %+v", m.ID, m.Result, m.Error)
	}
}

// closed wants connection/closing with the code and then the end.
func (p *rawPeer) closed(code int) {
	p.t.Helper()
	m := p.hear()
	var why api.Closing
	if m.Method != api.NotifyClosing || json.Unmarshal(m.Params, &why) != nil || why.Code != code || why.Reason == "" {
		p.t.Errorf("heard %s %s, want closing %d with a reason", m.Method, m.Params, code)
	}
	if rest, _ := io.ReadAll(p.in); len(rest) > 0 {
		p.t.Errorf("%q after closing", rest)
	}
}

// typed wants err to be an *api.Error with the code.
func typed(t *testing.T, err error, code api.Code) *api.Error {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v (%s), want %s", err, api.CodeOf(err), code)
	}
	return e
}
