//go:build agents

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	fold "github.com/pintle/pintle/providers/codex"
)

// A driver has pintle's own fold speak to a real app-server.
type driver struct {
	*appServer
	fold   providers.Agent
	taken  int   // lines that it has heard
	since  int   // those of before the newest turn
	offset int64 // in bytes
	events []providers.Event
}

func (l *lab) drive(t *testing.T) *driver {
	t.Helper()
	f, err := fold.Provider().New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &driver{appServer: l.start(t), fold: f.(providers.Agent)}
}

func (d *driver) puts(frames []providers.Frame) {
	d.t.Helper()
	for _, f := range frames {
		d.put(f.Data)
	}
}

// begin gives an order, and the process's n-th turn its name.
func (d *driver) begin(o providers.Order) {
	d.t.Helper()
	d.since = d.taken
	d.puts(d.fold.Begin(o))
}

// until has the fold hear the server until something is true.
func (d *driver) until(what string, fact func(a providers.About) bool) providers.About {
	d.t.Helper()
	limit := time.After(patience)
	for {
		if a := d.fold.About(); fact(a) {
			return a
		}
		line, changed := d.line()
		if line == nil {
			select {
			case <-changed:
			case <-d.ended:
				d.fail(what, fmt.Errorf("the app-server has ended; %+v", d.fold.About()))
			case <-limit:
				d.fail(what, fmt.Errorf("%+v", d.fold.About()))
			}
			continue
		}
		events, frames := d.fold.Receive(providers.Chunk{Stream: providers.Stdout, Offset: d.offset, Data: line})
		d.taken, d.offset = d.taken+1, d.offset+int64(len(line))
		d.events = append(d.events, events...)
		d.puts(frames)
	}
}

// line is the next one that the fold has not heard, or nil.
func (d *driver) line() ([]byte, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken == len(d.lines) {
		return nil, d.changed
	}
	return d.lines[d.taken], d.changed
}

// hears has the fold hear what comes until a line since the newest turn was begun has all the words in it.
func (d *driver) hears(words ...string) {
	d.t.Helper()
	heard := d.since
	d.until(fmt.Sprint(words), func(providers.About) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for ; heard < d.taken; heard++ {
			if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(d.lines[heard], []byte(w)) }) {
				return true
			}
		}
		return false
	})
}

func (d *driver) end() providers.About {
	d.t.Helper()
	return d.until("the turn's end", func(a providers.About) bool { return a.End != nil })
}

// run has an order carried out, and wants its turn to end so.
func (d *driver) run(o providers.Order, outcome session.Outcome, code string) providers.About {
	d.t.Helper()
	d.begin(o)
	a := d.end()
	if a.End.Outcome != outcome || a.End.Code != code {
		d.t.Fatalf("%q ended as %+v", o.Prompt, a.End)
	}
	return a
}

func (d *driver) asked() providers.Permission {
	d.t.Helper()
	return d.until("a permission", func(a providers.About) bool { return len(a.Pending) > 0 }).Pending[0]
}

// count is how many events there are of a type, with a text in them.
func (d *driver) count(kind, text string) (n int) {
	for _, e := range d.events {
		if e.Type == kind && strings.Contains(string(e.Data), text) {
			n++
		}
	}
	return n
}

func (l *lab) order(n int, prompt string) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", n), Prompt: prompt, Cwd: l.dir, Approve: "all"}
}

func TestFold_SecondTurn(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	first := d.run(l.order(1, "shell: echo made"), session.Completed, "")
	second := d.run(l.order(2, "respond with exactly: two"), session.Completed, "")
	if first.Message == second.Message || first.Usage.InputTokens != 200 || second.Usage.InputTokens != 100 {
		t.Errorf("%+v, %+v", first, second)
	}
	if first.Conversation != second.Conversation || second.Open != 0 || second.Prompt != "t2.begin.0" {
		t.Errorf("%+v", second)
	}
	l.record(t, "turns", d.appServer)
}

