package pi

import (
	"fmt"
	"testing"

	"github.com/pintle/pintle/internal/session"
)

func uses(id, tool, input string) string {
	return fmt.Sprintf(`{"type":"tool_execution_start","toolCallId":%q,"toolName":%q,"args":%s}`, id, tool, input)
}

// came is what came out of a tool by now, all of it.
func came(id, text string) string {
	return fmt.Sprintf(`{"type":"tool_execution_update","toolCallId":%q,"partialResult":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

// done is the end of a tool; more begins with a comma.
func done(id, text, more string) string {
	return fmt.Sprintf(`{"type":"tool_execution_end","toolCallId":%q,"toolName":"bash","result":{"content":[{"type":"text","text":%q}]}%s}`, id, text, more)
}

func TestTools(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(uses("T", "bash", `{"command":"ls"}`), uses("T", "bash", `{"command":"ls"}`), uses("U", "read", `{"path":"a"}`))
	if a := k.About(); a.Open != 2 || !a.Begun {
		t.Errorf("%+v", a)
	}
	k.says(done("T", "b", `,"durationMs":1`), done("U", "no", `,"isError":true`), done("V", "of nothing", ""))
	k.wantTold("tool_call",
		`{"kind":"execute","rawInput":{"command":"ls"},"status":"in_progress","title":"ls","toolCallId":"T"}`,
		`{"kind":"read","locations":[{"path":"/dir/a"}],"rawInput":{"path":"a"},"status":"in_progress","title":"read a","toolCallId":"U"}`)
	k.wantTold("tool_call_update",
		`{"rawOutput":{"output":"b"},"status":"completed","toolCallId":"T"}`,
		`{"rawOutput":{"output":"no"},"status":"failed","toolCallId":"U"}`)
	if a := k.About(); a.Open != 0 {
		t.Errorf("%+v", a)
	}
}

// pi tells all that came out again and again: what is new of it is told. Of what is long it tells the end only, of which nothing
// is told before the tool ends.
func TestTools_Output(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(uses("T", "bash", `{"command":"ls"}`), came("T", "a\n"), came("T", "a\n"), came("T", "a\nb\n"), came("T", "b\nc\nd\n"))
	piece := func(text string) string {
		return `{"content":[{"content":{"type":"text","text":"` + text + `"},"type":"content"}],"status":"in_progress","toolCallId":"T"}`
	}
	k.wantTold("tool_call_update", piece(`a\n`), piece(`b\n`))
	k.say(`{"type":"tool_execution_end","toolCallId":"T","toolName":"bash","result":{"content":[],"structuredContent":{"output":"all","exit_code":3}}}`)
	if got := k.told("tool_call_update"); got[2] != `{"rawOutput":{"exitCode":3,"output":"all"},"status":"completed","toolCallId":"T"}` {
		t.Error(got[2])
	}
}

// What is open at the turn's end is not told the end of.
func TestTools_Settle(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(uses("T", "bash", `{"command":"ls"}`), ended("aborted", ""), breaksOff)
	k.wantTold("tool_call_update", `{"status":"failed","toolCallId":"T"}`)
	if a := k.About(); a.Open != 0 {
		t.Errorf("%+v", a)
	}
}

// Held to asking, pi must not use a tool that was not asked for.
func TestTools_Unasked(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, "none"))
	k.says(uses("T", "bash", `{"command":"ls"}`))
	wantFrames(t, k.say(done("T", "", `,"isError":true`))) // it was refused by another extension: it was not used
	k.wantOn()
	k.say(uses("U", "bash", `{"command":"ls"}`))
	wantFrames(t, k.say(done("U", "", `,"durationMs":1`)), "clear_queue", "abort")
	k.say(breaksOff)
	k.wantEnd(session.Failed, "config", "pi used bash without asking")
}

func TestDeed(t *testing.T) {
	for _, test := range []struct{ tool, input, title, kind, path string }{
		{"bash", `{"command":"ls -l"}`, "ls -l", "execute", ""},
		{"bash", `{"command":5}`, "bash", "execute", ""},
		{"read", `{"path":"a/../b"}`, "read b", "read", "/dir/b"},
		{"write", `{"path":"/etc/x"}`, "write /etc/x", "edit", "/etc/x"},
		{"edit", `{"path":"~/x"}`, "edit ~/x", "edit", "~/x"},
		{"grep", `{"pattern":"x","path":"/e"}`, "search for x", "search", "/e"},
		{"ls", `{}`, "search for files", "search", ""},
		{"tool_search", `{"query":"q"}`, "use tool_search", "think", ""},
		{"codemode", `{"code":"1"}`, "run a script: 1", "other", ""},
		{"mcp__probe__write", `{}`, "call write of the MCP server probe", "other", ""},
		{"mcp__probe", `{}`, "use mcp__probe", "other", ""},
		{"unheard", `null`, "use unheard", "other", ""},
	} {
		k := newTalk(t)
		k.Order = order(1, "")
		if d := k.deed(test.tool, []byte(test.input)); d.title != test.title || d.kind != test.kind || d.path != test.path {
			t.Errorf("%s %s: %+v", test.tool, test.input, d)
		}
	}
}
