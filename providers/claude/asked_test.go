package claude

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// wants is a request for the use of a tool.
func wants(id, tool, input, more string) string {
	return `{"type":"control_request","request_id":"` + id + `","request":{"subtype":"can_use_tool","tool_name":"` + tool + `","input":` + input + `,"tool_use_id":"T"` + more + `}}`
}

func TestAsked_Answers(t *testing.T) {
	for _, test := range []struct {
		decision providers.Decision
		frames   []string
	}{
		{providers.Allow, []string{`{"response":{"request_id":"q1","response":{"behavior":"allow"},"subtype":"success"},"type":"control_response"}`}},
		{providers.Deny, []string{`{"response":{"request_id":"q1","response":{"behavior":"deny","message":`}},
		{providers.Fail, []string{`"interrupt":true`, `"subtype":"interrupt"`}},
	} {
		k := newTalk(t)
		k.runs(order(1, "none"))
		k.says(wants("q1", "Bash", `{"command":"ls"}`, `,"decision_reason":"why"`), wants("q1", "Bash", `{"command":"ls"}`, ""))
		a := k.About()
		if len(a.Pending) != 1 || !a.Begun || !strings.HasPrefix(a.Pending[0].ID, "p-") || a.Pending[0].Reason != "why" {
			t.Fatalf("%+v", a)
		}
		id := a.Pending[0].ID
		k.wantTold("permission_requested", `{"options":["allow","deny"],"permission":"`+id+`","reason":"why","toolCall":{"kind":"execute","rawInput":{"command":"ls"},"title":"to run ls","toolCallId":"T"}}`)
		wantFrames(t, k.answers(id, test.decision), test.frames...)
		wantFrames(t, k.answers(id, providers.Allow))
		k.say(results("error_during_execution", ""))
		if test.decision == providers.Fail {
			k.wantEnd(session.Denied, "", "it asked to run ls, and nobody was there to allow it")
		}
		k.wantTold("permission_resolved")
	}
}

// What is asked by ourselves has no reason of the agent's.
func TestAsked_OwnReason(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, "none"))
	k.say(wants("q1", "Bash", `{"command":"ls"}`, `,"decision_reason":"`+asks+`"`))
	if p := k.About().Pending; len(p) != 1 || p[0].Reason != "" {
		t.Errorf("%+v", p)
	}
}

func TestAsked_WhatIsAsked(t *testing.T) {
	for _, test := range []struct {
		tool, input string
		want        providers.Permission
	}{
		{"Bash", `{"command":"ls -l"}`, providers.Permission{Title: "to run ls -l", Kind: "execute", Command: "ls -l"}},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, providers.Permission{Title: "to run ls", Kind: "execute"}},
		{"Bash", `{"command":5}`, providers.Permission{Title: "to run Bash", Kind: "execute"}},
		{"Monitor", `{"command":"tail x"}`, providers.Permission{Title: "to run tail x", Kind: "execute", Command: "tail x"}},
		{"Read", `{"file_path":"/dir/a/b.txt"}`, providers.Permission{Title: "to read a/b.txt", Kind: "read", Paths: []string{"/dir/a/b.txt"}}},
		{"Read", `{"file_path":"/etc/passwd"}`, providers.Permission{Title: "to read /etc/passwd", Kind: "read", Paths: []string{"/etc/passwd"}}},
		{"Write", `{"file_path":"/dir/a","content":"c"}`, providers.Permission{Title: "to write a", Kind: "edit", Paths: []string{"/dir/a"}}},
		{"Edit", `{"file_path":"/dir/a"}`, providers.Permission{Title: "to edit a", Kind: "edit", Paths: []string{"/dir/a"}}},
		{"NotebookEdit", `{"notebook_path":"/dir/a"}`, providers.Permission{Title: "to edit a", Kind: "edit", Paths: []string{"/dir/a"}}},
		{"Edit", `{}`, providers.Permission{Title: "to use Edit", Kind: "edit"}},
		{"Grep", `{"pattern":"x","path":"/e"}`, providers.Permission{Title: "to search for x", Kind: "search", Paths: []string{"/e"}}},
		{"Glob", `{"pattern":"*"}`, providers.Permission{Title: "to search for *", Kind: "search", Paths: []string{"/dir"}}},
		{"WebFetch", `{"url":"http://x"}`, providers.Permission{Title: "to fetch http://x", Kind: "fetch"}},
		{"WebSearch", `{"query":"q"}`, providers.Permission{Title: "to fetch q", Kind: "fetch"}},
		{"Agent", `{"description":"d"}`, providers.Permission{Title: "to start an agent: d", Kind: "think"}},
		{"TodoWrite", `{"todos":[]}`, providers.Permission{Title: "to use TodoWrite", Kind: "think"}},
		{"Skill", `{"skill":"s"}`, providers.Permission{Title: "to use the skill s", Kind: "other"}},
		{"mcp__probe__write", `{}`, providers.Permission{Title: "to call write of the MCP server probe", Kind: "other"}},
		{"Unheard", `{}`, providers.Permission{Title: "to use Unheard", Kind: "other"}},
	} {
		k := newTalk(t)
		k.runs(order(1, "none"))
		k.say(wants("q1", test.tool, test.input, ""))
		got := k.About().Pending
		if len(got) != 1 {
			t.Errorf("%s: %+v", test.tool, got)
			continue
		}
		test.want.ID, test.want.ToolCall, test.want.Tool = got[0].ID, "T", test.tool
		if diff := cmp.Diff(test.want, got[0]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.tool, diff)
		}
	}
}

