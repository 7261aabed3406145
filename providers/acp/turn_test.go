package acp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestTurn_TellsWhatItSays(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(
		told(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}`), piece("one", "m1"), piece("two", "m2"),
		told(`"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"do it"}`),
		told(`"sessionUpdate":"plan","entries":[{"content":"a","status":"pending"}]`),
		told(`"sessionUpdate":"never_heard_of","x":[1,{"y":"é"}]`),
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"plan","entries":[]}}}`,
		`{"jsonrpc":"2.0","method":"_own/thing","params":{}}`, `no JSON`,
		answerTo("prompt", `{"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":3,"cachedReadTokens":2,"cachedWriteTokens":1}}`),
	)
	k.ended(session.Completed, "", "")
	a := k.fold.About()
	if a.Message != "m2" || !a.Confirmed || !a.Begun || a.Usage != (providers.Usage{InputTokens: 10, OutputTokens: 3, CachedTokens: 2}) {
		t.Errorf("%+v", a)
	}
	for kind, words := range map[string]string{"agent_thought_chunk": "hm", "plan": `"a"`, "never_heard_of": `{"x":[1,{"y":"é"}]}`} {
		if n := k.count(kind, words); n != 1 {
			t.Errorf("%s with %s: %d", kind, words, n)
		}
	}
	if n := k.count("user_message_chunk", ""); n != 0 {
		t.Error("it repeats what the user said")
	}
}

// Where messages have no ids, one ends where something else comes.
func TestTurn_MessagesWithoutIDs(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(piece("a", ""), piece("b", ""))
	first := k.fold.About().Message
	k.hears(told(`"sessionUpdate":"tool_call","toolCallId":"c","title":"ls","status":"pending"`), piece("c", ""))
	if second := k.fold.About().Message; first == "" || second == first || k.count("agent_message_chunk", first) != 2 {
		t.Errorf("%q, %q", first, second)
	}
}

// A call of which only an update is told has a beginning all the same; what came out of it is where it is looked for.
func TestTurn_Tools(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(told(`"sessionUpdate":"tool_call_update","toolCallId":"c","title":"ls","kind":"execute","status":"in_progress"`))
	if a := k.fold.About(); a.Open != 1 || k.count("tool_call", `"c"`) != 1 {
		t.Errorf("%+v", a)
	}
	k.hears(told(`"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"made"}}]`))
	if a := k.fold.About(); a.Open != 0 || k.count("tool_call_update", `"rawOutput":{"output":"made"}`) != 1 {
		t.Errorf("%+v, %+v", a, k.events)
	}
	piece := func(text string) string {
		return told(`"sessionUpdate":"tool_call_update","toolCallId":"e","_meta":{"terminal_output_delta":{"data":"` + text + `"}}`)
	}
	k.hears(piece("one "), piece("two"), told(`"sessionUpdate":"tool_call_update","toolCallId":"e","status":"completed"`))
	if k.count("tool_call_update", `"rawOutput":{"output":"one two"}`) != 1 {
		t.Errorf("%+v", k.events)
	}
	k.hears(told(`"sessionUpdate":"tool_call","toolCallId":"d","status":"pending"`), answerTo("prompt", `{"stopReason":"end_turn"}`))
	if a := k.fold.About(); a.Open != 0 || k.count("tool_call_update", `"status":"failed"`) != 1 {
		t.Errorf("%+v", a)
	}
}

// A plan that is made by a tool is told as one.
func TestTurn_PlansByATool(t *testing.T) {
	k := prompted(t, agent{planner: "todos"}, providers.Order{})
	update := func(title, input string) string {
		return told(`"sessionUpdate":"tool_call_update","toolCallId":"c","title":"` + title + `","status":"in_progress","rawInput":` + input)
	}
	steps := `{"todos":[{"content":"one","id":1,"priority":"high","status":"completed"},{"content":"two","status":"pending"}]}`
	k.hears(update("todos", `{}`), update("todos", `{"todos":7}`), update("other", steps), update("todos", steps))
	want := `{"entries":[{"content":"one","priority":"high","status":"completed"},{"content":"two","status":"pending"}]}`
	if k.count("plan", "") != 1 || k.count("plan", want) != 1 {
		t.Errorf("%+v", k.events)
	}
}

