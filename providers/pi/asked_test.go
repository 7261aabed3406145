package pi

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// wants is our extension's question. more begins with a comma, or is "".
func wants(id, tool, input, more string) string {
	title, _ := json.Marshal(`{"pintle":"tool_call","call":"T","tool":"` + tool + `","builtin":true,"input":` + input + more + `}`)
	return `{"type":"extension_ui_request","id":"` + id + `","method":"select","title":` + string(title) + `,"options":["allow","deny"]}`
}

// theirs is another extension's.
func theirs(id, method, more string) string {
	return fmt.Sprintf(`{"type":"extension_ui_request","id":%q,"method":%q%s}`, id, method, more)
}

func TestAsked_Answers(t *testing.T) {
	for _, test := range []struct {
		decision providers.Decision
		frames   []string
	}{
		{providers.Allow, []string{`{"id":"q1","type":"extension_ui_response","value":"allow"}`}},
		{providers.Deny, []string{`{"id":"q1","type":"extension_ui_response","value":"deny"}`}},
		{providers.Fail, []string{"clear_queue", `"type":"abort"`, `"value":"deny"`}},
	} {
		k := newTalk(t)
		k.works(order(1, "none"))
		k.says(wants("q1", "bash", `{"command":"ls"}`, ""), wants("q1", "bash", `{"command":"ls"}`, ""))
		a := k.About()
		if len(a.Pending) != 1 || !a.Begun {
			t.Fatalf("%+v", a)
		}
		id := a.Pending[0].ID
		k.wantTold("permission_requested", `{"options":["allow","deny"],"permission":"`+id+`","reason":"","toolCall":{"kind":"execute","title":"to run ls","toolCallId":"T"}}`)
		wantFrames(t, k.answers(id, test.decision), test.frames...)
		wantFrames(t, k.answers(id, providers.Allow))
		if test.decision == providers.Fail {
			k.says(ended("aborted", ""), breaksOff)
			k.wantEnd(session.Denied, "", "it asked to run ls, and nobody was there to allow it")
		}
		k.wantTold("permission_resolved")
	}
}

func TestAsked_WhatIsAsked(t *testing.T) {
	for _, test := range []struct {
		tool, input, more string
		want              providers.Permission
	}{
		{"bash", `{"command":"ls -l"}`, "", providers.Permission{Title: "to run ls -l", Kind: "execute", Command: "ls -l"}},
		{"bash", `{"command":5}`, "", providers.Permission{Title: "to run bash", Kind: "execute"}},
		{"read", `{"path":"a"}`, `,"paths":["/dir/a","/dir/b"]`, providers.Permission{Title: "to read a", Kind: "read", Paths: []string{"/dir/a", "/dir/b"}}},
		{"write", `{"path":"/etc/x"}`, `,"paths":["/etc/x"]`, providers.Permission{Title: "to write /etc/x", Kind: "edit", Paths: []string{"/etc/x"}}},
		{"grep", `{"pattern":"x"}`, `,"paths":["/dir"]`, providers.Permission{Title: "to search for x", Kind: "search", Paths: []string{"/dir"}}},
		{"read", `{"path":"a"}`, `,"builtin":false`, providers.Permission{Title: "to read a", Kind: "other"}},
		{"mine", `{}`, `,"builtin":false`, providers.Permission{Title: "to use mine", Kind: "other"}},
	} {
		k := newTalk(t)
		k.works(order(1, "none"))
		k.say(wants("q1", test.tool, test.input, test.more))
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

// Told to allow everything, or nothing in particular, the fold allows at once what our extension asks: an earlier turn of the
// process was to ask.
func TestAsked_EverythingIsAllowed(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, "none"))
	k.says(ended("stop", ""), settles)
	for n, approve := range []string{"all", ""} {
		k.works(order(n+2, approve))
		wantFrames(t, k.say(wants("q1", "bash", `{"command":"ls"}`, "")), `"value":"allow"`)
		k.says(ended("stop", ""), settles)
	}
	k.works(order(4, "reads"))
	wantFrames(t, k.say(wants("q1", "bash", `{"command":"ls"}`, "")))
	k.wantTold("permission_requested", k.told("permission_requested")[0])
}

