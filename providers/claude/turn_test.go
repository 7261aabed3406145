package claude

import (
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestTurn(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	if a := k.About(); !a.Confirmed || a.Begun || a.Model != "m" {
		t.Errorf("%+v", a)
	}
	k.message("A", "hello")
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); a.Message != "A" || !a.Begun || k.text("A") != "hello" {
		t.Errorf("%+v", a)
	}
}

// The next prompt is given once the agent is idle: until then it would be taken into a turn of the agent's own.
func TestBegin_WaitsForIdle(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.say(results("success", ""))
	wantFrames(t, k.begin(order(2, "")))
	k.say(k.inits())
	k.say(results("success", `,"origin":{"kind":"task-notification"}`))
	if a := k.About(); a.End != nil || a.Prompt != "" {
		t.Errorf("%+v", a)
	}
	wantFrames(t, k.say(stateIs("idle")), `"uuid":"`+k.promptID())
	k.wantTold("agent_turn_started", `{"reason":""}`)
	k.wantTold("agent_turn_ended", `{"code":"","message":"","outcome":"completed","usage":{}}`)
}

// Interrupted while it waits, it was never given; the agent's own turn is ended for it.
func TestInterrupt_BeforeThePromptIsGiven(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(results("success", ""), k.inits())
	k.begin(order(2, ""))
	wantFrames(t, k.interrupts(), `"subtype":"interrupt"`)
	k.say(results("error_during_execution", ""))
	k.wantOn()
	wantFrames(t, k.say(stateIs("idle")))
	k.wantEnd(session.Cancelled, "cancelled", "before the prompt was given")

	k = newTalk(t)
	k.begin(order(1, ""))
	wantFrames(t, k.interrupts())
	wantFrames(t, k.greets(""))
	k.wantEnd(session.Cancelled, "cancelled", "before the prompt was given")
}

func TestInterrupt(t *testing.T) {
	for _, test := range []struct {
		name    string
		lines   []string
		outcome session.Outcome
		code    string
	}{
		{"breaks it off", []string{results("error_during_execution", `,"terminal_reason":"aborted_streaming"`)}, session.Cancelled, "cancelled"},
		{"comes late", []string{results("success", "")}, session.Completed, ""},
		{"comes after a failure", []string{`{"type":"result","subtype":"success","is_error":true,"api_error_status":500}`}, session.Failed, "transient"},
		{"has no result", []string{stateIs("idle")}, session.Cancelled, "cancelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			k.runs(order(1, ""))
			wantFrames(t, k.interrupts(), `t1.interrupt.0 {"request":{"cancel_queued":true,"subtype":"interrupt"}`)
			wantFrames(t, k.interrupts(), "t1.interrupt.1 ")
			k.says(test.lines...)
			k.wantEnd(test.outcome, test.code, "")
			wantFrames(t, k.interrupts())
		})
	}
}

// What it has begun in the background is ended with it.
func TestInterrupt_EndsTasks(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.say(`{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1","task_type":"local_bash"},{"task_id":"a1","task_type":"local_agent"}]}`)
	wantFrames(t, k.interrupts(), `"interrupt"`, `"stop_task","task_id":"b1"`, `"stop_task","task_id":"a1"`)
}

// What becomes of a prompt that is not worked on is told beside any turn.
func TestFate(t *testing.T) {
	for _, test := range []struct {
		how     string
		stop    bool
		outcome session.Outcome
		code    string
	}{
		{"cancelled", true, session.Cancelled, "cancelled"},
		{"refused", false, session.Failed, "protocol"},
		{"discarded", false, session.Failed, "protocol"},
	} {
		k := newTalk(t)
		k.begin(order(1, ""))
		k.greets("")
		k.says(stateIs("running"), fateOf(k.promptID(), "queued"))
		if test.stop {
			k.interrupts()
		}
		k.say(fateOf("another", test.how))
		k.wantOn()
		k.say(fateOf(k.promptID(), test.how))
		k.wantEnd(test.outcome, test.code, "")
	}
}

