//go:build agents

package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/internal/supervisor"
	protocol "github.com/pintle/pintle/providers/codex"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// The figures that have the bare agent beside ours: the same binary, home, model server and prompt, one after the other
// in each round, so that both have the same machine. None fails for being slow.
//
//	go test -tags agents -run '^$' -bench . ./testscripts/agents

// leastRounds is how many rounds make a median.
const leastRounds = 15

const greeting = "respond with exactly: hello"

// A contest is what is measured in a round. What comes before is not counted.
type contest struct {
	name   string
	before func()
	play   func()
}

// compete reports the medians of all, in milliseconds, and what each takes more than the first.
func compete(b *testing.B, all ...contest) {
	b.Helper()
	took := make([][]time.Duration, len(all))
	for range max(b.N, leastRounds) {
		for i, c := range all {
			if c.before != nil {
				c.before()
			}
			start := time.Now()
			c.play()
			took[i] = append(took[i], time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range all {
		slices.Sort(took[i])
		b.ReportMetric(inMs(median(took[i])), c.name+"-ms")
		if i > 0 {
			b.ReportMetric(inMs(median(took[i])-median(took[0])), c.name+"-more-ms")
		}
		b.Logf("%s: %.1f ms (%.1f to %.1f), %d rounds", c.name, inMs(median(took[i])), inMs(took[i][0]), inMs(took[i][len(took[i])-1]), len(took[i]))
	}
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// must runs a program of the house's, with nothing on its standard input, and wants the greeting's answer.
func (h *house) must(path string, args ...string) {
	h.t.Helper()
	c := exec.Command(path, args...)
	c.Dir, c.Env = h.dir, h.environment()
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "hello") {
		h.t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// bare is Codex's own way to give one prompt.
func (h *house) bare() contest {
	return contest{"bare", nil, func() { h.must(h.binary, "exec", "--skip-git-repo-check", greeting) }}
}

// server is what pintle does, by hand: one prompt to an app-server, from its start to its end.
func (h *house) server(b *testing.B) contest {
	return contest{"server", nil, func() {
		th := h.launch(b).thread("never", "danger-full-access", h.dir)
		th.run(greeting)
		th.close()
	}}
}

// ours is the binary that is measured.
func ours(b *testing.B) string {
	b.Helper()
	path, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkOneShotCold is one prompt, with nothing of pintle's running and no state directory.
func BenchmarkOneShotCold(b *testing.B) {
	h, pintle := newHouse(b, "gpt-5.5"), ours(b)
	forget := func() {
		h.leave()
		if err := os.RemoveAll(h.home); err != nil {
			b.Fatal(err)
		}
	}
	h.must(pintle, "run", "--id", "k", "-a", "codex", greeting) // has Codex's home made
	compete(b, h.bare(), h.server(b), contest{"pintle", forget, func() { h.must(pintle, "run", "--id", "k", "-a", "codex", greeting) }})
}

// BenchmarkOneShotLive is the same with a supervisor that is there.
func BenchmarkOneShotLive(b *testing.B) {
	h, pintle := newHouse(b, "gpt-5.5"), ours(b)
	h.must(pintle, "run", "-a", "codex", greeting)
	compete(b, h.bare(), h.server(b), contest{"pintle", h.settled, func() { h.must(pintle, "run", "-a", "codex", greeting) }})
}

// settled returns once only the supervisor is there.
func (h *house) settled() {
	for len(h.alive()) > 1 {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkWarmTurn is one more turn of a thread that is loaded: of the bare server, at our socket and from the shell.
func BenchmarkWarmTurn(b *testing.B) {
	h, pintle := newHouse(b, "gpt-5.5"), ours(b)
	th := h.launch(b).thread("never", "danger-full-access", h.dir)
	th.run(greeting)
	h.must(pintle, warm("run", "--id", "socket", "-a", "codex")...)
	h.must(pintle, warm("run", "--id", "shell", "-a", "codex")...)
	h.must(pintle, warm("send", "socket", "--id", "model")...)
	c := h.dial("model", protocol.Provider().Environment)
	defer c.Close()
	compete(b,
		contest{"bare", nil, func() { th.run(greeting) }},
		contest{"socket", nil, c.turn},
		contest{"shell", nil, func() { h.must(pintle, warm("send", "shell")...) }})
	if n := len(h.agents()); n != 2 {
		b.Errorf("%d processes of Codex are kept for two sessions", n)
	}
}

// warm is an order whose agent is kept.
func warm(words ...string) []string {
	return append(words, "--warm", "10m", "--approve", "all", greeting)
}

// A speaker gives orders at the socket, on one connection, as a client would that stays.
type speaker struct {
	*rpc.Client
	h     *house
	d     *state.Dir
	model record.Spec
	env   environ.Environment
	n     int
}

// dial connects to the supervisor. Orders are made as that of model was, with what its agent is passed of an environment.
func (h *house) dial(model string, pass []string) *speaker {
	h.t.Helper()
	d, err := state.OpenExisting(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	s := &speaker{h: h, d: d, env: environ.Policy{Pass: pass}.Compose(h.environment())}
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err == nil {
		s.model, err = record.SpecOf(d, session.Folder(session.Local, model))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	conn, err := rpc.Dial(h.t.Context(), rec.Socket)
	if err != nil {
		h.t.Fatal(err)
	}
	s.Client = rpc.NewClient(conn, nil)
	s.call(api.MethodHello, api.Hello{Protocol: api.ProtocolVersion, Client: "bench", Version: rec.Release, GraceMs: new(int64)}, nil)
	return s
}

func (s *speaker) call(method string, params, result any) {
	s.h.t.Helper()
	if err := s.Call(s.h.t.Context(), method, params, result); err != nil {
		s.h.t.Fatalf("%s: %v", method, err)
	}
}

// turn gives an order and waits for its end.
func (s *speaker) turn() {
	s.h.t.Helper()
	s.n++
	order := s.model
	order.ID = fmt.Sprint("turn-", s.n)
	if _, err := record.Claim(s.h.t.Context(), s.d, order, 0, func(*record.Spec) error { return nil }); err != nil {
		s.h.t.Fatal(err)
	}
	s.call(api.MethodCreate, api.Create{ID: order.ID, Environment: s.env.Vars}, nil)
	var e api.Execution
	s.call(api.MethodWait, api.Wait{ID: order.ID}, &e)
	if e.Outcome != string(session.Completed) {
		s.h.t.Fatalf("%+v", e)
	}
}

// BenchmarkSessionTurn is a message to a session that a client holds, at the socket, until the end of its turn.
func BenchmarkSessionTurn(b *testing.B) {
	h := newHouse(b, "gpt-5.5")
	th := h.launch(b).thread("never", "danger-full-access", h.dir)
	th.run(greeting)
	c := h.join("bench")
	id := c.open("all").ID
	c.send(id, greeting, "hello")
	compete(b,
		contest{"bare", nil, func() { th.run(greeting) }},
		contest{"socket", nil, func() { c.wait(c.post(id, greeting, "").Execution) }})
}

// BenchmarkSessionSend is the same until it is answered: Codex has been given it.
func BenchmarkSessionSend(b *testing.B) {
	c := newHouse(b, "gpt-5.5").join("bench")
	id := c.open("all").ID
	last := c.send(id, greeting, "hello").ID
	compete(b, contest{"send", func() { c.wait(last) }, func() { last = c.post(id, greeting, "").Execution }})
}

// BenchmarkSessionMemory is what 20 sessions over the socket take, each with two turns: the proportional set size of the whole
// tree, with a server for each and with one for all.
func BenchmarkSessionMemory(b *testing.B) {
	for name, share := range map[string]bool{"own": false, "shared": true} {
		b.Run(name, func(b *testing.B) {
			h := newHouse(b, "gpt-5.5")
			c := h.join("bench")
			for range 20 {
				o := h.creation("all")
				o.Share = share
				id := call[api.Session](c, api.MethodSessCreate, o).ID
				c.watch(id)
				c.send(id, greeting, "hello")
				c.send(id, "shell: echo made", "made")
			}
			b.ReportMetric(h.megabytes(b), "tree-MB")
			b.ReportMetric(float64(len(h.agents())), "servers")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// agents are the processes of Codex that are kept, or run.
func (h *house) agents() (all []proc.Identity) {
	h.t.Helper()
	d, err := state.OpenExisting(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	runtimes, _ := filepath.Glob(filepath.Join(h.home, "runtimes", "[^.]*"))
	for _, dir := range runtimes {
		if a, err := state.Read[shim.Agent](d, shim.AgentFile(filepath.Base(dir))); err == nil && a.Agent != nil {
			all = append(all, *a.Agent)
		}
	}
	return all
}

// BenchmarkKilledServer is from SIGKILL of the server to the answer of the conversation's next prompt.
func BenchmarkKilledServer(b *testing.B) {
	h, pintle := newHouse(b, "gpt-5.5"), ours(b)
	th := h.launch(b).thread("never", "danger-full-access", h.dir)
	th.run(greeting)
	h.must(pintle, warm("run", "--id", "k", "-a", "codex")...)
	var kept proc.Identity
	compete(b,
		contest{"bare", nil, func() {
			th.kill()
			_ = th.cmd.Wait()
			th = h.launch(b).resume(th.id)
			th.run(greeting)
		}},
		contest{"pintle", func() {
			h.must(pintle, warm("send", "k")...)
			kept = h.agents()[0]
		}, func() {
			err := proc.Signal(kept, syscall.SIGKILL)
			if err == nil {
				err = proc.Await(b.Context(), kept) // what it is given before may have been read: unknown
			}
			if err != nil {
				b.Fatal(err)
			}
			h.must(pintle, warm("send", "k")...)
		}})
}

// BenchmarkSharedServer is what one server takes that has 20 conversations: the proportional set size of its tree.
func BenchmarkSharedServer(b *testing.B) {
	for _, model := range []string{"gpt-5.5", "gpt-6.2-sol"} {
		b.Run(model, func(b *testing.B) {
			l := newLab(b, model)
			a := l.launch(b)
			b.ReportMetric(l.megabytes(b), "alone-MB")
			for range 20 {
				th := a.thread("never", "danger-full-access", l.dir)
				th.run(greeting)
				th.run("shell: echo made")
			}
			b.ReportMetric(l.megabytes(b), "threads-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// megabytes is the proportional set size of all processes in the lab, and of those of pintle's that are there for it.
func (l *lab) megabytes(b *testing.B) float64 {
	b.Helper()
	found, err := proc.WithToken("CODEX_HOME", func(v string) bool { return v == l.home })
	ours, more := proc.WithToken("PINTLE_HOME", func(v string) bool { return filepath.Dir(v) == filepath.Dir(l.home) })
	if err := errors.Join(err, more); err != nil {
		b.Fatal(err)
	}
	all := map[int]bool{}
	for _, p := range append(found, ours...) {
		all[p.PID] = true
	}
	kB := 0
	for pid := range all {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			b.Skip(err)
		}
		_, rest, _ := strings.Cut(string(data), "\nPss:")
		n := 0
		_, _ = fmt.Sscan(rest, &n)
		kB += n
	}
	return float64(kB) / 1024
}
