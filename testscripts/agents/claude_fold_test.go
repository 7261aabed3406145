//go:build agents

package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestClaude_SecondTurn(t *testing.T) {
	d := newDen(t)
	r := d.run(t, d.order(1, "shell: echo made"), session.Completed, "")
	first := r.fold.About()
	second := r.run(d.order(2, "respond with exactly: two"), session.Completed, "")
	if first.Message == second.Message || first.Usage.InputTokens != 200 || second.Usage.InputTokens != 100 || second.Usage.OutputTokens != 10 {
		t.Errorf("%+v, %+v", first, second)
	}
	if first.Conversation != second.Conversation || second.Open != 0 || second.Prompt == "" || second.Usage.USD == nil {
		t.Errorf("%+v", second)
	}
	if n := r.count("tool_call_update", `"stdout":"made"`); n != 1 {
		t.Errorf("%d updates", n)
	}
	d.record(t, "turns", r)
}

// A conversation that is opened without a prompt stands and is kept nowhere: it is begun again under its id.
func TestClaude_OpensWithoutAPrompt(t *testing.T) {
	d := newDen(t)
	opening := d.order(1, "")
	opening.Open = true
	r := d.run(t, opening, session.Completed, "")
	lost := r.fold.About()
	if lost.Conversation == "" || lost.Confirmed || len(d.model.Requests()) != 0 || len(d.kept(t, lost.Conversation)) > 0 {
		t.Errorf("%+v", lost)
	}
	r.kill()

	opening.Conversation, opening.Lost = lost.Conversation, true
	r = d.run(t, opening, session.Completed, "")
	a := r.run(d.order(2, "respond with exactly: one"), session.Completed, "")
	if a.Conversation != lost.Conversation || r.count("conversation_replaced", "") != 0 || len(d.kept(t, a.Conversation)) != 1 {
		t.Errorf("%+v, %s", a, r.story())
	}
	d.record(t, "opened", r)
}

