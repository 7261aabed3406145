package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func shared(o providers.Order) providers.Order {
	o.Shared = true
	return o
}

// sharing comes to a turn U of thread T that runs in a server that is shared.
func sharing(t *testing.T) *talk {
	t.Helper()
	k := newTalk(t)
	k.begin(shared(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"}))
	k.replies(greeting)
	k.replies(`{"thread":{"id":"T"},"model":"m"}`)
	k.runs("U")
	return k
}

// other is a line about another session's thread.
func other(method, rest string) string {
	return fmt.Sprintf(`{"method":%q,"params":{"threadId":"O","turnId":"V",%s}}`, method, rest)
}

// siblings are lines of which a fold is to make nothing.
var siblings = []string{
	`{"id":"init/o1","result":{"userAgent":"pintle/9.0.0"}}`,
	`{"id":"thread/o1","result":{"thread":{"id":"O"}}}`,
	`{"id":"turn/o1","error":{"code":-32600,"message":"thread not found"}}`,
	`{"method":"thread/started","params":{"thread":{"id":"O","parentThreadId":null}}}`,
	other("turn/started", `"turn":{"id":"V","rootTurnId":"V"}`),
	other("item/started", `"item":{"type":"commandExecution","id":"c","command":"ls"}`),
	other("item/started", `"item":{"type":"collabAgentToolCall","id":"s","tool":"spawnAgent","receiverThreadIds":["P"]}`),
	other("item/agentMessage/delta", `"itemId":"m","delta":"theirs"`),
	other("item/reasoning/textDelta", `"itemId":"r","delta":"theirs"`),
	other("turn/plan/updated", `"plan":[{"step":"theirs","status":"pending"}]`),
	other("thread/tokenUsage/updated", `"tokenUsage":{"total":{"inputTokens":7}}`),
	other("error", `"error":{"message":"theirs"},"willRetry":false`),
	other("warning", `"message":"theirs"`),
	other("item/completed", `"item":{"type":"userMessage","id":"u","clientId":"op1"}`),
	`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"O","turnId":"V","itemId":"c","command":"ls"}}`,
	`{"id":8,"method":"item/tool/requestUserInput","params":{"threadId":"O","questions":[]}}`,
	`{"id":9,"method":"execCommandApproval","params":{"conversationId":"O","callId":"c","command":["ls"]}}`,
	other("serverRequest/resolved", `"requestId":0`),
	other("turn/completed", `"turn":{"id":"V","status":"failed"}`),
	other("thread/closed", `"x":0`),
	`{"method":"turn/completed","params":{"turn":{"id":"U","status":"completed"}}}`,
	`{"method":"turn/started","params":{"threadId":"P","turn":{"id":"W","rootTurnId":"V"}}}`,
}

func TestShare_ASiblingsLinesSayNothing(t *testing.T) {
	for name, come := range map[string]func(t *testing.T) *talk{
		"while it opens": func(t *testing.T) *talk {
			k := newTalk(t)
			k.begin(shared(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"}))
			return k
		},
		"in a turn": func(t *testing.T) *talk {
			k := sharing(t)
			k.steers("op1")
			k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`)
			return k
		},
		"between turns": func(t *testing.T) *talk {
			k := sharing(t)
			k.ends("U", "completed")
			return k
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := come(t)
			state, events := string(k.State()), len(k.events)
			for _, line := range siblings {
				wantFrames(t, k.say(line))
				if got := string(k.State()); got != state || len(k.events) != events {
					t.Fatalf("%s\n%s\n%s %+v", line, state, got, k.events[events:])
				}
			}
		})
	}
}

// What no thread is named for is asked of all: each refuses it, and the server hears the first.
func TestShare_AQuestionOfNoThreadIsRefused(t *testing.T) {
	wantFrames(t, sharing(t).say(`{"id":7,"method":"item/commandExecution/requestApproval","params":{"command":"ls"}}`), `"error"`)
}

func TestShare_StartedAgentsAreOurs(t *testing.T) {
	for name, line := range map[string]string{
		"by the turn that theirs goes back to": `{"method":"turn/started","params":{"threadId":"S","turn":{"id":"V","rootTurnId":"U"}}}`,
		"by the call": `{"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"collabAgentToolCall","id":"c",` +
			`"tool":"spawnAgent","status":"completed","senderThreadId":"T","receiverThreadIds":["S"]}}}`,
		"by its activity": `{"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"subAgentActivity","id":"c","kind":"started","agentThreadId":"S"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := sharing(t)
			k.say(line)
			k.say(`{"method":"turn/started","params":{"threadId":"S","turn":{"id":"V"}}}`)
			k.say(`{"method":"item/started","params":{"threadId":"S","turnId":"V","item":{"type":"commandExecution","id":"x","command":"ls"}}}`)
			if a := k.About(); a.Open != 1 || !a.Begun || !k.Owns("S") {
				t.Errorf("%+v", a)
			}
			wantFrames(t, k.interrupts(), `{"threadId":"T","turnId":"U"}`, `{"threadId":"S","turnId":"V"}`)
		})
	}
	k := sharing(t)
	k.notifies("item/completed", "U", `"item":{"type":"collabAgentToolCall","id":"c","tool":"sendInput","receiverThreadIds":["O"]}`)
	if k.Owns("O") {
		t.Error("who is written to is taken for one of ours")
	}
}

func TestShare_KinIsBounded(t *testing.T) {
	k := sharing(t)
	for i := range 2 * most {
		k.adopt(ident(fmt.Sprint("S", i)))
	}
	if len(k.Kin) != most || !k.Owns(fmt.Sprint("S", 2*most-1)) {
		t.Errorf("%d", len(k.Kin))
	}
}

// Who joins does not greet, and finds the version in what the server makes.
func TestShare_Joins(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Joins: true, Approve: "edits"})
	m := k.last()
	if got := string(encode(m.Params)); len(k.frames) != 1 || m.ID != "thread/t1" || m.Method != "thread/start" ||
		!strings.Contains(got, `"environments":[{"cwd":"/dir","environmentId":"local"}]`) || !strings.Contains(got, `"thread_unload_delay_secs":0`) || m.Params["cwd"] != nil {
		t.Errorf("%s %s", m.Method, got)
	}
	k.replies(`{"thread":{"id":"T","cliVersion":"0.999.0"},"cwd":"/server","approvalPolicy":"on-request","approvalsReviewer":"user",` +
		`"sandbox":{"type":"workspaceWrite"},"runtimeWorkspaceRoots":["/dir"]}`)
	k.runs("U")
	k.notifies("item/started", "U", `"item":{"type":"fileChange","id":"c","changes":[{"path":"/dir/a"},{"path":"/server/b"}]}`)
	if a := k.About(); a.Version != "0.999.0" || len(k.told("agent_notice")) != 1 || !strings.Contains(k.told("tool_call")[0], `"title":"change a, /server/b"`) {
		t.Errorf("%+v, %+v", a, k.events)
	}
}

func TestShare_JoinsWithAConversation(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir", Joins: true, Conversation: "T"})
	if m := k.last(); m.ID != "config/t1" || m.Method != "config/read" {
		t.Errorf("%+v", m)
	}
	k.replies(`{"config":{}}`)
	if got := string(encode(k.last().Params["config"])); got != `{"mcp_servers":{},"thread_unload_delay_secs":0}` {
		t.Errorf("%s", got)
	}
	k.replies(`{"thread":{"id":"P","cliVersion":"` + Tested + `"},` + readOnly + `}`)
	k.replies(`{"thread":{"id":"T","cliVersion":"0.1.0"},` + readOnly + `}`)
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); a.Version != Tested {
		t.Errorf("%+v", a)
	}
}

// A thread that is not what was asked for does not stay in a server that others use.
func TestShare_AMismatchIsForgotten(t *testing.T) {
	k := newTalk(t)
	k.begin(shared(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Approve: "none"}))
	k.replies(greeting)
	k.replies(`{"thread":{"id":"T"},` + full + `}`)
	k.wantEnd(session.Failed, "config", "")
	if m := k.last(); m.Method != "thread/unsubscribe" || m.Params["threadId"] != "T" {
		t.Errorf("%+v", m)
	}
}

// A session hears its own of two that a real server had, whether it is given the other one's lines or not; and says what
// it said then.
func TestGolden_Shared(t *testing.T) {
	output, input := golden(t, "shared.jsonl"), golden(t, "shared.in.jsonl")
	for name, session := range map[string]struct {
		turns []int
		leave bool
	}{"one": {[]int{1}, true}, "two": {[]int{11, 12, 13}, false}} {
		t.Run(name, func(t *testing.T) {
			first := shared(all(session.turns[0]))
			if session.turns[0] > 1 {
				first.Joins, first.Cwd = true, "/dir/other"
			}
			hear := func(lines []byte) *talk {
				turns := session.turns[1:]
				return play(t, lines, first, func(k *talk) {
					switch {
					case k.End != nil && len(turns) > 0:
						next := shared(all(turns[0]))
						turns = turns[1:]
						k.begin(next)
					case session.leave && k.End != nil && len(k.Kin) == 1 && len(k.Others) == 0 && !k.Leaves:
						k.hears(k.Leave())
					}
				})
			}
			k := hear(output)
			k.wantEnd("completed", "", "")
			if diff := cmp.Diff(said(input, k), gist(bytes.Join(data(k.frames), nil))); diff != "" {
				t.Errorf("what was said (-recorded +now)\n%s", diff)
			}
			if k.About().Left != session.leave {
				t.Errorf("%+v", k.About())
			}
			alone := hear(owned(output, k))
			if diff := cmp.Diff(k.events, alone.events); diff != "" || !cmp.Equal(k.About(), alone.About()) {
				t.Errorf("(-with the other's +alone)\n%s", diff)
			}
		})
	}
}

// said are the recorded requests of a fold, by the names of its turns; what has no name is of the one that has greeted.
func said(input []byte, k *talk) (all []string) {
	own := map[string]bool{"": k.frames[0].Op == "t1.begin.0"}
	for _, f := range k.frames {
		var m struct{ ID string }
		_ = json.Unmarshal(f.Data, &m)
		if _, turn, ok := strings.Cut(m.ID, "/"); ok {
			own[turn] = true
		}
	}
	for _, line := range gist(input) {
		var m struct{ ID string }
		_ = json.Unmarshal([]byte(line), &m)
		if _, turn, _ := strings.Cut(m.ID, "/"); own[turn] {
			all = append(all, line)
		}
	}
	return all
}

// owned are the lines that are a fold's own, by what it knows in the end, or nobody's.
func owned(output []byte, k *talk) (all []byte) {
	requests := map[string]bool{}
	for _, id := range asked(k.frames) {
		requests[id] = true
	}
	for line := range bytes.Lines(output) {
		if key := owner(line); key == "" || k.Owns(key) || requests[key] {
			all = append(all, line...)
		}
	}
	return all
}