// A conversation that is opened without a prompt stands, is kept only once it has had a turn, and gets that in the same process.
func TestR1_FoldOpensWithoutAPrompt(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	opening := l.order(1, "")
	opening.Open = true
	d := l.drive(t)
	lost := d.run(opening, session.Completed, "")
	if lost.Conversation == "" || lost.Confirmed || len(l.model.Requests()) != 0 {
		t.Errorf("%+v", lost)
	}
	d.kill()

	d = l.drive(t)
	opening.Conversation = lost.Conversation
	fresh := d.run(opening, session.Completed, "")
	if d.count("conversation_replaced", lost.Conversation) != 1 || fresh.Conversation == lost.Conversation {
		t.Errorf("%+v, %+v", fresh, d.events)
	}
	d.run(l.order(2, "respond with exactly: one"), session.Completed, "")
	l.record(t, "opened", d.appServer)
	d.close()

	d = l.drive(t)
	opening.Conversation = fresh.Conversation
	if again := d.run(opening, session.Completed, ""); again.Conversation != fresh.Conversation || again.Confirmed {
		t.Errorf("%+v", again)
	}
}

// What an interrupted turn began ends in the middle of the next one.
func TestFold_TurnAfterAnInterrupt(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	d.begin(l.order(1, "sleep 23"))
	d.until("the command runs", func(a providers.About) bool { return a.Open == 1 })
	d.puts(d.fold.Interrupt())
	d.end()
	d.begin(l.order(2, "slow: 5 100"))
	a := d.end()
	if a.End.Outcome != session.Completed || a.Open != 0 || d.count("tool_call_update", `"failed"`) != 1 {
		t.Errorf("%+v, %+v", a, a.End)
	}
	l.record(t, "turn_after_interrupt", d.appServer)
}