// kept are the files that the driver knows a conversation by.
func (d *den) kept(t *testing.T, conversation string) []string {
	t.Helper()
	var all []string
	for _, pattern := range d.places(conversation) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// After a kill the conversation goes on, with what the model knows of it; each turn costs what it costs.
func TestClaude_GoesOnAfterAKill(t *testing.T) {
	d := newDen(t)
	r := d.run(t, d.order(1, "respond with exactly: one"), session.Completed, "")
	id := r.fold.About().Conversation
	o := d.order(2, "shell: exec sleep 23")
	r.begin(o)
	r.until("the command runs", func(providers.About) bool { return d.commands("sleep", "23") > 0 })
	r.kill()
	d.sweep(t, "sleep", "23")

	o = d.order(3, "respond with exactly: three")
	o.Conversation = id
	r = d.run(t, o, session.Completed, "")
	a := r.fold.About()
	if a.Conversation != id || a.Usage.InputTokens != 100 || *a.Usage.USD > 0.001 {
		t.Errorf("%+v", a)
	}
	if earlier := strings.Join(d.asked("respond with exactly: three")[0].Earlier, "\n"); !strings.Contains(earlier, "exec sleep 23") {
		t.Errorf("the model knows of %s", earlier)
	}
	d.record(t, "resumed", r)
}

// One that is not there is not replaced in silence.
func TestClaude_ConversationIsGone(t *testing.T) {
	d := newDen(t)
	o := d.order(1, "respond with exactly: one")
	o.Conversation = "01234567-89ab-4cde-8f01-23456789abcd"
	r := d.run(t, o, session.Failed, "session_lost")
	if a := r.fold.About(); a.Ready || a.Prompt != "" || len(d.model.Requests()) > 0 {
		t.Errorf("%+v", a)
	}
	d.record(t, "gone", r)
}

// asking has Claude Code ask for everything, whatever its settings allow.
func (d *den) asking(t *testing.T, n int, prompt string) providers.Order {
	t.Helper()
	d.settings(t, `{"permissions":{"defaultMode":"acceptEdits","allow":["Bash","Read","Write","Edit","WebFetch"]},
		"hooks":{"PreToolUse":[{"matcher":"","hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}`)
	o := d.order(n, prompt)
	o.Approve = "none"
	return o
}

func TestClaude_PermissionsAreAnswered(t *testing.T) {
	for _, test := range []struct {
		golden, prompt string
		want           providers.Permission
		allowed        string
	}{
		{"asked_command", "shell: ls", providers.Permission{Title: "to run ls", Kind: "execute", Tool: "Bash", Command: "ls"}, "a.txt"},
		{"asked_read", "read: DIR/a.txt", providers.Permission{Title: "to read a.txt", Kind: "read", Tool: "Read", Paths: []string{"DIR/a.txt"}}, "content"},
		{"asked_write", "write: DIR/b.txt", providers.Permission{Title: "to write b.txt", Kind: "edit", Tool: "Write", Paths: []string{"DIR/b.txt"}}, "created"},
	} {
		for _, decision := range []providers.Decision{providers.Allow, providers.Deny, providers.Fail} {
			t.Run(test.golden+" "+string(decision), func(t *testing.T) {
				d := newDen(t)
				d.file(t, "a.txt", "content\n")
				in := func(s string) string { return strings.ReplaceAll(s, "DIR", d.dir) }
				o := d.asking(t, 1, in(test.prompt))
				r := d.begin(t, o)
				p := r.asked()
				if p.Title != test.want.Title || p.Kind != test.want.Kind || p.Tool != test.want.Tool || p.Command != test.want.Command ||
					strings.Join(p.Paths, " ") != in(strings.Join(test.want.Paths, " ")) || p.ToolCall == "" {
					t.Errorf("%+v", p)
				}
				r.puts(r.fold.Answer(p.ID, decision))
				if decision == providers.Fail {
					r.ends(session.Denied, "")
				} else {
					r.ends(session.Completed, "")
				}
				told := ""
				for _, q := range d.model.Requests() {
					told += q.Output
				}
				if strings.Contains(told, test.allowed) != (decision == providers.Allow) || strings.Contains(told, "not allowed") != (decision == providers.Deny) {
					t.Errorf("the model was told %s", told)
				}
				if n := r.count("permission_resolved", ""); n != 0 {
					t.Errorf("%d lapsed", n)
				}
				d.record(t, test.golden+"_"+string(decision), r)
			})
		}
	}
}

func (d *den) file(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// One whose hooks are off does not use a tool unasked, and is not driven.
func TestClaude_HooksAreOff(t *testing.T) {
	for name, off := range map[string]func(*den){
		"by an argument": func(d *den) { d.more = []string{"--bare"} },
		"by a variable":  func(d *den) { d.env = append(d.env, "CLAUDE_CODE_SIMPLE=1") },
		"by a setting":   func(d *den) { d.settings(t, `{"env":{"CLAUDE_CODE_SIMPLE":"1"},"permissions":{"allow":["Bash"]}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDen(t)
			d.settings(t, `{"permissions":{"allow":["Bash"]}}`)
			off(d)
			o := d.order(1, "shell: touch made")
			o.Approve = "reads"
			r := d.run(t, o, session.Failed, "config")
			if _, err := os.Stat(filepath.Join(d.dir, "made")); err == nil {
				t.Error("it used a tool")
			}
			r.close()
		})
	}
}

// What is asked is not asked any more once the turn is interrupted.
func TestClaude_PermissionLapses(t *testing.T) {
	d := newDen(t)
	r := d.begin(t, d.asking(t, 1, "shell: ls"))
	p := r.asked()
	r.puts(r.fold.Interrupt())
	if a := r.ends(session.Cancelled, "cancelled"); len(a.Pending) != 0 || a.Open != 0 || r.count("permission_resolved", p.ID) != 1 {
		t.Errorf("%+v, %s", a, r.story())
	}
	d.record(t, "lapsed", r)
}

// Told nothing, it does what its own configuration allows, and asks for the rest.
func TestClaude_OwnConfiguration(t *testing.T) {
	d := newDen(t)
	d.settings(t, `{"permissions":{"allow":["Bash(echo *)"]}}`)
	o := d.order(1, "shell: echo made")
	o.Approve = ""
	r := d.run(t, o, session.Completed, "")
	o = d.order(2, "shell: touch made")
	o.Approve = ""
	r.begin(o)
	r.puts(r.fold.Answer(r.asked().ID, providers.Deny))
	r.ends(session.Completed, "")
	d.record(t, "own_configuration", r)
}

// A question to a person is refused, and the turn goes on.
func TestClaude_QuestionsAreRefused(t *testing.T) {
	d := newDen(t)
	const question = `{"questions":[{"question":"which?","header":"H","multiSelect":false,"options":[{"label":"a","description":"d"},{"label":"b","description":"e"}]}]}`
	o := d.asking(t, 1, "tool: AskUserQuestion "+question)
	r := d.run(t, o, session.Completed, "")
	o.Turn, o.Prompt = "t2", "tool: EnterPlanMode {}"
	r.run(o, session.Completed, "")
	if r.count("agent_notice", "a question: which?") != 1 || r.count("agent_notice", "to have a plan approved") != 1 {
		t.Error(r.story())
	}
	d.record(t, "asked_question", r)
}

// A message that is put into a turn is taken in between two requests to the model, or answered right behind: either way it
// is a part of the turn.
func TestClaude_Steer(t *testing.T) {
	d := newDen(t)
	r := d.begin(t, d.order(1, "shell: until test -e go; do sleep 0.05; done; echo over"))
	r.until("the command runs", func(a providers.About) bool { return a.Open == 1 })
	frames, ok := r.fold.Steer("m1", "respond with exactly: steered")
	r.puts(frames)
	r.hears(`"command_lifecycle"`, `"queued"`, steeredID(frames))
	d.file(t, "go", "")
	a := r.ends(session.Completed, "")
	if !ok || a.Steered[0].State != providers.Confirmed || a.Usage.InputTokens != 200 || r.text(a.Message) != "steered" {
		t.Errorf("%+v, %q", a, r.text(a.Message))
	}

	r.begin(d.order(2, "slow: 3 300"))
	r.hears("w1")
	frames, ok = r.fold.Steer("m2", "respond with exactly: behind")
	r.puts(frames)
	a = r.ends(session.Completed, "")
	if !ok || a.Steered[1].State != providers.Confirmed || a.Usage.InputTokens != 200 || r.text(a.Message) != "behind" {
		t.Errorf("%+v, %q", a, r.text(a.Message))
	}
	if _, ok = r.fold.Steer("m3", "late"); ok {
		t.Error("it is put into a turn that has ended")
	}
	d.record(t, "steered", r)
}

// steeredID is the id of the message in a frame.
func steeredID(frames []providers.Frame) string { return uuid.FindString(string(frames[0].Data)) }

// story is what the events tell.
func (d *driver) story() string {
	var b strings.Builder
	for _, e := range d.events {
		fmt.Fprintf(&b, "%s %.300s\n", e.Type, e.Data)
	}
	return b.String()
}

// gone waits until a command has ended that was to end.
func (d *den) gone(t *testing.T, seconds string) {
	t.Helper()
	for limit := time.Now().Add(patience); d.commands("sleep", seconds) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("sleep %s goes on", seconds)
		}
	}
}

// text is what the events say of a message.
func (d *driver) text(message string) (text string) {
	for _, e := range d.events {
		if e.Type == "agent_message_chunk" && strings.Contains(string(e.Data), message) {
			_, rest, _ := strings.Cut(string(e.Data), `"text":"`)
			rest, _, _ = strings.Cut(rest, `"}`)
			text += rest
		}
	}
	return text
}

// An interrupt forgets what was put into the turn and is not in it yet.
func TestClaude_InterruptForgets(t *testing.T) {
	d := newDen(t)
	r := d.begin(t, d.order(1, "slow: 2 60000"))
	r.hears("w1")
	frames, _ := r.fold.Steer("m1", "respond with exactly: never")
	r.puts(frames)
	r.puts(r.fold.Interrupt())
	if a := r.ends(session.Cancelled, "cancelled"); a.Steered[0].State != providers.Refused || !a.Begun {
		t.Errorf("%+v", a)
	}
	r.run(d.order(2, "respond with exactly: two"), session.Completed, "")
	if n := len(d.asked("respond with exactly: never")); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	d.record(t, "interrupted", r)
}

// Interrupted before it is worked on, a prompt has no result.
func TestClaude_InterruptAtOnce(t *testing.T) {
	d := newDen(t)
	r := d.run(t, d.order(1, "respond with exactly: one"), session.Completed, "")
	frames := r.fold.Begin(d.order(2, "respond with exactly: two"))
	if len(frames) == 0 { // it is not idle yet
		r.until("the prompt is given", func(a providers.About) bool { return a.Prompt != "" })
	}
	r.puts(frames)
	r.puts(r.fold.Interrupt())
	r.ends(session.Cancelled, "cancelled")
	r.run(d.order(3, "respond with exactly: three"), session.Completed, "")
	d.record(t, "interrupted_at_once", r)
}

// An interrupt ends the command that runs, and those in the background.
func TestClaude_InterruptEndsCommands(t *testing.T) {
	d := newDen(t)
	r := d.run(t, d.order(1, `tool: Bash {"command":"exec sleep 25","run_in_background":true}`), session.Completed, "")
	r.begin(d.order(2, "shell: exec sleep 26"))
	r.until("the commands run", func(providers.About) bool { return d.commands("sleep", "25") > 0 && d.commands("sleep", "26") > 0 })
	r.puts(r.fold.Interrupt())
	a := r.ends(session.Cancelled, "cancelled")
	d.gone(t, "25")
	if d.gone(t, "26"); a.Open != 0 {
		t.Errorf("%+v", a)
	}
	d.record(t, "interrupted_command", r)
}

// When a command ends in the background, it begins a turn by itself, which is told and ends no other. A prompt that comes in
// its midst waits for its end.
func TestClaude_TurnOfItsOwn(t *testing.T) {
	d := newDen(t)
	const command = `until test -e go; do sleep 0.05; done; echo late`
	r := d.run(t, d.order(1, `tool: Bash {"command":"`+command+`","run_in_background":true} `), session.Completed, "")
	if n := r.count("agent_turn_started", ""); n != 0 {
		t.Errorf("%d turns", n)
	}
	d.file(t, "go", "")
	r.until("it begins a turn", func(providers.About) bool { return r.count("agent_turn_started", "completed") == 1 })
	before := r.fold.About()
	r.begin(d.order(2, "respond with exactly: two"))
	a := r.ends(session.Completed, "")
	if r.count("agent_turn_ended", `"outcome":"completed"`) != 1 || a.Usage.InputTokens != 100 || r.text(a.Message) != "two" || before.Message == a.Message {
		t.Errorf("%+v, %s", a, r.story())
	}
	d.record(t, "own_turn", r)
}

// An agent that is started is in the background: the turn is over once what it has found out was answered. It says nothing
// in this one's name, asks as this one does, and costs what it costs.
func TestClaude_StartedAgents(t *testing.T) {
	d := newDen(t)
	o := d.asking(t, 1, `tool: Agent {"description":"d","prompt":"shell: echo inner","subagent_type":"general-purpose"}`)
	r := d.begin(t, o)
	for _, title := range []string{"to start an agent: d", "to run echo inner"} {
		p := r.asked()
		if p.Title != title {
			t.Errorf("%+v", p)
		}
		r.puts(r.fold.Answer(p.ID, providers.Allow))
	}
	a := r.ends(session.Completed, "")
	if r.count("tool_call_update", `"status":"completed"`) != 2 || a.Open != 0 || a.Usage.InputTokens != 500 || r.count("agent_turn_started", "") != 0 {
		t.Errorf("%+v, %s", a, r.story())
	}
	d.record(t, "started_agents", r)
}

// Interrupted while it waits for an agent that it has started, nothing of that goes on.
func TestClaude_InterruptEndsAgents(t *testing.T) {
	d := newDen(t)
	r := d.begin(t, d.order(1, `tool: Agent {"description":"d","prompt":"shell: exec sleep 27","subagent_type":"general-purpose"}`))
	r.hears(`"type":"result"`)
	r.until("the command runs", func(providers.About) bool { return d.commands("sleep", "27") > 0 })
	r.puts(r.fold.Interrupt())
	a := r.ends(session.Cancelled, "cancelled")
	if d.gone(t, "27"); a.Open != 0 {
		t.Errorf("%+v", a)
	}
	d.record(t, "interrupted_agents", r)
}

func TestClaude_Errors(t *testing.T) {
	for _, test := range []struct{ golden, prompt, code, message string }{
		{"unauthorized", "http: 401", "auth", "401"},
		{"limited", "http: 429 1", "capacity", ""},
		{"overloaded", "http: 529 1", "capacity", ""},
		{"broken", "http: 500 1", "transient", "500"},
		{"bad_request", "http: 400", "", "400"},
		{"no_model", "http: 404", "config", "model"},
		{"too_long", "fail: context_length_exceeded too long", "config", "too long"},
		{"dropped", "drop: hello world", "transient", ""},
		{"dropped_late", "drop-late: hello world", "transient", ""},
		{"max_tokens", "incomplete: max_tokens", "", ""},
		{"refusal", "incomplete: refusal", "", ""},
	} {
		t.Run(test.golden, func(t *testing.T) {
			t.Parallel()
			d := newDen(t)
			r := d.run(t, d.order(1, test.prompt), session.Failed, test.code)
			if a := r.fold.About(); !strings.Contains(a.End.Message, test.message) || a.End.Message == "" {
				t.Errorf("%+v", a.End)
			}
			r.run(d.order(2, "respond with exactly: two"), session.Completed, "")
			d.record(t, "error_"+test.golden, r)
		})
	}
}

// A key that is refused is not tried for minutes.
func TestClaude_RefusedKey(t *testing.T) {
	d := newDen(t, "CLAUDE_CODE_MAX_RETRIES=10")
	r := d.run(t, d.order(1, "http: 401"), session.Failed, "auth")
	if n := r.count("agent_notice", `"cause":"auth"`); n != 3 {
		t.Errorf("%d notices", n)
	}
	d.record(t, "refused_key", r)
}

func TestClaude_NotSignedIn(t *testing.T) {
	d := newDen(t, "ANTHROPIC_API_KEY=")
	d.record(t, "not_signed_in", d.run(t, d.order(1, "respond with exactly: one"), session.Failed, "auth"))
}

func TestClaude_Retries(t *testing.T) {
	d := newDen(t)
	r := d.begin(t, d.order(1, "http-once: 500 1"))
	r.until("it has trouble", func(a providers.About) bool { return a.Trouble != "" })
	if a := r.ends(session.Completed, ""); a.Trouble != "" || !a.Begun {
		t.Errorf("%+v", a)
	}
	d.record(t, "retried", r)
}

// A model that thinks, and one that makes a plan, by either of its ways.
func TestClaude_ThoughtsAndPlans(t *testing.T) {
	d := newDen(t)
	o := d.order(1, "reason: I think")
	o.Model = "claude-sonnet-4-5"
	r := d.run(t, o, session.Completed, "")
	for n, prompt := range []string{
		`tool: TaskCreate {"subject":"one","description":"d"}`, `tool: TaskCreate {"subject":"two","description":"d"}`,
		`tool: TaskUpdate {"taskId":"1","status":"in_progress"}`, `tool: TaskUpdate {"taskId":"2","subject":"deux","status":"deleted"}`, `tool: TaskList {}`,
	} {
		o := d.order(n+2, prompt)
		o.Model = "claude-sonnet-4-5"
		r.run(o, session.Completed, "")
	}
	both := `{"entries":[{"content":"one","priority":"medium","status":"in_progress"},{"content":"two","priority":"medium","status":"pending"}]}`
	first := `{"entries":[{"content":"one","priority":"medium","status":"in_progress"}]}`
	if r.count("agent_thought_chunk", "I think") != 1 || r.count("plan", "") != 5 || r.count("plan", both) != 1 || r.count("plan", first) != 2 {
		t.Error(r.story())
	}
	d.record(t, "plans", r)

	d = newDen(t, "CLAUDE_CODE_ENABLE_TASKS=false")
	o.Prompt = `tool: TodoWrite {"todos":[{"content":"one","status":"in_progress","activeForm":"o"},{"content":"two","status":"pending","activeForm":"t"}]}`
	r = d.run(t, o, session.Completed, "")
	if r.count("plan", both) != 1 {
		t.Error(r.story())
	}
	d.record(t, "todos", r)
}

// Two ends of a budget of the user's.
func TestClaude_Budget(t *testing.T) {
	d := newDen(t)
	d.more = []string{"--max-turns", "1"}
	r := d.run(t, d.order(1, "shell: echo made"), session.Budget, "budget")
	d.record(t, "budget", r)
}

// A process of another session's that has the same conversation is not noticed by Claude Code: hence the lock of pintle's own.
func TestClaude_HasNoLock(t *testing.T) {
	d := newDen(t)
	r := d.run(t, d.order(1, "respond with exactly: one"), session.Completed, "")
	o := d.order(2, "respond with exactly: two")
	o.Conversation = r.fold.About().Conversation
	d.run(t, o, session.Completed, "")
	r.run(d.order(3, "respond with exactly: three"), session.Completed, "")
	o.Turn, o.Prompt = "t4", "respond with exactly: four"
	d.run(t, o, session.Completed, "")
	earlier := strings.Join(d.asked("respond with exactly: four")[0].Earlier, "\n")
	if strings.Contains(earlier, "two") && strings.Contains(earlier, "three") {
		t.Error("nothing was lost: is the lock needed still?")
	}
}
