package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// What an option is chosen by is its kind.
func TestAsked_OptionsByKind(t *testing.T) {
	for _, tt := range []struct {
		decision providers.Decision
		want     string
	}{{providers.Allow, `"optionId":"a1"`}, {providers.Deny, `"optionId":"no"`}} {
		k := prompted(t, agent{}, providers.Order{Approve: "none"})
		k.hears(asksToRun)
		asked := k.fold.About().Pending
		if len(asked) != 1 || asked[0].Title != "to run ls -l" || asked[0].Kind != "execute" || asked[0].Command != "ls -l" {
			t.Fatalf("%+v", asked)
		}
		k.made(k.fold.Answer(asked[0].ID, tt.decision))
		k.said(tt.want, `"id":0`)
		if more := k.fold.Answer(asked[0].ID, providers.Allow); more != nil {
			t.Errorf("it is answered twice: %s", more[0].Data)
		}
	}
}

// With nobody there it is refused, and the turn ends as denied.
func TestCase14_AskedWithNobodyThere(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(asksToRun)
	k.made(k.fold.Answer(k.fold.About().Pending[0].ID, providers.Fail))
	k.said("session/cancel")
	if !strings.Contains(k.frames[len(k.frames)-2], `"optionId":"no"`) {
		t.Errorf("%q", k.frames)
	}
	k.hears(answerTo("prompt", `{"stopReason":"end_turn"}`))
	k.ended(session.Denied, "", "it asked to run ls -l, and nobody was there")
}

// One that ends its turn by itself when it is refused says so as a cancel.
func TestAsked_RefusedItEndsItsTurn(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(asksToRun)
	k.made(k.fold.Answer(k.fold.About().Pending[0].ID, providers.Deny))
	k.hears(answerTo("prompt", `{"stopReason":"cancelled"}`))
	k.ended(session.Denied, "", "was refused, and ended its turn")
}

// With everything allowed it is allowed at once, and nobody hears of it; with rules they decide.
func TestAsked_AllIsAllowedAtOnce(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{Approve: "all"})
	k.hears(asksToRun)
	k.said(`"optionId":"a1"`)
	if a := k.fold.About(); len(a.Pending) != 0 || k.count("permission_requested", "") != 0 {
		t.Errorf("%+v", a)
	}
	k = prompted(t, agent{}, providers.Order{Approve: "all", Policy: true})
	k.hears(asksToRun)
	if a := k.fold.About(); len(a.Pending) != 1 {
		t.Errorf("%+v", a)
	}
}

// What is asked about is known from the call, too.
func TestAsked_KnowsTheCall(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{Approve: "none"})
	k.hears(
		told(`"sessionUpdate":"tool_call","toolCallId":"c","name":"Edit","title":"Edit a","kind":"edit","status":"pending","locations":[{"path":"/dir/a"}]`),
		told(`"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"/dir/b","newText":"x"}]`),
		`{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}}`,
	)
	p := k.fold.About().Pending
	if len(p) != 1 || p[0].Tool != "Edit" || p[0].Kind != "edit" || strings.Join(p[0].Paths, " ") != "/dir/a /dir/b" || p[0].Title != "to edit a, b" {
		t.Fatalf("%+v", p)
	}
	k.made(k.fold.Answer(p[0].ID, providers.Allow)) // nothing is offered by which it could be allowed
	k.said(`"outcome":"cancelled"`)
}

