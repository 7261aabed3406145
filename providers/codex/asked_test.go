package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// asks has the server ask in the turn U of a thread that runs.
func asks(t *testing.T, method, params string) *talk {
	t.Helper()
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.say(fmt.Sprintf(`{"id":7,"method":%q,"params":{"threadId":"T","turnId":"U",%s}}`, method, params))
	return k
}

const mcpTool = `"serverName":"s","mode":"form","message":"Allow?","_meta":{"codex_approval_kind":"mcp_tool_call","tool_name":"w"},"requestedSchema":{"type":"object","properties":{}}`

func TestAsked_EachKindInItsOwnWords(t *testing.T) {
	for name, test := range map[string]struct{ method, params, title, kind, allow, deny, fail string }{
		"command": {
			"item/commandExecution/requestApproval", `"itemId":"c","command":"rm x","reason":"r"`, "to run rm x", "execute",
			`{"decision":"accept"}`, `{"decision":"decline"}`, `{"decision":"cancel"}`,
		},
		"host": {
			"item/commandExecution/requestApproval", `"itemId":"c","networkApprovalContext":{"host":"a.example","protocol":"https"}`, "to reach a.example by https", "execute",
			`{"decision":"accept"}`, `{"decision":"decline"}`, `{"decision":"cancel"}`,
		},
		"command with more": {
			"item/commandExecution/requestApproval", `"itemId":"c","command":"curl x","additionalPermissions":{"network":{"enabled":true},"fileSystem":null}`,
			"to run curl x with network", "execute", `{"decision":"accept"}`, `{"decision":"decline"}`, `{"decision":"cancel"}`,
		},
		"typing": {
			"item/commandExecution/requestApproval", `"itemId":"c","kind":"writeStdin","command":"sh"`, "to type into sh", "execute",
			`{"decision":"accept"}`, `{"decision":"decline"}`, `{"decision":"cancel"}`,
		},
		"files": {
			"item/fileChange/requestApproval", `"itemId":"f","grantRoot":"/x"`, "to change files, and from then on any under /x", "edit",
			`{"decision":"accept"}`, `{"decision":"decline"}`, `{"decision":"cancel"}`,
		},
		"permissions": {
			"item/permissions/requestApproval",
			`"itemId":"p","permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":["/w"],"entries":[{"path":{"type":"path","path":"/w"},"access":"write"}]}}`,
			"for more permissions: network, write /w", "other",
			`{"permissions":{"fileSystem":{"read":null,"write":["/w"],"entries":[{"path":{"type":"path","path":"/w"},"access":"write"}]},"network":{"enabled":true}},"scope":"turn"}`,
			`{"permissions":{},"scope":"turn"}`, `{"permissions":{},"scope":"turn"}`,
		},
		"mcp tool": {
			"mcpServer/elicitation/request", mcpTool, "to call w of the MCP server s", "other",
			`{"_meta":null,"action":"accept","content":{}}`, `{"_meta":null,"action":"decline","content":null}`, `{"_meta":null,"action":"cancel","content":null}`,
		},
		"mcp consent": {
			"mcpServer/elicitation/request", `"serverName":"s","mode":"form","message":"may I?","requestedSchema":{"type":"object","properties":{}}`,
			"on behalf of the MCP server s: may I?", "other",
			`{"_meta":null,"action":"accept","content":{}}`, `{"_meta":null,"action":"decline","content":null}`, `{"_meta":null,"action":"cancel","content":null}`,
		},
		"old command": {
			"execCommandApproval", `"conversationId":"T","callId":"c","command":["rm","x"]`, "to run rm x", "execute",
			`{"decision":"approved"}`, `{"decision":{"denied":{"rejection":"refused"}}}`, `{"decision":"abort"}`,
		},
		"old patch": {
			"applyPatchApproval", `"conversationId":"T","callId":"c","fileChanges":{"/dir/b":{},"/c":{}}`, "to change /c, b", "edit",
			`{"decision":"approved"}`, `{"decision":{"denied":{"rejection":"refused"}}}`, `{"decision":"abort"}`,
		},
	} {
		for d, want := range map[providers.Decision]string{providers.Allow: test.allow, providers.Deny: test.deny, providers.Fail: test.fail} {
			t.Run(name+" "+string(d), func(t *testing.T) {
				k := asks(t, test.method, test.params)
				pending := k.About().Pending
				if len(pending) != 1 || pending[0].Title != test.title || pending[0].Kind != test.kind {
					t.Fatalf("%+v", pending)
				}
				if told := k.told("permission_requested"); len(told) != 1 || !strings.Contains(told[0], `"options":["allow","deny"]`) {
					t.Errorf("%q", told)
				}
				frames := k.answers(pending[0].ID, d)
				wantFrames(t, frames[:1], fmt.Sprintf("t1.answer.%s.0 {\"id\":7,\"result\":%s}\n", pending[0].ID, want))
				wantFrames(t, k.answers(pending[0].ID, d))
				k.say(`{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":7}}`)
				k.wantTold("permission_resolved")
			})
		}
	}
}