// A command that goes on in the background is open until its own end, in whichever turn that comes.
func TestFold_CommandOutlastsItsTurn(t *testing.T) {
	l := newLab(t, "gpt-6.2-sol")
	d := l.drive(t)
	const command = "until test -e go; do sleep 0.05; done; echo late"
	first := l.order(1, "custom: exec\nawait tools.exec_command({cmd: '"+command+"', yield_time_ms: 250}); text('begun')")
	if a := d.run(first, session.Completed, ""); a.Open != 1 {
		t.Errorf("%+v", a)
	}
	if a := d.run(l.order(2, "respond with exactly: two"), session.Completed, ""); a.Open != 1 {
		t.Errorf("%+v", a)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.until("the command's end", func(a providers.About) bool { return a.Open == 0 })
	if n := d.count("tool_call_update", `"output":"late\n"`); n != 1 {
		t.Errorf("%d updates", n)
	}
	l.record(t, "command_outlasts_turn", d.appServer)
}

// configure adds to codex's configuration; of what it was until then nothing is kept.
func (l *lab) configure(t *testing.T, more string) {
	t.Helper()
	path := filepath.Join(l.home, "config.toml")
	if l.config == nil {
		var err error
		if l.config, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(l.config), "[analytics]", more+"\n[analytics]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mcp is an MCP server for the configuration, and the file that has a line for each time that it was started.
func (l *lab) mcp(t *testing.T) (configuration, starts string) {
	t.Helper()
	path := filepath.Join(l.home, "mcp")
	if err := os.WriteFile(path, []byte(mcpServer), 0o700); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[mcp_servers.probe]\ncommand = %q", path), path + ".starts"
}

const mcpServer = `#!/bin/sh
echo x >> "$0.starts"
while read -r line; do
	id=${line#*'"id":'}
	id=${id%%[,\}]*}
	case $line in
	*'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"probe","version":"1"}}' ;;
	*'"tools/list"'*) r='{"tools":[{"name":"write","description":"writes","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":false,"destructiveHint":true}}]}' ;;
	*'"tools/call"'*) r='{"content":[{"type":"text","text":"written"}]}' ;;
	*) continue ;;
	esac
	echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$r"'}'
done
`

// lines is how many lines a file has; none if it is not there.
func lines(path string) int {
	data, _ := os.ReadFile(path)
	return bytes.Count(data, []byte("\n"))
}

// Whatever the run before was allowed: one that goes on by the agent's own configuration has that, and to find it out
// leaves nothing.
func TestCase28_FoldOwnPolicyAfterEverythingWasAllowed(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	mcp, starts := l.mcp(t)
	l.configure(t, mcp)
	d := l.drive(t)
	first := d.run(l.order(1, "shell: echo x > first"), session.Completed, "")
	d.kill()
	before, begun := l.settings(t), lines(starts)

	d = l.drive(t)
	o := l.order(2, "shell: sleep 0.5; echo x > second")
	o.Approve, o.Conversation = "", first.Conversation
	second := d.run(o, session.Completed, "")
	if _, err := os.Stat(filepath.Join(l.dir, "second")); err == nil {
		t.Error("the sandbox let it write")
	}
	if second.Conversation != first.Conversation || second.Usage.InputTokens != 200 {
		t.Errorf("%+v after %+v", second, first)
	}
	l.record(t, "resumed_own_policy", d.appServer)
	d.close()

	if after := l.settings(t); after != before {
		t.Errorf("the configuration was changed:\n%s", after)
	}
	if n := lines(starts) - begun; n != 1 {
		t.Errorf("the MCP server was started %d times", n)
	}
	rollouts, err := filepath.Glob(filepath.Join(l.home, "sessions/*/*/*/*.jsonl"))
	if err != nil || len(rollouts) != 1 {
		t.Errorf("%q, %v", rollouts, err)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(l.launch(t).call("thread/list", object{}), &list); err != nil || len(list.Data) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Codex would trust a repository in which it was told to write, and later runs that nobody allowed anything could write
// there. It is not told so that it notes that, whether the conversation is new, goes on, or goes on in another process.
func TestCase28_FoldLeavesNoTrust(t *testing.T) {
	for _, approve := range []string{"none", "reads", "edits", "all"} {
		t.Run(approve, func(t *testing.T) {
			l := newLab(t, "gpt-5.5")
			if out, err := exec.Command("git", "init", "-q", l.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := l.settings(t)
			order := func(n int, conversation string) providers.Order {
				o := l.order(n, "respond with exactly: done")
				o.Approve, o.Conversation = approve, conversation
				return o
			}
			d := l.drive(t)
			first := d.run(order(1, ""), session.Completed, "")
			d.run(order(2, ""), session.Completed, "")
			d.close()
			l.drive(t).run(order(3, first.Conversation), session.Completed, "")
			if after := l.settings(t); after != before {
				t.Errorf("the configuration was changed:\n%s", after)
			}
			own := l.order(4, "shell: sleep 0.5; echo x > written")
			own.Approve = ""
			l.drive(t).run(own, session.Completed, "")
			if _, err := os.Stat(filepath.Join(l.dir, "written")); err == nil {
				t.Error("a run by the agent's own configuration could write")
			}
		})
	}
}

// In a directory that was given by way of a symbolic link the agent works in what that leads to.
func TestFold_DirectoryByALink(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	real := l.dir
	l.dir = filepath.Join(filepath.Dir(real), "link")
	if err := os.Symlink(real, l.dir); err != nil {
		t.Fatal(err)
	}
	d := l.drive(t)
	o := l.order(1, "patch: p1.txt")
	o.Approve = "edits"
	d.run(o, session.Completed, "")
	if _, err := os.Stat(filepath.Join(real, "p1.txt")); err != nil || d.count("tool_call", `"title":"change p1.txt"`) != 1 {
		t.Errorf("%v, %+v", err, d.events)
	}
}

func (l *lab) settings(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(l.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Nor do directories carry over in which an earlier run could write.
func TestCase28_FoldRootsOfBefore(t *testing.T) {
	for _, approve := range []string{"", "edits"} {
		t.Run("approve "+approve, func(t *testing.T) {
			l := newLab(t, "gpt-5.5")
			other := filepath.Join(filepath.Dir(l.dir), "other")
			if err := os.Mkdir(other, 0o700); err != nil {
				t.Fatal(err)
			}
			const mode = `sandbox_mode = "workspace-write"` + "\n"
			l.configure(t, mode+fmt.Sprintf("[sandbox_workspace_write]\nwritable_roots = [%q]", other))
			write := func(name string) providers.Order {
				o := l.order(1, "shell: sleep 0.5; echo x > "+filepath.Join(other, name))
				o.Approve = approve
				return o
			}
			d := l.drive(t)
			first := d.run(write("first"), session.Completed, "")
			d.close()
			if _, err := os.Stat(filepath.Join(other, "first")); err != nil {
				t.Error(err)
			}
			l.configure(t, mode)
			o := write("second")
			o.Conversation = first.Conversation
			l.drive(t).run(o, session.Completed, "")
			if _, err := os.Stat(filepath.Join(other, "second")); err == nil {
				t.Error("the directory of before was written to")
			}
		})
	}
}

func TestFold_ConversationThatCannotGoOn(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	id := d.run(l.order(1, "respond with exactly: one"), session.Completed, "").Conversation
	on := l.order(2, "respond with exactly: two")
	on.Conversation = id

	other := l.drive(t)
	other.run(on, session.Failed, "busy")
	l.record(t, "busy", other.appServer)
	d.close()

	a := l.launch(t)
	a.call("thread/archive", object{"threadId": id})
	a.close()
	archived := l.drive(t)
	if end := archived.run(on, session.Failed, "config").End; !strings.Contains(end.Message, "codex unarchive "+id) {
		t.Errorf("%+v", end)
	}
	l.record(t, "archived", archived.appServer)

	on.Conversation = "01234567-89ab-7cde-8f01-23456789abcd"
	lost := l.drive(t)
	a2 := lost.run(on, session.Completed, "")
	if lost.count("conversation_replaced", on.Conversation) != 1 || a2.Conversation == on.Conversation || a2.Conversation == "" {
		t.Errorf("%+v, %+v", a2, lost.events)
	}
	l.record(t, "replaced", lost.appServer)
}

func TestFold_PermissionsAreAnswered(t *testing.T) {
	const feature = "request_permissions_tool = true\ndefault_mode_request_user_input = true\n"
	for _, test := range []struct {
		golden, model, approve, prompt, title, allowed, denied string
	}{
		{"asked_command", "gpt-5.5", "none", "shell: echo made", "to run /bin/bash -lc 'echo made'", `made`, "rejected by user"},
		{"asked_change", "gpt-5.5", "none", "patch: p1.txt", "to change p1.txt", "Success", "rejected by user"},
		{
			"asked_permissions", "gpt-5.5", "edits", `tool: request_permissions {"reason":"why","permissions":{"file_system":{"write":["/var/tmp/x"]}}}`,
			"for more permissions: write /var/tmp/x", `"write"`, `"file_system":null`,
		},
		{
			"asked_mcp", "gpt-6.2-sol", "edits", "custom: exec\ntext(JSON.stringify(await tools.mcp__probe__write({})))",
			"to call write of the MCP server probe", "written", "user rejected MCP tool call",
		},
	} {
		for _, decision := range []providers.Decision{providers.Allow, providers.Deny, providers.Fail} {
			t.Run(test.golden+" "+string(decision), func(t *testing.T) {
				l := newLab(t, test.model)
				mcp, _ := l.mcp(t)
				l.configure(t, mcp)
				l.enable(t, feature)
				d := l.drive(t)
				o := l.order(1, test.prompt)
				o.Approve = test.approve
				d.begin(o)
				p := d.asked()
				if p.Title != test.title {
					t.Errorf("%+v", p)
				}
				d.puts(d.fold.Answer(p.ID, decision))
				end := d.end().End
				asked := l.asked(test.prompt)
				told := asked[len(asked)-1].Output
				switch want := map[providers.Decision]string{providers.Allow: test.allowed, providers.Deny: test.denied}[decision]; {
				case decision == providers.Fail && end.Outcome != session.Denied:
					t.Errorf("%+v", end)
				case decision != providers.Fail && (end.Outcome != session.Completed || !strings.Contains(told, want)):
					t.Errorf("%+v, the model was told %s", end, told)
				}
				if n := d.count("permission_resolved", ""); n != 0 {
					t.Errorf("%d lapsed", n)
				}
				l.record(t, test.golden+"_"+string(decision), d.appServer)
			})
		}
	}
}

// With --approve it is us whom the agent asks, whomever its own configuration has answer.
func TestFold_NobodyElseAnswers(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	l.configure(t, `approvals_reviewer = "auto_review"`)
	d := l.drive(t)
	o := l.order(1, "shell: echo made")
	o.Approve = "none"
	d.begin(o)
	d.puts(d.fold.Answer(d.asked().ID, providers.Allow))
	if end := d.end().End; end.Outcome != session.Completed {
		t.Errorf("%+v", end)
	}
}

// enable turns features on.
func (l *lab) enable(t *testing.T, features string) {
	t.Helper()
	path := filepath.Join(l.home, "config.toml")
	if err := os.WriteFile(path, []byte(strings.Replace(l.settings(t), "[features]\n", "[features]\n"+features, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFold_QuestionsAreRefused(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	l.enable(t, "default_mode_request_user_input = true\n")
	d := l.drive(t)
	const question = `{"questions":[{"id":"q","header":"H","question":"which?","options":[{"label":"a","description":"d"},{"label":"b","description":"e"}]}]}`
	d.run(l.order(1, "tool: request_user_input "+question), session.Completed, "")
	if n := d.count("agent_notice", "a question: which?"); n != 1 {
		t.Errorf("%d notices", n)
	}
	l.record(t, "asked_question", d.appServer)
}

func TestFold_PermissionLapses(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	o := l.order(1, "shell: echo made")
	o.Approve = "none"
	d.begin(o)
	p := d.asked()
	d.puts(d.fold.Interrupt())
	if a := d.end(); a.End.Outcome != session.Cancelled || len(a.Pending) != 0 || a.Open != 0 {
		t.Errorf("%+v, %+v", a, a.End)
	}
	d.hears("serverRequest/resolved")
	if n := d.count("permission_resolved", p.ID); n != 1 {
		t.Errorf("it lapsed %d times", n)
	}
	l.record(t, "lapsed", d.appServer)
}

// What an agent has started says nothing in its name, costs what it costs, and ends with it.
func TestFold_StartedAgents(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	spawn := func(n int, message, more string) providers.Order {
		return l.order(n, fmt.Sprintf(`tool: multi_agent_v1/spawn_agent {"message":%q,"agent_type":"default"}%s`, message, more))
	}
	first := d.run(spawn(1, "respond with exactly: inner", ""), session.Completed, "")
	if d.count("agent_message_chunk", "inner") != 0 || first.Message == "" {
		t.Errorf("%+v", first)
	}
	d.hears("turn/completed", `"text":"inner"`)

	d.begin(spawn(2, "sleep 24", " ##hang"))
	d.hears("item/started", "commandExecution", "sleep 24")
	d.puts(d.fold.Interrupt())
	d.end()
	a := d.until("nothing runs", func(a providers.About) bool { return a.Open == 0 })
	if a.Usage.InputTokens < 200 {
		t.Errorf("%+v", a)
	}
	l.wait(t, func(_ []fakemodel.Request, answering int) bool { return answering == 0 })
	for limit := time.Now().Add(patience); l.commands("24") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("its command goes on")
		}
	}
	l.record(t, "started_agents", d.appServer)
}

// commands are the living ones of this lab's with a word on their command line.
func (l *lab) commands(word string) (n int) {
	found, _ := proc.WithToken("CODEX_HOME", func(v string) bool { return v == l.home })
	for _, p := range found {
		if len(p.Args) == 2 && filepath.Base(p.Args[0]) == "sleep" && p.Args[1] == word {
			n++
		}
	}
	return n
}