// Told to allow everything, the fold allows it without a word. What is a question to a person is refused all the same, but
// for a plan, which is a part of everything.
func TestAsked_EverythingIsAllowed(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, "all"))
	wantFrames(t, k.say(wants("q1", "Bash", `{"command":"ls"}`, "")), `"behavior":"allow"`)
	wantFrames(t, k.say(wants("q2", "ExitPlanMode", `{}`, `,"requires_user_interaction":true`)), `"behavior":"allow"`)
	wantFrames(t, k.say(wants("q3", "AskUserQuestion", `{"questions":[{"question":"Which?"}]}`, `,"requires_user_interaction":true`)), `"behavior":"deny"`)
	k.wantTold("agent_notice", `{"message":"Claude Code asked a question: Which?, which cannot be answered here"}`)
	k.wantTold("permission_requested")
	k.say(results("success", ""))
	wantFrames(t, k.say(wants("q4", "Bash", `{"command":"ls"}`, "")), `"behavior":"deny"`) // what was allowed ends with the turn
}

func TestAsked_NoYesOrNo(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, "none"))
	for _, tool := range []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} {
		wantFrames(t, k.say(wants("q"+tool, tool, `{}`, "")), `"behavior":"deny"`)
	}
	wantFrames(t, k.say(wants("q1", "Unheard", `{}`, `,"requires_user_interaction":true`)), `"behavior":"deny"`)
	wantFrames(t, k.say(`{"type":"control_request","request_id":"q2","request":{"subtype":"elicitation","mcp_server_name":"probe","message":"m"}}`), `"action":"decline"`)
	wantFrames(t, k.say(`{"type":"control_request","request_id":"q3","request":{"subtype":"unheard"}}`), `"subtype":"error"`)
	if n := len(k.told("agent_notice")); n != 5 || len(k.About().Pending) > 0 {
		t.Errorf("%q", k.told("agent_notice"))
	}
}

// The hook has each use of a tool be asked for; one that was registered and is not wanted any more decides nothing.
func TestHooked(t *testing.T) {
	const call = `{"type":"control_request","request_id":"q1","request":{"subtype":"hook_callback","callback_id":"gate","input":{"tool_name":"Read"},"tool_use_id":"T"}}`
	k := newTalk(t)
	k.runs(order(1, "reads"))
	wantFrames(t, k.say(call), `{"response":{"request_id":"q1","response":{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"`)
	k = newTalk(t)
	k.runs(order(1, ""))
	wantFrames(t, k.say(call), `{"response":{"request_id":"q1","response":{},"subtype":"success"}`)
}

func TestAsked_Lapses(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, "none"))
	k.says(wants("q1", "Bash", `{"command":"a"}`, ""), wants("q2", "Bash", `{"command":"b"}`, ""))
	first, second := k.About().Pending[0].ID, k.About().Pending[1].ID
	k.say(`{"type":"control_cancel_request","request_id":"q1"}`)
	k.say(results("success", ""))
	k.wantTold("permission_resolved", `{"decision":"lapsed","permission":"`+first+`"}`, `{"decision":"lapsed","permission":"`+second+`"}`)
	wantFrames(t, k.answers(first, providers.Allow))
}

// Outside of a turn nobody is asked.
func TestAsked_OutsideOfATurn(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(results("success", ""), stateIs("idle"), k.inits())
	wantFrames(t, k.say(wants("q1", "Bash", `{"command":"ls"}`, "")), `"behavior":"deny"`)
	k.begin(order(2, "all"))
	wantFrames(t, k.say(wants("q2", "Bash", `{"command":"ls"}`, "")), `"behavior":"deny"`)
	if n := len(k.told("agent_notice")); n != 2 {
		t.Errorf("%q", k.told("agent_notice"))
	}
}
