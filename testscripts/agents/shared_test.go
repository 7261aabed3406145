//go:build agents

package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/shim"
)

// hears waits until a run has an event with those words.
func (h *house) hears(id, words string) {
	h.t.Helper()
	for limit := time.Now().Add(patience); !strings.Contains(h.pintle("", "logs", "--json", id).Out, words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("%s never said %q: %s", id, words, h.pintle("", "logs", id).Out)
		}
	}
}

// runs waits until a command of Codex's runs, or is gone.
func (h *house) runs(seconds string, want int) {
	h.t.Helper()
	for limit := time.Now().Add(patience); h.commands(seconds) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("sleep %s: %d of it run, want %d", seconds, h.commands(seconds), want)
		}
	}
}

// two are two sessions of one server: the turn of a has a command running, that of b is talking.
func (h *house) two(b string) {
	h.t.Helper()
	for _, order := range [][]string{{"a", "sleep 31"}, {"b", b}} {
		if r := h.pintle("", "run", "-d", "--id", order[0], "--share", "--retries", "1", "-a", "codex", "--approve", "all", order[1]); r.Code != 0 {
			h.t.Fatalf("%+v", r)
		}
	}
	h.runs("31", 1)
}

// Two sessions of one app-server: the stop of one ends its turn, its command and its part, and the other goes on; what was
// stopped goes on in the same server when it is asked to.
func TestShare_StopOfOne(t *testing.T) {
	h := newHouse(t, "gpt-5.5")
	h.two("slow: 150 20")
	h.hears("b", "agent_message_chunk")
	if n := len(h.agents()); n != 1 {
		t.Fatalf("%d servers for two sessions", n)
	}
	server := h.agents()[0]
	if r := h.pintle("", "stop", "a"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	h.runs("31", 0)
	if e := h.show("a"); e.Outcome != "cancelled" {
		t.Errorf("a: %+v", e)
	}
	if r := h.pintle("", "send", "--id", "c", "--share", "--approve", "all", "a", "respond with exactly: again"); r.Out != "again\n" {
		t.Errorf("%+v", r)
	}
	if was, is := h.show("a").Conversation, h.show("c").Conversation; was != is {
		t.Errorf("a had conversation %s, c has %s", was, is)
	}
	if r := h.pintle("", "wait", "b"); r.Code != 0 || server.Liveness() == proc.Alive && len(h.agents()) > 1 {
		t.Errorf("%+v", r)
	}
	if out := h.pintle("", "result", "b").Out; !strings.Contains(out, "w150") || strings.Contains(out, "again") {
		t.Errorf("b: %q", out)
	}
	if out := h.pintle("", "logs", "--json", "c").Out; !strings.Contains(out, "runtime_joined") {
		t.Errorf("c: %s", out)
	}
}

// The server is killed: both sessions go on, each in its own conversation, in one server again.
func TestShare_Killed(t *testing.T) {
	h := newHouse(t, "gpt-5.5")
	h.two("sleep 32")
	h.runs("32", 1)
	h.kill(h.agents()[0].PID)
	for _, id := range []string{"a", "b"} {
		if r := h.pintle("", "wait", id); r.Code != 0 {
			t.Errorf("%s: %+v; %+v", id, r, h.show(id).Cause)
		}
		if out := h.pintle("", "logs", "--json", id).Out; !strings.Contains(out, "recovery_scheduled") {
			t.Errorf("%s: %s", id, out)
		}
	}
	h.runs("31", 0)
	h.runs("32", 0)
}

// The supervisor is killed in the middle of both turns: both go on, and nothing is told twice.
func TestShare_SupervisorKilled(t *testing.T) {
	h := newHouse(t, "gpt-5.5")
	h.two("slow: 100 20")
	h.hears("b", "agent_message_chunk")
	for _, p := range h.alive() {
		if len(p.Args) > 1 && p.Args[1] == "supervise" {
			h.kill(p.PID)
		}
	}
	if r := h.pintle("", "wait", "b"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	want := ""
	for n := range 100 {
		want += fmt.Sprintf("w%d ", n+1)
	}
	if out := h.pintle("", "result", "b").Out; strings.TrimSpace(out) != strings.TrimSpace(want) {
		t.Errorf("b: %q", out)
	}
	if r := h.pintle("", "stop", "a"); r.Code != 0 || h.show("a").Outcome != "cancelled" {
		t.Errorf("%+v", r)
	}
}

// sessions are how many are measured.
const sessions = 20

// BenchmarkSharedSessions is what sessions take that share a server, all of them kept: the proportional set size of the
// whole tree, with supervisor and shim. BenchmarkOwnRuntimes is what is ours of those that have a server each.
func BenchmarkSharedSessions(b *testing.B) {
	all, _ := keptSessions(b, "--share")
	b.ReportMetric(all, "tree-MB")
}

// BenchmarkOwnRuntimes is as above.
func BenchmarkOwnRuntimes(b *testing.B) {
	all, ours := keptSessions(b)
	b.ReportMetric(all, "tree-MB")
	b.ReportMetric(ours/sessions, "ours-each-MB")
}

func keptSessions(b *testing.B, flags ...string) (all, own float64) {
	b.Helper()
	h, pintle := newHouse(b, "gpt-5.5"), ours(b)
	for n := range sessions {
		words := append([]string{"run", "--id", fmt.Sprint("k", n), "-a", "codex"}, flags...)
		h.must(pintle, warm(words...)...)
	}
	b.ReportMetric(0, "ns/op")
	for _, p := range h.alive() {
		mb := h.pss(p.PID)
		all += mb
		if len(p.Args) > 1 && (p.Args[1] == "supervise" || p.Args[1] == shim.Verb) {
			own += mb
		}
	}
	b.Logf("%d servers, %.1f MB, of which %.1f MB ours", len(h.agents()), all, own)
	return all, own
}

// pss is the proportional set size of a process.
func (h *house) pss(pid int) float64 {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "smaps_rollup"))
	if err != nil {
		h.t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(data), "\nPss:")
	kB := 0
	_, _ = fmt.Sscan(rest, &kB)
	return float64(kB) / 1024
}
