package testscripts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// wire is a connection to a supervisor's socket, spoken by hand: only so can requests be pipelined.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// answer is one message from the supervisor.
type answer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct{ Data struct{ Code api.Code } }
}

// serving starts a supervisor and returns its socket.
func (s *stage) serving() string {
	s.t.Helper()
	s.verb("supervise", "restart")
	return s.socket()
}

// socket is that of the supervisor that is there.
func (s *stage) socket() string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.home, supervisor.File))
	var rec supervisor.Record
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return rec.Socket
}

// dialWire connects and says nothing.
func dialWire(t *testing.T, socket string) *wire {
	t.Helper()
	conn, err := rpc.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

// hello is what comes first on a connection, under the id 0, of a client that no other connection is of.
func hello() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"client":"test-%d","version":"0","graceMs":0}}`, hellos.Add(1))
}

var hellos atomic.Int64

// request is one line of the wire about the run called key.
func request(id int, method, key string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"id":%q}}`, id, method, key)
}

// say writes lines in one write.
func (w *wire) say(lines ...string) {
	w.t.Helper()
	if _, err := fmt.Fprintln(w.conn, strings.Join(lines, "\n")); err != nil {
		w.t.Fatal(err)
	}
}

// hear reads n answers, in their order; no two may bear one id.
func (w *wire) hear(n int) (ids []string, answers map[string]answer) {
	w.t.Helper()
	answers = map[string]answer{}
	for len(ids) < n {
		line, err := w.in.ReadBytes('\n')
		var a answer
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err == nil && a.ID == nil {
			continue // a notification
		}
		id := string(a.ID)
		if _, twice := answers[id]; err != nil || twice {
			w.t.Fatalf("hear: %v: %s behind %v", err, line, ids)
		}
		ids, answers[id] = append(ids, id), a
	}
	return ids, answers
}

// execution is the run that an answer tells of.
func (a answer) execution(t *testing.T) (e api.Execution) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("request %s: %s", a.ID, a.Error.Data.Code)
	}
	if err := json.Unmarshal(a.Result, &e); err != nil {
		t.Fatalf("request %s: %v: %s", a.ID, err, a.Result)
	}
	return e
}

// orphan records an order and kills its verb before it tells anybody: the supervisor has not heard of it.
func (s *stage) orphan(args ...string) {
	s.t.Helper()
	c := s.command(append([]string{"run"}, args...)...)
	c.Env = append(c.Env, "PINTLE_CRASH=kill:state.synced@"+filepath.Join(s.dir, "orphan"))
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != -1 {
		s.t.Fatalf("the verb was not killed: %v\n%s", err, out)
	}
}