// A refusal alone ends no turn, for what has no word for that.
func TestAsked_FailEndsTheTurn(t *testing.T) {
	k := asks(t, "mcpServer/elicitation/request", mcpTool)
	wantFrames(t, k.answers(k.About().Pending[0].ID, providers.Fail), `"cancel"`, `"turn/interrupt"`)
	k.ends("U", "interrupted")
	k.wantEnd(session.Denied, "", "it asked to call w of the MCP server s, and nobody was there to allow it")
}

func TestAsked_OfAStartedAgent(t *testing.T) {
	ask := func(k *talk) {
		k.say(`{"id":8,"method":"item/commandExecution/requestApproval","params":{"threadId":"S","turnId":"V","itemId":"c","command":"ls"}}`)
	}
	k := newTalk(t)
	k.opens()
	k.runs("U")
	ask(k)
	wantFrames(t, k.answers(k.About().Pending[0].ID, providers.Fail), `"cancel"`, `"turn/interrupt","params":{"threadId":"T","turnId":"U"}`)

	k = newTalk(t)
	k.opens()
	k.runs("U")
	ask(k)
	wantFrames(t, k.ends("U", "completed"), `"cancel"`)
	ask(k)
	if told := k.told("agent_notice"); len(told) != 1 || !strings.Contains(told[0], "to run ls outside of a turn") || len(k.About().Pending) != 0 {
		t.Errorf("%q", told)
	}
}

// What names no files is told by the item that it is about.
func TestAsked_ChangesAreNamed(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.notifies("item/started", "U", `"item":{"type":"fileChange","id":"f","changes":[{"path":"/dir/a.go"},{"path":"/etc/b"}]}`)
	k.say(`{"id":0,"method":"item/fileChange/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"f"}}`)
	if got := k.About().Pending[0].Title; got != "to change a.go, /etc/b" {
		t.Error(got)
	}
}

// The server says where symbolic links lead.
func TestAsked_ChangesAreNamedWhereALinkLeads(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	k.replies(greeting)
	k.replies(`{"thread":{"id":"T"},"cwd":"/real"}`)
	k.runs("U")
	k.notifies("item/started", "U", `"item":{"type":"fileChange","id":"f","changes":[{"path":"/real/a.go"},{"path":"/dir/b"}]}`)
	if told := k.told("tool_call")[0]; !strings.Contains(told, `"title":"change a.go, b"`) {
		t.Error(told)
	}
}

// Who is asked sees what would be changed, although the question does not say it.
func TestAsked_ChangesAreShown(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	long := strings.Repeat("x", 2*changesLimit)
	k.notifies("item/started", "U", `"item":{"type":"fileChange","id":"f","changes":[
		{"path":"/dir/a","kind":{"type":"update","move_path":"/dir/b"},"diff":"-x\n+y\n"},{"path":"/dir/c","kind":{"type":"add"},"diff":"`+long+`"},{"path":"/dir/d"}]}`)
	k.say(`{"id":0,"method":"item/fileChange/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"f"}}`)
	for _, kind := range []string{"tool_call", "permission_requested"} {
		told := strings.ReplaceAll(k.told(kind)[0], long[:changesLimit-33], "X")
		const want = `"rawInput":{"changes":[{"path":"/dir/a","kind":{"type":"update","move_path":"/dir/b"},"diff":"-x\n+y\n"},` +
			`{"path":"/dir/c","kind":{"type":"add"},"diff":"X","note":"65503 of 131072 bytes"}],"note":"1 of 3 files are left out"}`
		if !strings.Contains(told, want) {
			t.Errorf("%s %s", kind, told)
		}
	}
}