// The agent may wait no longer for an answer. It is told that it gets none.
func TestAsked_Withdrawn(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(asksToRun)
	asked := k.fold.About().Pending[0].ID
	k.hears(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	if n := len(k.fold.About().Pending); n != 1 {
		t.Fatalf("%d pending, by the cancel of another one", n)
	}
	k.hears(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	k.said(`"id":0`, `-32800`)
	if a := k.fold.About(); len(a.Pending) != 0 || a.End != nil || k.count("permission_resolved", "lapsed") != 1 || k.fold.Answer(asked, providers.Allow) != nil {
		t.Errorf("%+v", a)
	}
}

// What was not offered to the agent is not there.
func TestAsked_OtherRequestsAreRefused(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	k.hears(`{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`)
	k.said(`"code":-32601`, `"id":5`)
	if n := k.count("agent_notice", "fs/read_text_file"); n != 1 {
		t.Errorf("%d notices", n)
	}
	k.hears(answerTo("prompt", `{"stopReason":"end_turn"}`), asksToRun)
	k.said(`"outcome":"cancelled"`) // outside of a turn
}

// What is asked is what would be done, and not what it is called. What cannot be told is a command of which nobody knows more.
func TestAsked_WhatWouldBeDone(t *testing.T) {
	long, paths := strings.Repeat(" ", 4100), strings.Repeat(`{"path":"/dir/x"},{"path":"/dir/y"},`, 2)
	for i := range 260 {
		paths += fmt.Sprintf(`{"path":"/etc/%d"},`, i)
	}
	for _, tt := range []struct{ before, call, kind, command, paths string }{
		{"", `"title":"ls","kind":"execute","rawInput":{"command":"git push` + long + `"}`, "execute", "", ""},
		{"", `"title":"ls","kind":"execute"`, "execute", "ls", ""},
		{"", `"title":"ls","kind":"execute","rawInput":{}`, "execute", "ls", ""},
		{"", `"title":"ls","kind":"execute","rawInput":{"other":1}`, "execute", "", ""},
		{"", `"title":"x","kind":"execute","rawInput":{"command":["git","push now"]}`, "execute", "git 'push now'", ""},
		{"", `"title":"x","kind":"execute","rawInput":{"command":["bash","-lc","it's","","a=b"]}`, "execute", `bash -lc 'it'\''s' '' a=b`, ""},
		{`"kind":"execute","rawInput":{"command":"ls"}`, `"rawInput":{"command":[1]}`, "execute", "", ""},
		{"", `"kind":"execute","rawInput":{"command":"git","args":["push"]}`, "execute", "", ""},
		{"", `"kind":"execute","rawInput":{"command":"git push","cmd":"ls"}`, "execute", "", ""},
		{"", `"kind":"execute","rawInput":{"command":"git push","COMMAND":"ls"}`, "execute", "git push", ""},
		{"", `"title":"x","rawInput":{"command":"git push"}`, "other", "git push", ""},
		{"", `"kind":"read","rawInput":{"command":"git push"},"locations":[{"path":"/dir/a"}]`, "read", "git push", "/dir/a"},
		{"", `"kind":"think","rawInput":{"command":7}`, "execute", "", ""},
		{`"kind":"edit","locations":[{"path":"/dir/a"}]`, `"locations":[` + strings.TrimSuffix(paths, ",") + `]`, "edit", "", ""},
		{`"kind":"edit","locations":[{"path":"/dir/a"}]`, `"locations":[{"path":"/` + strings.Repeat("x/", 2500) + `"}]`, "edit", "", ""},
		{`"kind":"edit","content":[{"type":"diff","path":"/etc/b"}]`, `"locations":[{"path":"/dir/a"}]`, "edit", "", "/dir/a /etc/b"},
		{"", `"kind":"edit","rawInput":{"file_path":"/etc/b"},"locations":[{"path":"/dir/a"}]`, "edit", "", "/dir/a /etc/b"},
	} {
		k := prompted(t, agent{}, providers.Order{Approve: "none"})
		if tt.before != "" {
			k.hears(told(`"sessionUpdate":"tool_call","toolCallId":"c","status":"pending",` + tt.before))
		}
		k.hears(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c",` + tt.call + `},"options":[]}}`)
		p := k.fold.About().Pending
		if len(p) != 1 || p[0].Kind != tt.kind || p[0].Command != tt.command || strings.Join(p[0].Paths, " ") != tt.paths {
			t.Errorf("%.100s: %.300s", tt.call, fmt.Sprintf("%+v", p))
		}
	}
}

// An agent that is held to asking is allowed nothing for good, and speaks for no other session.
func TestAsked_NothingForGood(t *testing.T) {
	question := func(session string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"` + session + `","toolCall":{"toolCallId":"c","title":"ls","kind":"execute"},
			"options":[{"optionId":"ever","kind":"allow_always"},{"optionId":"no","kind":"reject_once"}]}}`
	}
	k := prompted(t, agent{}, providers.Order{Approve: "none"})
	k.hears(strings.ReplaceAll(question("s"), "\n", " "))
	k.said(`"optionId":"no"`)
	k = prompted(t, agent{}, providers.Order{})
	k.hears(strings.ReplaceAll(question("s"), "\n", " "))
	k.made(k.fold.Answer(k.fold.About().Pending[0].ID, providers.Allow))
	k.said(`"optionId":"ever"`)
	k = prompted(t, agent{}, providers.Order{})
	k.hears(strings.ReplaceAll(question("other"), "\n", " "))
	k.said(`"outcome":"cancelled"`)
}