// What another extension asks is asked if it can be answered by yes or no; nobody waits for the rest.
func TestAsked_ByOthers(t *testing.T) {
	for name, test := range map[string]struct {
		line, title, yes, no string
	}{
		"confirm":        {theirs("q", "confirm", `,"title":"Sure?","message":"It is far."`), `"Sure? It is far."`, `"confirmed":true`, `"confirmed":false`},
		"select":         {theirs("q", "select", `,"title":"Really?","options":["No, thanks","Yes"]`), `"Really?"`, `"value":"Yes"`, `"value":"No, thanks"`},
		"another choice": {theirs("q", "select", `,"title":"Which?","options":["a","b"]`), "", "", ""},
		"no choice":      {theirs("q", "select", `,"title":"Which?","options":["yes","ok"]`), "", "", ""},
		"a text":         {theirs("q", "input", `,"title":"Why?"`), "", "", ""},
		"unheard":        {theirs("q", "dance", ""), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for decision, want := range map[providers.Decision]string{providers.Allow: test.yes, providers.Deny: test.no} {
				k := newTalk(t)
				k.works(order(1, ""))
				frames := k.say(test.line)
				if test.title == "" {
					wantFrames(t, frames, `{"cancelled":true,"id":"q","type":"extension_ui_response"}`)
					continue
				}
				p := k.About().Pending
				if wantFrames(t, frames); len(p) != 1 || p[0].Title != test.title || p[0].Kind != "other" {
					t.Fatalf("%+v", p)
				}
				wantFrames(t, k.answers(p[0].ID, decision), want)
			}
		})
	}
	k := newTalk(t)
	k.works(order(1, "all"))
	wantFrames(t, k.say(theirs("q", "confirm", `,"title":"Sure?"`)), `"confirmed":true`)
	wantFrames(t, k.says(theirs("n", "notify", `,"message":"look"`), theirs("w", "setWidget", ""), theirs("s", "setStatus", `,"statusKey":"theirs"`)))
	k.wantTold("agent_notice", `{"message":"look"}`)
}

// Outside of a turn nobody is asked.
func TestAsked_OutsideOfATurn(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, "all"))
	wantFrames(t, k.say(theirs("q", "confirm", `,"title":"Sure?"`)), `"confirmed":false`)
	k.opens(order(1, "all"))
	k.says(answer("prompt/t1", started), runs, user("x"), ended("stop", ""), settles)
	wantFrames(t, k.say(wants("q1", "bash", `{"command":"ls"}`, "")), `"value":"deny"`)
	if n := len(k.told("agent_notice")); n != 2 {
		t.Errorf("%q", k.told("agent_notice"))
	}
}

// What is asked when the turn ends lapses, and an extension is not left to wait.
func TestAsked_Lapses(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, "none"))
	k.says(wants("q1", "bash", `{"command":"a"}`, ""), ended("stop", ""))
	id := k.About().Pending[0].ID
	wantFrames(t, k.say(settles), `"cancelled":true,"id":"q1"`)
	k.wantTold("permission_resolved", `{"decision":"lapsed","permission":"`+id+`"}`)
	wantFrames(t, k.answers(id, providers.Allow))

	k.works(order(2, "none"))
	k.say(wants("q2", "bash", `{"command":"a"}`, ""))
	wantFrames(t, k.interrupts(), "clear_queue", "abort", `"cancelled":true,"id":"q2"`)
	wantFrames(t, k.say(wants("q3", "bash", `{"command":"b"}`, "")), `"cancelled":true,"id":"q3"`)
	wantFrames(t, k.says(ended("aborted", ""), breaksOff))
	k.wantEnd(session.Cancelled, "cancelled", "")
}

// More than anybody could answer is refused.
func TestAsked_TooMuch(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, "none"))
	refused := 0
	for n := range wire.Most + 2 {
		refused += len(k.say(wants(fmt.Sprint("q", n), "bash", `{"command":"a"}`, "")))
	}
	if a := k.About(); len(a.Pending) != wire.Most || refused != 2 {
		t.Errorf("%d pending, %d refused", len(a.Pending), refused)
	}
}