func TestAsked_OlderChangesAreShown(t *testing.T) {
	k := asks(t, "applyPatchApproval", `"conversationId":"T","callId":"c","fileChanges":{
		"/b":{"type":"update","unified_diff":"+y","move_path":null},"/a":{"type":"add","content":"x"}}`)
	const want = `"rawInput":{"changes":[{"path":"/a","kind":{"type":"add"},"diff":"x"},{"path":"/b","kind":{"type":"update"},"diff":"+y"}]}`
	if told := k.told("permission_requested")[0]; !strings.Contains(told, want) {
		t.Error(told)
	}
}

// However many calls are open, what is kept of their changes has a bound.
func TestAsked_KeptChangesHaveABound(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	for i := range 20 {
		k.notifies("item/started", "U", fmt.Sprintf(`"item":{"type":"fileChange","id":"f%d","changes":[{"path":"/a","diff":%q}]}`, i, strings.Repeat("x", changesLimit/2)))
	}
	if n := len(k.State()); n > 2*changesLimit {
		t.Errorf("a state of %d bytes", n)
	}
}

// What can be answered by neither yes nor no is refused at once, and told.
func TestAsked_TheRestIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ method, params, reply, notice string }{
		"question": {"item/tool/requestUserInput", `"questions":[{"id":"q","question":"which?"}]`, `"result":{"answers":{}}`, "a question: which?"},
		"form": {
			"mcpServer/elicitation/request", `"serverName":"s","mode":"form","message":"name?","requestedSchema":{"properties":{"name":{}}}`,
			`"action":"decline"`, "name?",
		},
		"page":      {"mcpServer/elicitation/request", `"serverName":"s","mode":"url","message":"go","url":"http://a.example/"`, `"action":"decline"`, "http://a.example/"},
		"tool":      {"item/tool/call", `"tool":"x","callId":"c"`, `"error":{"code":-32601`, "to call the tool x"},
		"sign in":   {"account/chatgptAuthTokens/refresh", `"reason":"r"`, `"error":{"code":-32601`, "account/chatgptAuthTokens/refresh"},
		"not known": {"item/never/heardOf", `"x":1`, `"error":{"code":-32601`, "item/never/heardOf"},
	} {
		t.Run(name, func(t *testing.T) {
			k := asks(t, test.method, test.params)
			wantFrames(t, k.frames[len(k.frames)-1:], test.reply)
			if told := k.told("agent_notice"); len(told) != 1 || !strings.Contains(told[0], test.notice) || len(k.About().Pending) != 0 {
				t.Errorf("%q", told)
			}
		})
	}
}

func TestAsked_Lapses(t *testing.T) {
	for name, lapse := range map[string]func(k *talk){
		"the server wants no answer": func(k *talk) {
			k.say(`{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":7}}`)
		},
		"the turn ends": func(k *talk) { k.ends("U", "interrupted") },
	} {
		t.Run(name, func(t *testing.T) {
			k := asks(t, "item/commandExecution/requestApproval", `"itemId":"c","command":"ls"`)
			id := k.About().Pending[0].ID
			lapse(k)
			k.say(`{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":7}}`)
			k.wantTold("permission_resolved", `{"decision":"lapsed","permission":"`+id+`"}`)
			wantFrames(t, k.answers(id, providers.Allow))
		})
	}
}

// Equal questions one after the other are two, said twice they are one.
func TestAsked_EachHasItsName(t *testing.T) {
	const again = `{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`
	k := asks(t, "item/commandExecution/requestApproval", `"itemId":"c","command":"ls"`)
	k.say(again)
	if n := len(k.About().Pending); n != 1 {
		t.Fatalf("%d pending", n)
	}
	first := k.About().Pending[0].ID
	k.answers(first, providers.Deny)
	k.say(again)
	second := k.About().Pending[0].ID
	if second == first {
		t.Error("the second has the name of the first")
	}
	k.answers(second, providers.Deny)
}

// The server's own id comes back as it was, whatever it is, from a fold that was written down too.
func TestAsked_TheIDComesBack(t *testing.T) {
	for _, id := range []string{`0`, `-1`, `"<&>"`, `"\u2028"`, `1e400`, `{"a":[1]}`} {
		k := newTalk(t)
		k.opens()
		k.runs("U")
		k.say(`{"id":` + id + `,"method":"item/commandExecution/requestApproval","params":{"itemId":"c","command":"ls"}}`)
		k.say(`{}`)
		wantFrames(t, k.answers(k.About().Pending[0].ID, providers.Allow), ` {"id":`+id+`,"result"`)
	}
}
