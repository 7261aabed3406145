package testscripts

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// Creates of one key, pipelined on one connection and sent over several at once: each is answered under its own
// id, no two name different sessions, and there is one launch (X1).
func TestX1_CreatesPipelinedAndOverSeveralConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	socket := s.serving()
	s.orphan("--id", "k", "-a", "command", "--", "sh", "-c", "echo x >> launches.k; until [ -e go ]; do sleep 0.02; done")
	const each, connections = 8, 4
	sessions := make(chan string, each*(1+connections))
	w := dialWire(t, socket)
	w.say(creates("k", each)...)
	var all sync.WaitGroup
	for i := range connections {
		conn := dialWire(t, socket).conn
		all.Go(func() {
			c := rpc.NewClient(conn, nil)
			err := c.Call(t.Context(), api.MethodHello, api.Hello{Protocol: api.ProtocolVersion, Client: fmt.Sprint("caller-", i)}, nil)
			for range each {
				var e api.Execution
				if err == nil {
					err = c.Call(t.Context(), api.MethodCreate, api.Create{ID: "k"}, &e)
				}
				sessions <- e.Session
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	_, answers := w.hear(1 + each)
	for id := 1; id <= each; id++ {
		sessions <- answers[strconv.Itoa(id)].execution(t).Session
	}
	all.Wait()
	close(sessions)
	counts := map[string]int{}
	for id := range sessions {
		counts[id]++
	}
	if len(counts) != 1 || counts[""] > 0 {
		t.Errorf("answers by session: %v, want all of one", counts)
	}
	s.letGo()
	if e := s.full("k"); e.Outcome != "completed" || e.Launches != 1 || e.Verdicts != 1 {
		t.Errorf("ended as %+v", e)
	}
	s.quiet()
}

// creates are a hello and n creates of a key, as lines.
func creates(key string, n int) []string {
	lines := []string{hello()}
	for id := 1; id <= n; id++ {
		lines = append(lines, request(id, api.MethodCreate, key))
	}
	return lines
}

// letGo lets commands end that wait for a file called go.
func (s *stage) letGo() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}