func cost(amount string) string {
	return told(`"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":` + amount + `,"currency":"USD"}`)
}

// What the session has cost in all is told; a turn's is the difference.
func TestTurn_Cost(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(cost("0.25"), answerTo("prompt", `{"stopReason":"end_turn"}`))
	if u := k.fold.About().Usage; u.USD == nil || *u.USD != 0.25 {
		t.Errorf("%+v", u)
	}
	k.made(k.fold.Begin(providers.Order{Turn: "t2", Prompt: "more", Cwd: "/dir"}))
	if u := k.fold.About().Usage; u.USD == nil || *u.USD != 0 {
		t.Errorf("%+v", u)
	}
	k.hears(cost("0.75"))
	if u := k.fold.About().Usage; *u.USD != 0.5 {
		t.Errorf("%v", *u.USD)
	}
}

// What one that goes on had cost before is not known, and neither is what its first turn costs, unless it is told in time.
func TestTurn_CostOfOneThatGoesOn(t *testing.T) {
	k := with(t, agent{}, providers.Order{Conversation: "s"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{}`), cost("0.75"), answerTo("prompt", `{"stopReason":"end_turn"}`))
	if u := k.fold.About().Usage; u.USD != nil {
		t.Errorf("%v", *u.USD)
	}
	k.made(k.fold.Begin(providers.Order{Turn: "t1", Prompt: "more", Cwd: "/dir"}))
	k.hears(cost("1"))
	if u := k.fold.About().Usage; u.USD == nil || *u.USD != 0.25 {
		t.Errorf("%+v", u)
	}
	k.hears(cost("0.5")) // it has begun to count anew
	if u := k.fold.About().Usage; *u.USD != 0.5 {
		t.Errorf("%v", *u.USD)
	}
	had := 0.5
	k = with(t, agent{}, providers.Order{Conversation: "s", Priced: &had})
	k.hears(answerTo("initialize", hello), answerTo("open", `{}`), cost("0.75"))
	if a := k.fold.About(); a.Usage.USD == nil || *a.Usage.USD != 0.25 || *a.Priced != 0.75 {
		t.Errorf("%+v", a)
	}
	k = with(t, agent{}, providers.Order{Conversation: "s", Priced: &had}) // and is gone
	k.hears(answerTo("initialize", hello), errorTo("open", -32002, "Resource not found", ""), answerTo("open", `{"sessionId":"s"}`), cost("0.75"))
	if u := k.fold.About().Usage; u.USD == nil || *u.USD != 0.75 {
		t.Errorf("%+v", u)
	}
	k = with(t, agent{}, providers.Order{Conversation: "s"})
	k.hears(answerTo("initialize", loads), cost("0.25"), cost("0.5"), answerTo("open", `{}`), cost("0.75"))
	if u := k.fold.About().Usage; u.USD == nil || *u.USD != 0.25 {
		t.Errorf("%+v", u)
	}
}

func TestTurn_Ends(t *testing.T) {
	for reason, want := range map[string]session.Outcome{
		"end_turn": session.Completed, "cancelled": session.Cancelled, "max_turn_requests": session.Budget, "max_tokens": session.Failed,
		"refusal": session.Failed, "": session.Failed, "bogus": session.Failed,
	} {
		k := prompted(t, agent{}, providers.Order{})
		k.hears(answerTo("prompt", `{"stopReason":"`+reason+`"}`))
		if end := k.fold.About().End; end == nil || end.Outcome != want {
			t.Errorf("%q: %+v", reason, end)
		}
	}
}

func TestTurn_Interrupt(t *testing.T) {
	k := with(t, agent{}, providers.Order{})
	k.hears(answerTo("initialize", hello))
	k.made(k.fold.Interrupt())
	k.hears(answerTo("open", `{"sessionId":"s"}`))
	k.ended(session.Cancelled, "cancelled", "before the prompt was given")

	k = prompted(t, agent{}, providers.Order{})
	k.hears(asksToRun)
	k.made(k.fold.Interrupt())
	if !strings.Contains(k.frames[len(k.frames)-2], "session/cancel") {
		t.Errorf("%q", k.frames)
	}
	k.said(`"outcome":"cancelled"`, `"id":0`)
	k.hears(answerTo("prompt", `{"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0}}`)) // between two tries of a request
	k.ended(session.Cancelled, "cancelled", "interrupted")
	if n := k.count("permission_resolved", "lapsed"); n != 1 {
		t.Errorf("%d lapsed", n)
	}
}

// Errors of the model's by what agents make of them (B1).
func TestTurn_Causes(t *testing.T) {
	for _, tt := range []struct {
		line, cause string
	}{
		{errorTo("prompt", -32000, "Authentication required", ""), "auth"},
		{errorTo("prompt", 401, `{"error":{"code":401}}`, ""), "auth"}, {errorTo("prompt", 429, "x", ""), "capacity"},
		{errorTo("prompt", 500, "terminated", ""), "transient"}, {errorTo("prompt", 400, "bad", ""), ""}, {errorTo("prompt", 404, "x", ""), "config"},
		{errorTo("prompt", -32603, "Internal error", `{"errorKind":"rate_limit"}`), "capacity"},
		{errorTo("prompt", -32603, "Internal error: API Error: 529 overloaded", ""), "capacity"},
		{errorTo("prompt", -32603, "Internal error: Prompt is too long", ""), "config"},
		{errorTo("prompt", -32603, "Internal error: the port is 4290", ""), ""},
		{errorTo("prompt", -32603, "Internal error", `{"message":"Get more of it.","codexErrorInfo":"usageLimitExceeded"}`), "capacity"},
		{errorTo("prompt", -32603, "Internal error", `{"codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":403}}}`), "auth"},
		{errorTo("prompt", -32603, "Internal error", `{"codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":null}}}`), "transient"},
		{errorTo("prompt", -32603, "Internal error", `{"codexErrorInfo":{"never":1}}`), ""},
	} {
		k := prompted(t, agent{}, providers.Order{})
		k.hears(tt.line)
		k.ended(session.Failed, tt.cause, "")
	}
}

// codex-acp tells errors as messages that have no id, and ends the turn as if all were well.
func TestTurn_ErrorsThatAreSaid(t *testing.T) {
	k := prompted(t, agent{errorsAreSaid: true}, providers.Order{})
	k.hears(piece("unexpected status 503 Service Unavailable", ""), answerTo("prompt", `{"stopReason":"end_turn","usage":null}`))
	k.ended(session.Failed, "transient", "503")
	if a := k.fold.About(); a.Begun || k.count("agent_message_chunk", "") != 0 {
		t.Errorf("%+v", a)
	}
	// What a command of its own says is no error.
	k = prompted(t, agent{errorsAreSaid: true}, providers.Order{Prompt: "/status"})
	k.hears(piece("all is well", ""), answerTo("prompt", `{"stopReason":"end_turn","usage":null}`))
	k.ended(session.Completed, "", "")
}

// thread is what codex-acp says of its thread.
func thread(status string) string {
	return told(`"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"` + status + `"}}}`)
}

// What it tells without an id is an error only if the turn failed, of which it has a sign of its own.
func TestTurn_WarningsThatAreSaid(t *testing.T) {
	warning, done := piece("Warning: no metadata", ""), `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`
	k := prompted(t, agent{errorsAreSaid: true}, providers.Order{})
	k.hears(warning, thread("active"), piece("hello", "m"), thread("idle"), answerTo("prompt", done))
	k.ended(session.Completed, "", "")
	if a := k.fold.About(); a.Message != "m" || k.count("agent_notice", "no metadata") != 1 {
		t.Errorf("%+v", a)
	}
	for _, tt := range []struct{ said, code, message string }{
		{"Selected model is at capacity.", "capacity", "Selected model is at capacity."}, {"Too many of them", "", "Too many of them"},
		{"You\u2019ve hit your usage limit.", "capacity", "usage limit"}, {"", "", "and not why"},
	} {
		k := prompted(t, agent{errorsAreSaid: true}, providers.Order{Prompt: "/home/x is full"})
		k.hears(warning, thread("active"), thread("systemError"))
		if tt.said != "" {
			k.hears(piece(tt.said+"\n\n", ""))
		}
		k.hears(answerTo("prompt", done))
		k.ended(session.Failed, tt.code, tt.message)
		if end := k.fold.About().End; strings.Contains(end.Message, "metadata") {
			t.Errorf("%+v", end)
		}
	}
}

// An error that codex-acp goes on after is trouble until something comes, and names the cause if it gives up.
func TestTurn_TriesAgain(t *testing.T) {
	again := told(`"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":"Reconnecting","additionalDetails":"it broke","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":503}},"willRetry":true}}}`)
	k := prompted(t, agent{errorsAreSaid: true}, providers.Order{})
	k.hears(thread("active"), again)
	if a := k.fold.About(); a.Trouble != "Reconnecting: it broke" || a.Begun || k.count("agent_notice", `"willRetry":true`) != 1 || k.count("session_info_update", "error") != 0 {
		t.Errorf("%+v, %+v", a, k.events)
	}
	k.hears(piece("hello", "m"))
	if a := k.fold.About(); a.Trouble != "" {
		t.Errorf("%+v", a)
	}
	k.hears(again, thread("systemError"), piece("It is over.", ""), answerTo("prompt", `{"stopReason":"end_turn","usage":null}`))
	k.ended(session.Failed, "transient", "It is over.")
}

// One that leaves the mode that it was put into may do what it was to ask for: somebody should know.
func TestTurn_LeavesItsMode(t *testing.T) {
	k := with(t, agent{modes: map[string]string{"none": "default"}}, providers.Order{Approve: "none"})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes), answerTo("choose", `{}`))
	k.hears(told(`"sessionUpdate":"current_mode_update","currentModeId":"default"`))
	if n := k.count("agent_notice", ""); n != 0 {
		t.Errorf("%d notices of the mode that it is to be in", n)
	}
	k.hears(
		told(`"sessionUpdate":"current_mode_update","currentModeId":"auto"`),
		told(`"sessionUpdate":"config_option_update","configOptions":[{"id":"mode","category":"mode","currentValue":"free"}]`),
	)
	if k.count("agent_notice", "in the mode auto now, and not in default") != 1 || k.count("agent_notice", "in the mode free") != 1 {
		t.Errorf("%+v", k.events)
	}
}

// An agent that says nothing but the error has begun nothing.
func TestTurn_SaysOnlyTheError(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(piece("API Error: 500 ", "m"), piece("oh", "m"), errorTo("prompt", -32603, "Internal error: API Error: 500 oh", ""))
	if a := k.fold.About(); a.Begun {
		t.Errorf("%+v", a)
	}
	k = prompted(t, agent{}, providers.Order{})
	k.hears(piece("I begin", "m"), errorTo("prompt", -32603, "Internal error: API Error: 500 oh", ""))
	if a := k.fold.About(); !a.Begun {
		t.Errorf("%+v", a)
	}
}

// Of a conversation's files only the longest keeps its name, and not one of this minute. Nothing is lost.
func TestGeminiMoves(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 30, 0, time.UTC)
	name := func(minute string) string { return "/c/session-" + minute + "-abc.jsonl" }
	for _, tt := range []struct {
		files []providers.File
		want  []providers.Move
	}{
		{nil, nil},
		{[]providers.File{{Path: name("2026-11-30T23-59"), Size: 9}}, nil},
		{[]providers.File{{Path: name("2026-12-01T00-00"), Size: 9}}, []providers.Move{{From: name("2026-12-01T00-00"), To: name("2026-11-30T23-59")}}},
		{[]providers.File{{Path: name("2026-11-30T23-59"), Size: 2}, {Path: name("2026-12-01T00-00"), Size: 9}}, []providers.Move{
			{From: name("2026-11-30T23-59"), To: "/c/aside-session-2026-11-30T23-59-abc.jsonl"}, {From: name("2026-12-01T00-00"), To: name("2026-11-30T23-59")},
		}},
	} {
		if diff := cmp.Diff(tt.want, geminiMoves(tt.files, now)); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", tt.files, diff)
		}
	}
}