// A turn of the agent's own says and costs what it does in its own name.
func TestOwnTurn(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.message("A", "hello")
	k.says(fateOf(k.promptID(), "completed"), results("success", ""), stateIs("idle"))
	k.say(`{"type":"system","subtype":"task_notification","task_id":"b","summary":"it is done"}`)
	k.says(stateIs("running"), k.inits())
	k.message("B", "by itself")
	k.begin(order(2, ""))
	k.says(results("success", `,"usage":{"input_tokens":5}`), stateIs("idle"))
	if a := k.About(); a.End != nil || a.Message != "" || a.Begun || a.Usage.InputTokens != 0 || a.Prompt == "" {
		t.Errorf("%+v", a)
	}
	k.wantTold("agent_turn_started", `{"reason":"it is done"}`)
	k.wantTold("agent_turn_chunk", `{"content":{"type":"text","text":"by itself"},"messageId":"B"}`)
	k.wantTold("agent_turn_ended", `{"code":"","message":"","outcome":"completed","usage":{"inputTokens":5}}`)
	k.works()
	k.message("C", "second")
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); a.Message != "C" {
		t.Errorf("%+v", a)
	}
}

// A prompt and a turn of the agent's own cross: the turn takes it in, and is ours then.
func TestOwnTurn_TakesThePromptIn(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	k.greets("")
	k.says(stateIs("running"), fateOf(k.promptID(), "queued"), k.inits())
	if a := k.About(); a.Confirmed {
		t.Errorf("%+v", a)
	}
	k.message("A", "its own")
	k.say(replay(k.promptID()))
	k.message("B", "ours")
	k.say(results("success", `,"user_message_uuids":["`+k.promptID()+`"]`))
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); !a.Confirmed || a.Message != "B" || k.text("A") != "" || k.text("B") != "ours" {
		t.Errorf("%+v", a)
	}
}

// An older version names no messages: a turn that comes while a prompt is out is the prompt's.
func TestTurn_Unnamed(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	k.greets("")
	k.say(k.inits())
	if a := k.About(); !a.Confirmed {
		t.Errorf("%+v", a)
	}
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
	wantFrames(t, k.begin(order(2, "")), `"type":"user"`) // it never says whether it is idle
}

// Agents that were started answer in turns that follow: the turn is over when they are.
func TestTurn_WaitsForAgents(t *testing.T) {
	const agents = `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a1","task_type":"local_agent"}]}`
	const commands = `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1","task_type":"local_bash"}]}`
	k := newTalk(t)
	k.runs(order(1, ""))
	k.message("A", "started")
	k.says(agents, results("success", ""))
	k.wantOn()
	if a := k.About(); a.Open != 1 {
		t.Errorf("%+v", a)
	}
	k.says(commands, k.inits())
	k.message("B", "found")
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); a.Message != "B" || a.Open != 0 || len(k.told("agent_turn_started")) > 0 {
		t.Errorf("%+v", a)
	}

	k = newTalk(t)
	k.runs(order(1, ""))
	k.says(agents, results("success", ""))
	k.interrupts()
	k.say(stateIs("idle"))
	k.wantEnd(session.Cancelled, "cancelled", "")
}

// That the answer has no end counts, whatever the result says.
func TestVerdict_CutOff(t *testing.T) {
	start := `{"type":"stream_event","event":{"type":"message_start","message":{"id":"A"}}}`
	stop := `{"type":"stream_event","event":{"type":"message_stop"}}`
	delta := `{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":null}}}`
	for name, lines := range map[string][]string{"no end": {start}, "no reason": {start, delta, stop}} {
		k := newTalk(t)
		k.runs(order(1, ""))
		k.says(append(lines, results("success", ""))...)
		if k.wantEnd(session.Failed, "transient", "cut off"); t.Failed() {
			t.Error(name)
		}
	}
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(start, `{"type":"assistant","message":{"id":"B","content":[{"type":"text","text":"whole"}]}}`, results("success", ""))
	k.wantEnd(session.Completed, "", "")
	if k.text("B") != "whole" || k.About().Message != "B" {
		t.Errorf("%+v", k.About())
	}
	k.say(stateIs("idle"))
	k.runs(order(2, ""))
	k.say(results("success", "")) // a command of its own has no message
	k.wantEnd(session.Completed, "", "")
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		line    string
		outcome session.Outcome
		code    string
	}{
		{results("error_max_turns", ""), session.Budget, "budget"},
		{results("error_max_budget_usd", ""), session.Budget, "budget"},
		{results("error_during_execution", `,"errors":["it broke"]`), session.Failed, ""},
		{`{"type":"result","subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","api_error_status":400}`, session.Failed, "config"},
		{`{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed"}`, session.Failed, "transient"},
	} {
		k := newTalk(t)
		k.runs(order(1, ""))
		k.say(test.line)
		k.wantEnd(test.outcome, test.code, "")
	}
}

