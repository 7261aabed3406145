//go:build agents

// Package agents proves the fake model against the real agents, and records what the real agents say.
//
//	testscripts/agents/install.sh && go test -tags agents ./testscripts/agents
//
// With -update the transcripts under providers/codex/testdata are recorded anew.
package agents

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/fakemodel"
)

// open starts Codex in a lab of its own, and a thread that may do everything.
func open(t *testing.T, model string) (*lab, thread) {
	t.Helper()
	l := newLab(t, model)
	return l, l.launch(t).thread("never", "danger-full-access", l.dir)
}

// completes runs a turn that must complete, and returns the text of its last message.
func (th thread) completes(prompt string) string {
	th.t.Helper()
	end := th.run(prompt)
	if end.Status != "completed" || end.Error != nil || end.CompletedAt == nil || len(end.Items) != 1 {
		th.t.Fatalf("%.100q ended as %+v", prompt, end)
	}
	return end.Items[0].Text
}

// asked are the model's requests for a prompt.
func (l *lab) asked(prompt string) (found []fakemodel.Request) {
	for _, r := range l.model.Requests() {
		if r.Prompt == prompt {
			found = append(found, r)
		}
	}
	return found
}

func TestCodex_Text(t *testing.T) {
	l, th := open(t, "mock-model")
	if got := th.completes("respond with exactly: hello world"); got != "hello world" {
		t.Error(got)
	}
	requests := l.model.Requests()
	if len(requests) != 1 || requests[0].Thread != th.id || requests[0].Prompt != "respond with exactly: hello world" {
		t.Errorf("the model was asked %+v", requests)
	}
	deltas := th.notified("item/agentMessage/delta")
	if len(deltas) != 2 || deltas[0].Delta != "hello " || deltas[1].Delta != "world" {
		t.Errorf("deltas %+v", deltas)
	}
	if used := th.notified("thread/tokenUsage/updated"); len(used) != 1 || used[0].TokenUsage.Last.TotalTokens != 110 {
		t.Errorf("usage %+v", used)
	}
	want := []string{
		"turn/started", "item/started userMessage", "item/completed userMessage", "item/started agentMessage",
		"item/agentMessage/delta", "item/agentMessage/delta", "item/completed agentMessage", "turn/completed",
	}
	if got := th.order(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	l.record(t, "text", th.appServer)
}

// order are the notifications of turns and items, as they came.
func (a *appServer) order() (names []string) {
	frames, _ := a.all()
	for _, f := range frames {
		if strings.HasPrefix(f.Method, "turn/") || strings.HasPrefix(f.Method, "item/") {
			names = append(names, strings.TrimSpace(f.Method+" "+f.Params.Item.Type))
		}
	}
	return names
}

func TestCodex_TextOfEachKind(t *testing.T) {
	l, th := open(t, "mock-model")
	if got := th.completes("slow: 5 20"); strings.TrimSpace(got) != "w1 w2 w3 w4 w5" {
		t.Error(got)
	}
	if got := len(th.notified("item/agentMessage/delta")); got != 5 {
		t.Errorf("%d deltas", got)
	}
	for _, prompt := range []string{"big: 1000000", "big: 1000000 65536"} {
		if got := th.completes(prompt); len(got) != 1_000_000 {
			t.Errorf("%q: %d bytes", prompt, len(got))
		}
	}
	if got := th.completes("reason: let me see"); got != "done" {
		t.Error(got)
	}
	if thoughts := th.items("reasoning"); len(thoughts) != 1 || !slices.Equal(thoughts[0].Summary, []string{"let me see"}) {
		t.Errorf("%+v", thoughts)
	}
	if got := th.completes("anything"); got != "ok" {
		t.Error(got)
	}
	if n := len(l.model.Requests()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

func TestCodex_UsageCompacts(t *testing.T) {
	l, th := open(t, "mock-model")
	th.completes("usage: 250000")
	th.completes("respond with exactly: small again")
	if got := len(th.items("contextCompaction")); got != 1 {
		t.Errorf("%d compactions", got)
	}
	requests := l.model.Requests()
	if len(requests) != 3 || !strings.HasPrefix(requests[1].Prompt, "You are performing a CONTEXT CHECKPOINT COMPACTION") {
		t.Errorf("%+v", requests)
	}
	l.record(t, "compacted", th.appServer)
}

func TestCodex_Command(t *testing.T) {
	l, th := open(t, "mock-model")
	const prompt = "shell: echo made; exit 3"
	if got := th.completes(prompt); !strings.HasPrefix(got, "tool said: ") || !strings.Contains(got, "exited with code 3") {
		t.Error(got)
	}
	commands := th.items("commandExecution")
	if len(commands) != 1 || commands[0].Status != "failed" || *commands[0].ExitCode != 3 || *commands[0].AggregatedOutput != "made\n" {
		t.Errorf("%+v", commands)
	}
	if asked := l.asked(prompt); len(asked) != 2 || asked[0].FollowUp || !asked[1].FollowUp || !strings.Contains(asked[1].Output, "made") {
		t.Errorf("%+v", asked)
	}
	l.record(t, "command", th.appServer)
}

func TestCodex_CommandThatOutlastsItsYield(t *testing.T) {
	l, th := open(t, "mock-model")
	const prompt = `tool: exec_command {"cmd":"sleep 0.6; echo late","yield_time_ms":250}`
	if got := th.completes(prompt); !strings.Contains(got, "late") {
		t.Error(got)
	}
	if asked := l.asked(prompt); len(asked) != 3 || !strings.Contains(asked[1].Output, "Process running with session ID") {
		t.Errorf("%+v", asked)
	}
	if commands := th.items("commandExecution"); len(commands) != 1 || *commands[0].AggregatedOutput != "late\n" {
		t.Errorf("%+v", commands)
	}
	if got := th.completes("sleep 0.3"); !strings.Contains(got, "exited with code 0") {
		t.Error(got)
	}
}

func TestCodex_CallsThatGoWrong(t *testing.T) {
	_, th := open(t, "mock-model")
	for prompt, want := range map[string]string{
		"tool: no_such_tool {}":       "tool said: unsupported call: no_such_tool",
		"tool: exec_command {":        "tool said: failed to parse function arguments",
		"custom: no_such_tool\ninput": "tool said: unsupported custom tool call: no_such_tool",
	} {
		if got := th.completes(prompt); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", prompt, got)
		}
	}
}

func TestCodex_Patch(t *testing.T) {
	l, th := open(t, "gpt-5.5")
	th.completes("patch: p1.txt")
	if got, err := os.ReadFile(filepath.Join(l.dir, "p1.txt")); err != nil || string(got) != "hello\n" {
		t.Errorf("%q, %v", got, err)
	}
	changes := th.items("fileChange")
	if len(changes) != 1 || changes[0].Status != "completed" || changes[0].Changes[0].Path != filepath.Join(l.dir, "p1.txt") {
		t.Errorf("%+v", changes)
	}
	l.record(t, "patch", th.appServer)
}

func TestCodex_CustomTool(t *testing.T) {
	l, th := open(t, "gpt-5.5")
	th.completes("custom: apply_patch\n*** Begin Patch\n*** Add File: p2.txt\n+two\n*** End Patch")
	if got, err := os.ReadFile(filepath.Join(l.dir, "p2.txt")); err != nil || string(got) != "two\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// What users get by default is a model whose one tool runs JavaScript.
func TestCodex_CodeMode(t *testing.T) {
	l, th := open(t, "gpt-6.2-sol")
	if got := th.completes("shell: echo made"); !strings.Contains(got, "made") {
		t.Error(got)
	}
	if commands := th.items("commandExecution"); len(commands) != 1 || *commands[0].AggregatedOutput != "made\n" {
		t.Errorf("%+v", commands)
	}
	th.completes("patch: p1.txt")
	if got, err := os.ReadFile(filepath.Join(l.dir, "p1.txt")); err != nil || string(got) != "hello\n" {
		t.Errorf("%q, %v", got, err)
	}
	l.record(t, "code_mode", th.appServer)
}

func TestCodex_CodeModeOutlastsItsYield(t *testing.T) {
	_, th := open(t, "gpt-6.2-sol")
	const prompt = "custom: exec\ntext(JSON.stringify(await tools.exec_command({cmd: 'sleep 0.6; echo late', yield_time_ms: 250})))"
	if got := th.completes(prompt); !strings.Contains(got, "late") {
		t.Error(got)
	}
	if commands := th.items("commandExecution"); len(commands) != 1 || *commands[0].AggregatedOutput != "late\n" {
		t.Errorf("%+v", commands)
	}
}

// request awaits what the app-server asks of us, by its method.
func (a *appServer) request(method string) frame {
	a.t.Helper()
	return a.await(method, func(f frame) bool { return f.Method == method })
}

// decide answers a request for approval.
func (a *appServer) decide(request frame, decision any) {
	a.t.Helper()
	a.write(object{"id": request.ID, "result": object{"decision": decision}})
	a.await("serverRequest/resolved", func(f frame) bool {
		return f.Method == "serverRequest/resolved" && string(f.Params.RequestID) == string(request.ID)
	})
}

const (
	askCommand = "item/commandExecution/requestApproval"
	askChange  = "item/fileChange/requestApproval"
)

func TestCodex_Approvals(t *testing.T) {
	for _, test := range []struct {
		golden, model, policy, sandbox, prompt, ask, decision string
		turn, item                                            string // how they end; "" if there is no item
		told                                                  string // what the model is told
	}{
		{"approval_accepted", "mock-model", "untrusted", "read-only", "shell: echo made", askCommand, "accept", "completed", "completed", "made"},
		{"approval_declined", "mock-model", "untrusted", "read-only", "shell: echo made", askCommand, "decline", "completed", "declined", "rejected by user"},
		{"approval_cancelled", "mock-model", "untrusted", "read-only", "shell: echo made", askCommand, "cancel", "interrupted", "declined", ""},
		{"approval_escalated", "mock-model", "on-request", "workspace-write", "shell-escalated: echo made", askCommand, "accept", "completed", "completed", "made"},
		{"approval_patch_accepted", "gpt-5.5", "untrusted", "workspace-write", "patch: p1.txt", askChange, "accept", "completed", "completed", "Success"},
		{"approval_patch_declined", "gpt-5.5", "untrusted", "workspace-write", "patch: p1.txt", askChange, "decline", "completed", "declined", "rejected by user"},
	} {
		t.Run(test.golden, func(t *testing.T) {
			l := newLab(t, test.model)
			th := l.launch(t).thread(test.policy, test.sandbox, l.dir)
			id := th.prompt(test.prompt)
			request := th.request(test.ask)
			if request.Params.ThreadID != th.id || request.Params.TurnID != id || request.Params.ItemID == "" {
				t.Errorf("%+v", request.Params)
			}
			th.decide(request, test.decision)
			if got := th.end(id).Status; got != test.turn {
				t.Errorf("the turn is %s", got)
			}
			items := append(th.items("commandExecution"), th.items("fileChange")...)
			if len(items) != 1 || items[0].Status != test.item || items[0].ID != request.Params.ItemID {
				t.Errorf("%+v", items)
			}
			asked := l.asked(test.prompt)
			if last := asked[len(asked)-1]; last.FollowUp != (test.told != "") || !strings.Contains(last.Output, test.told) {
				t.Errorf("the model was told %+v", last)
			}
			l.record(t, test.golden, th.appServer)
		})
	}
}

func TestCodex_NeverAsksOutsideItsPolicy(t *testing.T) {
	l := newLab(t, "mock-model")
	th := l.launch(t).thread("never", "read-only", l.dir)
	th.completes("shell: sleep 0.5; echo x > made")
	if _, err := os.Stat(filepath.Join(l.dir, "made")); err == nil {
		t.Error("the sandbox let a file be written")
	}
	th.completes("shell-escalated: echo x > made")
	if _, err := os.Stat(filepath.Join(l.dir, "made")); err == nil {
		t.Error("an escalation that nobody granted was carried out")
	}
	if got := len(th.notified(askCommand)); got != 0 {
		t.Errorf("%d requests", got)
	}
}

func TestCodex_InterruptInText(t *testing.T) {
	l, th := open(t, "mock-model")
	id := th.prompt("slow: 3 20000")
	th.awaitDelta("w1 ")
	th.interrupt(id)
	l.idle(t)
	l.record(t, "interrupted_text", th.appServer)
}

func (a *appServer) awaitDelta(text string) {
	a.t.Helper()
	a.await("delta "+text, func(f frame) bool { return f.Method == "item/agentMessage/delta" && f.Params.Delta == text })
}

// idle returns when the model answers nobody: the client of what hung is gone.
func (l *lab) idle(t *testing.T) {
	t.Helper()
	l.wait(t, func(_ []fakemodel.Request, answering int) bool { return answering == 0 })
}

func TestCodex_InterruptInACommand(t *testing.T) {
	l, th := open(t, "mock-model")
	id := th.prompt("sleep 21")
	command := th.awaitItem("item/started", "commandExecution")
	th.interrupt(id)
	list := th.call("thread/backgroundTerminals/list", object{"threadId": th.id})
	if !strings.Contains(string(list), command.ID) {
		t.Errorf("the command does not go on: %s", list)
	}
	th.call("thread/backgroundTerminals/clean", object{"threadId": th.id})
	if got := th.awaitItem("item/completed", "commandExecution"); got.ID != command.ID || got.Status != "failed" {
		t.Errorf("%+v", got)
	}
	l.record(t, "interrupted_command", th.appServer)
}

func TestCodex_InterruptWhatHangs(t *testing.T) {
	l, th := open(t, "mock-model")
	for _, test := range []struct {
		prompt   string
		requests int
	}{{"hang-headers", 1}, {"shell: true ##hang", 2}} {
		id := th.prompt(test.prompt)
		l.wait(t, func(requests []fakemodel.Request, answering int) bool {
			return answering == 1 && len(l.asked(test.prompt)) == test.requests
		})
		th.interrupt(id)
		l.idle(t)
	}
}

func TestCodex_InterruptWhileItAsks(t *testing.T) {
	l := newLab(t, "mock-model")
	th := l.launch(t).thread("untrusted", "read-only", l.dir)
	id := th.prompt("shell: echo made")
	th.request(askCommand)
	th.interrupt(id)
	th.await("serverRequest/resolved", func(f frame) bool { return f.Method == "serverRequest/resolved" })
	l.record(t, "interrupted_approval", th.appServer)
}

func TestCodex_TurnStartOnARunningTurnSteers(t *testing.T) {
	l, th := open(t, "mock-model")
	id := th.prompt("sleep 1")
	th.awaitItem("item/started", "commandExecution")
	var r struct{ Turn turn }
	result := th.call("turn/start", object{"threadId": th.id, "input": input("respond with exactly: steered")})
	if err := json.Unmarshal(result, &r); err != nil || r.Turn.ID != id {
		t.Errorf("%s, %v", result, err)
	}
	if end := th.end(id); end.Items[0].Text != "steered" {
		t.Errorf("%+v", end)
	}
	if got := len(th.notified("turn/completed")); got != 1 {
		t.Errorf("%d turns", got)
	}
	l.record(t, "steered", th.appServer)
}

func TestCodex_Recovers(t *testing.T) {
	for _, test := range []struct {
		golden, prompt, text string
		requests, messages   int
		errors               int // notifications, all of which say that it tries again
	}{
		{"recovered_http", "http-once: 500", "recovered", 2, 1, 0},
		{"recovered_http_429", "http-once: 429 1", "recovered", 2, 1, 1},
		{"recovered_drop", "drop-once: hello world", "hello world", 2, 1, 1},
		{"recovered_drop_late", "drop-late-once: hello world", "hello world", 2, 2, 1},
	} {
		t.Run(test.golden, func(t *testing.T) {
			l, th := open(t, "mock-model")
			if got := th.completes(test.prompt); got != test.text {
				t.Error(got)
			}
			if got := len(l.model.Requests()); got != test.requests {
				t.Errorf("%d requests", got)
			}
			if got := th.items("agentMessage"); len(got) != test.messages {
				t.Errorf("%+v", got)
			}
			errors := th.notified("error")
			if len(errors) != test.errors || slices.ContainsFunc(errors, func(p params) bool { return !p.WillRetry }) {
				t.Errorf("%+v", errors)
			}
			l.record(t, test.golden, th.appServer)
		})
	}
}

// A call that came before the connection broke is carried out once.
func TestCodex_DropBehindACall(t *testing.T) {
	l, th := open(t, "mock-model")
	th.completes("shell: echo once >> made ##drop")
	if got, err := os.ReadFile(filepath.Join(l.dir, "made")); err != nil || string(got) != "once\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got := l.model.Requests(); len(got) != 2 || !got[1].FollowUp {
		t.Errorf("%+v", got)
	}
}

func TestCodex_Failures(t *testing.T) {
	const other = `"other"`
	connection := func(status string) string { return `{"httpConnectionFailed":{"httpStatusCode":` + status + `}}` }
	for _, test := range []struct {
		golden, prompt string
		requests       int
		info           string
	}{
		{"http_500", "http: 500", 4, `"internalServerError"`},
		{"http_503", "http: 503", 4, connection("503")},
		{"http_429", "http: 429", 1, `{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`},
		{"http_429_retry_after", "http: 429 1", 2, `{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`},
		{"http_429_usage_limit", "http: 429 usage_limit_reached", 1, `"usageLimitExceeded"`},
		{"http_400", "http: 400", 1, other},
		{"http_401", "http: 401", 2, connection("401")},
		{"http_403", "http: 403", 2, connection("403")},
		{"http_404", "http: 404", 2, connection("404")},
		{"silence", "hang-body", 2, other},
		{"drop", "drop: hello world", 2, other},
		{"drop_late", "drop-late: hello world", 2, other},
		{"overloaded", "fail: server_is_overloaded busy", 1, `"serverOverloaded"`},
		{"rate_limit", "fail: rate_limit_exceeded try again in 1.5s", 2, `"rateLimitExceeded"`},
		{"context_length", "fail: context_length_exceeded too long", 1, `"contextWindowExceeded"`},
		{"quota", "fail: insufficient_quota pay", 1, `"usageLimitExceeded"`},
		{"invalid_prompt", "fail: invalid_prompt no", 1, other},
		{"unheard_of", "fail: unheard_of what", 2, other},
		{"incomplete_tokens", "incomplete: max_output_tokens", 1, other},
		{"incomplete_filter", "incomplete: content_filter", 2, other},
	} {
		t.Run(test.golden, func(t *testing.T) {
			l, th := open(t, "mock-model")
			end := th.run(test.prompt)
			if end.Status != "failed" || end.Error == nil || string(end.Error.CodexErrorInfo) != test.info {
				t.Errorf("the turn ended as %+v, %+v", end, cmp.Or(end.Error, &turnError{}))
			}
			if got := len(l.model.Requests()); got != test.requests {
				t.Errorf("%d requests", got)
			}
			errors := th.notified("error")
			for i, e := range errors {
				if last := i == len(errors)-1; e.WillRetry == last {
					t.Errorf("error %d of %d: %+v", i+1, len(errors), e)
				}
			}
			l.record(t, "failed_"+test.golden, th.appServer)
		})
	}
}

func TestCodex_ThreadIsUsableAfterAFailure(t *testing.T) {
	_, th := open(t, "mock-model")
	for _, prompt := range []string{"http: 400", "http: 401", "drop: hello world", "fail: unheard_of what"} {
		if got := th.run(prompt).Status; got != "failed" {
			t.Errorf("%q: %s", prompt, got)
		}
		if got := th.completes("respond with exactly: usable"); got != "usable" {
			t.Error(got)
		}
	}
}

// resume takes up a thread of an earlier app-server.
func (a *appServer) resume(id string) thread {
	a.t.Helper()
	th := thread{a, threadID(a.t, a.call("thread/resume", object{"threadId": id, "excludeTurns": true}))}
	if th.id != id {
		a.t.Fatalf("thread %s was resumed as %s", id, th.id)
	}
	return th
}

func TestCodex_NobodyListens(t *testing.T) {
	l, th := open(t, "mock-model")
	if err := l.model.Close(); err != nil {
		t.Fatal(err)
	}
	id := th.prompt("respond with exactly: hello")
	waiting := th.await("an error", func(f frame) bool { return f.Method == "error" }).Params
	if !waiting.WillRetry || string(waiting.Error.CodexErrorInfo) != `{"responseStreamDisconnected":{"httpStatusCode":null}}` {
		t.Errorf("%+v", waiting)
	}
	th.interrupt(id)
	l.record(t, "nobody_listens", th.appServer)
}

func TestCodex_KilledAndResumed(t *testing.T) {
	for _, test := range []struct {
		name, policy, prompt string
		reached              func(th thread)
	}{
		{"text", "never", "slow: 3 20000", func(th thread) { th.awaitDelta("w1 ") }},
		{"command", "never", "sleep 22", func(th thread) { th.awaitItem("item/started", "commandExecution") }},
		{"approval", "untrusted", "shell: echo made", func(th thread) { th.request(askCommand) }},
		{"idle", "never", "respond with exactly: hello", func(th thread) { th.end(th.notified("turn/started")[0].Turn.ID) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, "mock-model")
			th := l.launch(t).thread(test.policy, "danger-full-access", l.dir)
			id := th.prompt(test.prompt)
			test.reached(th)
			th.kill()
			l.record(t, "killed_in_"+test.name, th.appServer)

			after := l.launch(t).resume(th.id)
			if before := after.lastTurn(); before.ID != id || (before.CompletedAt == nil) != (test.name != "idle") {
				t.Errorf("the killed turn is %+v", before)
			}
			if got := after.completes("respond with exactly: back"); got != "back" {
				t.Error(got)
			}
			if got := len(after.notified("turn/completed")); got != 1 {
				t.Errorf("%d turns ended", got)
			}
			l.record(t, "resumed_after_"+test.name, after.appServer)
		})
	}
}

// lastTurn is the newest in a thread's history.
func (th thread) lastTurn() turn {
	th.t.Helper()
	result := th.call("thread/read", object{"threadId": th.id, "includeTurns": true})
	var r struct{ Thread struct{ Turns []turn } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Thread.Turns) == 0 {
		th.t.Fatalf("%s: %v", result, err)
	}
	return r.Thread.Turns[len(r.Thread.Turns)-1]
}
