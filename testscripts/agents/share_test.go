//go:build agents

package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	fold "github.com/pintle/pintle/providers/codex"
)

// join is another session's fold, which speaks to the same app-server. Each hears all that comes from then on.
func (l *lab) join(t *testing.T, d *driver) *driver {
	t.Helper()
	f, err := fold.Provider().New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &driver{appServer: d.appServer, fold: f.(providers.Agent), taken: d.taken, since: d.taken, offset: d.offset}
}

// first is the order of a session that others may join, and joining of one that does.
func (l *lab) first(n int, prompt string) providers.Order {
	o := l.order(n, prompt)
	o.Shared = true
	return o
}

func (l *lab) joining(n int, prompt string) providers.Order {
	o := l.first(n, prompt)
	o.Joins = true
	return o
}

func (d *driver) ready() providers.About {
	d.t.Helper()
	return d.until("the conversation", func(a providers.About) bool { return a.Ready })
}

// leaves has a session leave, and wants its conversation to be free.
func (l *lab) leaves(t *testing.T, d *driver) {
	t.Helper()
	d.puts(d.fold.Leave())
	a := d.until("it has left", func(a providers.About) bool { return a.Left })
	if a.End == nil {
		t.Errorf("%+v", a)
	}
	path := fold.Provider().Writer(map[string]string{"CODEX_HOME": l.home}, a.Conversation)
	if held, err := proc.LockHolders(path); err != nil || len(held) > 0 {
		t.Errorf("held by %+v, %v", held, err)
	}
}

// Two sessions in one server: each works in its own directory, hears its own turns and agents, and one leaves without the
// other one noticing. What one has left another process can have.
func TestShare_FoldsOfOneServer(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	other := filepath.Join(l.dir, "other")
	for _, dir := range []string{l.dir, other} {
		if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	before := l.settings(t)
	one := l.drive(t)
	one.begin(l.first(1, `tool: multi_agent_v1/spawn_agent {"message":"respond with exactly: inner","agent_type":"default"}`))
	one.ready()
	two := l.join(t, one)
	o := l.joining(11, "shell: touch made")
	o.Cwd = other
	two.begin(o)
	a, b := one.end(), two.end()
	for _, a := range []providers.About{a, b} {
		if a.End.Outcome != session.Completed || a.Usage.InputTokens < 200 || a.Version != fold.Tested {
			t.Errorf("%+v, %+v", a, a.End)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "made")); err != nil || l.settings(t) != before {
		t.Errorf("%v; the configuration:\n%s", err, l.settings(t))
	}
	one.hears("turn/completed", `"text":"inner"`)
	two.run(l.joining(12, "respond with exactly: two"), session.Completed, "")
	if n := two.count("agent_message_chunk", "inner") + two.count("tool_call", "spawn"); n != 0 {
		t.Errorf("%+v", two.events)
	}
	l.leaves(t, one)
	two.run(l.joining(13, "respond with exactly: three"), session.Completed, "")
	on := l.order(2, "respond with exactly: elsewhere")
	on.Conversation = a.Conversation
	l.drive(t).run(on, session.Completed, "")
	l.record(t, "shared", two.appServer)
}

// An interrupt, and going out in the middle of a turn, end what is one's own and nothing else.
func TestShare_FoldLeavesInItsTurn(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	one := l.drive(t)
	one.begin(l.first(1, "sleep 26"))
	one.ready()
	two := l.join(t, one)
	two.begin(l.joining(11, "slow: 200 20"))
	two.hears("item/agentMessage/delta")
	one.until("the command runs", func(a providers.About) bool { return a.Open == 1 })
	one.puts(one.fold.Interrupt())
	if a := one.end(); a.End.Outcome != session.Cancelled {
		t.Errorf("%+v", a.End)
	}
	one.begin(l.first(2, "sleep 27"))
	one.until("the command runs", func(a providers.About) bool { return a.Open > 0 && a.Begun })
	l.leaves(t, one)
	for limit := time.Now().Add(patience); l.commands("26")+l.commands("27") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("its command goes on")
		}
	}
	if a := two.end(); a.End.Outcome != session.Completed || two.count("agent_message_chunk", "w200 ") != 1 {
		t.Errorf("%+v, %+v", a, a.End)
	}
}

// An agent that was started is left with its session.
func TestShare_FoldLeavesItsAgents(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	one := l.drive(t)
	one.begin(l.first(1, `tool: multi_agent_v1/spawn_agent {"message":"sleep 28","agent_type":"default"}`))
	one.end()
	one.hears("item/started", "commandExecution", "sleep 28")
	l.leaves(t, one)
	l.wait(t, func(_ []fakemodel.Request, answering int) bool { return answering == 0 })
	for limit := time.Now().Add(patience); l.commands("28") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("its command goes on")
		}
	}
	locks, err := filepath.Glob(filepath.Join(l.home, "thread-writer-locks", "*.lock"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range locks {
		if held, err := proc.LockHolders(path); err != nil || len(held) > 0 {
			t.Errorf("%s is held by %+v, %v", path, held, err)
		}
	}
}

// What is left can come back, with another policy, into the same server.
func TestShare_FoldComesBack(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	one := l.drive(t)
	a := one.run(l.first(1, "respond with exactly: one"), session.Completed, "")
	l.leaves(t, one)
	again := l.join(t, one)
	o := l.joining(2, "shell: echo made")
	o.Approve, o.Conversation = "none", a.Conversation
	again.begin(o)
	if p := again.asked(); p.Title == "" || again.fold.About().Conversation != a.Conversation {
		t.Errorf("%+v", again.fold.About())
	}
	l.leaves(t, again)
}

// Whose each line is can be told, and by that no session misses one that is its own.
func TestShare_LinesHaveOwners(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	one := l.drive(t)
	a := one.run(l.first(1, "shell: echo made"), session.Completed, "")
	two := l.join(t, one)
	two.run(l.joining(11, "respond with exactly: two"), session.Completed, "")
	owners := map[string]int{}
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, line := range one.lines {
		key := fold.Provider().Owner(line)
		if one.fold.Owns(key) && two.fold.Owns(key) {
			t.Errorf("two own %s", key)
		}
		owners[key]++
		if strings.Contains(string(line), a.Conversation) && !one.fold.Owns(key) && !strings.HasSuffix(key, "/t1") {
			t.Errorf("%s is nobody's", line)
		}
	}
	t.Log(owners)
}