func TestCause(t *testing.T) {
	for _, test := range []struct {
		status int
		name   string
		want   string
	}{
		{401, "", "auth"}, {403, "", "auth"}, {429, "", "capacity"}, {529, "overloaded_error", "capacity"}, {500, "", "transient"},
		{503, "", "transient"}, {408, "", "transient"}, {404, "", "config"}, {413, "", "config"}, {402, "", "config"}, {400, "", ""},
		{0, "authentication_failed", "auth"}, {0, "rate_limit", "capacity"}, {0, "server_error", "transient"}, {0, "model_not_found", "config"},
		{0, "max_output_tokens", ""}, {0, "", ""},
	} {
		if got := cause(test.status, test.name); got != test.want {
			t.Errorf("%d %q: %q, want %q", test.status, test.name, got, test.want)
		}
	}
}

// What the agent says in the model's place is no answer, and says what the result does not.
func TestSaid_Faults(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.say(`{"type":"assistant","message":{"id":"A","model":"<synthetic>","content":[{"type":"text","text":"Not logged in"}]},"error":"authentication_failed"}`)
	k.say(`{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}`)
	k.wantEnd(session.Failed, "auth", "Not logged in")
	if a := k.About(); a.Begun || a.Message != "" {
		t.Errorf("%+v", a)
	}
}

func TestRetries(t *testing.T) {
	retry := func(n, status string) string {
		return `{"type":"system","subtype":"api_retry","attempt":` + n + `,"max_retries":10,"error_status":` + status + `,"error":"unknown"}`
	}
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(retry("1", "null"), retry("2", "500"))
	if a := k.About(); a.Trouble == "" || a.Begun {
		t.Errorf("%+v", a)
	}
	k.wantTold("agent_notice",
		`{"cause":"transient","message":"the model cannot be reached; Claude Code tries it again, 1 of 10","willRetry":true}`,
		`{"cause":"transient","message":"the model's server answered 500; Claude Code tries it again, 2 of 10","willRetry":true}`)
	if k.message("A", "hello"); k.About().Trouble != "" {
		t.Errorf("%+v", k.About())
	}
	wantFrames(t, k.says(retry("1", "401"), retry("2", "401")))
	wantFrames(t, k.say(retry("3", "401")), `"subtype":"interrupt"`)
	wantFrames(t, k.say(retry("4", "401")))
	k.say(results("error_during_execution", ""))
	k.wantEnd(session.Failed, "auth", "401")
}

func TestUsage(t *testing.T) {
	const models = `,"total_cost_usd":7,"usage":{"input_tokens":1},"model_usage_since_last_result":{"a":{"inputTokens":60,"cacheReadInputTokens":30,"cacheCreationInputTokens":10,"outputTokens":10,"costUSD":0.5},"b":{"inputTokens":3,"costUSD":0.25}}`
	older := func(total string) string {
		return `,"total_cost_usd":` + total + `,"usage":{"input_tokens":60,"cache_read_input_tokens":30,"cache_creation_input_tokens":10,"output_tokens":10}`
	}
	usd := func(x float64) *float64 { return &x }
	for _, test := range []struct {
		name         string
		conversation string
		results      []string
		want         []providers.Usage
	}{
		{"by its models", "", []string{models}, []providers.Usage{{InputTokens: 103, OutputTokens: 10, CachedTokens: 30, USD: usd(0.75)}}},
		{"by what it grew", "", []string{older("1"), older("1.5")}, []providers.Usage{
			{InputTokens: 100, OutputTokens: 10, CachedTokens: 30, USD: usd(1)}, {InputTokens: 100, OutputTokens: 10, CachedTokens: 30, USD: usd(0.5)},
		}},
		{"by what it grew, of one that goes on", "C", []string{older("1"), older("1.5")}, []providers.Usage{
			{InputTokens: 100, OutputTokens: 10, CachedTokens: 30}, {InputTokens: 100, OutputTokens: 10, CachedTokens: 30, USD: usd(0.5)},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			for i, result := range test.results {
				o := order(i+1, "")
				o.Conversation = test.conversation
				k.runs(o)
				k.message("A", "hello")
				if u := k.About().Usage; u.InputTokens != 100 || u.OutputTokens != 10 || u.CachedTokens != 30 {
					t.Errorf("on the way it is %+v", u)
				}
				k.says(results("success", result), stateIs("idle"))
				got, want := k.About().Usage, test.want[i]
				if got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens || got.CachedTokens != want.CachedTokens ||
					(got.USD == nil) != (want.USD == nil) || got.USD != nil && *got.USD != *want.USD {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}
