package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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

// departs has the fold leave, twice, and wants these frames, whether they come at once or behind what it waits for.
func (k *talk) departs(between func(), want ...string) {
	k.t.Helper()
	before := len(k.frames)
	for range 2 {
		k.hears(k.Leave())
	}
	between()
	left := slices.DeleteFunc(slices.Clone(k.frames[before:]), func(f providers.Frame) bool { return strings.Contains(string(f.Data), "thread/start") })
	wantFrames(k.t, left, want...)
}

const (
	cleans = `"method":"thread/backgroundTerminals/clean","params":{"threadId":"T"}`
	leaves = `{"id":"leave.T/t1","method":"thread/unsubscribe","params":{"threadId":"T"}}`
)

func TestShare_Leave(t *testing.T) {
	for name, test := range map[string]struct {
		come    func(t *testing.T) *talk
		between func(k *talk)
		frames  []string
		outcome session.Outcome
	}{
		"between turns": {func(t *testing.T) *talk {
			k := sharing(t)
			k.ends("U", "completed")
			return k
		}, nil, []string{cleans, leaves}, session.Completed},
		"in a turn": {sharing, nil, []string{`"turn/interrupt","params":{"threadId":"T","turnId":"U"}`, cleans, leaves}, session.Cancelled},
		"before the start": {func(t *testing.T) *talk {
			k := newTalk(t)
			k.begin(shared(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"}))
			k.replies(greeting)
			k.replies(`{"thread":{"id":"T"}}`)
			return k
		}, func(k *talk) {
			if k.Parted {
				k.t.Error("it does not wait")
			}
			k.say(`{"id":"turn/t1","result":{"turn":{"id":"U"}}}`)
			k.notifies("turn/started", "U", `"turn":{"id":"U"}`)
		}, []string{`"turn/interrupt","params":{"threadId":"T","turnId":"U"}`, cleans, leaves}, session.Cancelled},
		"while it opens": {func(t *testing.T) *talk {
			k := newTalk(t)
			k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Joins: true})
			return k
		}, func(k *talk) { k.say(`{"id":"thread/t1","result":{"thread":{"id":"T"}}}`) }, []string{cleans, leaves}, session.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			k := test.come(t)
			k.departs(func() {
				if test.between != nil {
					test.between(k)
				}
			}, test.frames...)
			k.wantEnd(test.outcome, map[bool]string{true: "cancelled"}[test.outcome == session.Cancelled], "")
			if k.About().Left {
				t.Error("it has left before the server says so")
			}
			k.notifies("item/agentMessage/delta", "U", `"itemId":"m","delta":"late"`)
			k.say(`{"id":"leave.T/t1","result":{"status":"unsubscribed"}}`)
			k.say(other("thread/closed", `"x":0`))
			if a := k.About(); a.Left || a.Message != "" {
				t.Errorf("%+v", a)
			}
			k.say(`{"method":"thread/closed","params":{"threadId":"T"}}`)
			if !k.About().Left {
				t.Error("it has not left")
			}
		})
	}
}

// Of what is not loaded nothing is left, nor where nothing was opened.
func TestShare_LeaveOfNothing(t *testing.T) {
	k := sharing(t)
	k.hears(k.Leave())
	k.say(`{"id":"leave.T/t1","result":{"status":"notLoaded"}}`)
	if !k.About().Left {
		t.Error("it has not left")
	}
	k = newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Joins: true})
	k.refuses("failed to load configuration")
	k.departs(func() {})
	if !k.About().Left {
		t.Error("it has not left")
	}
}

// Its agents are left with it, what it asked lapses, and what was put into its turn is not in the conversation.
func TestShare_LeaveEndsAllOfIt(t *testing.T) {
	k := sharing(t)
	k.say(`{"method":"turn/started","params":{"threadId":"S","turn":{"id":"V","rootTurnId":"U"}}}`)
	k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`)
	k.departs(func() {}, `{"threadId":"T","turnId":"U"}`, `{"threadId":"S","turnId":"V"}`, `clean","params":{"threadId":"S"}`,
		`{"id":"leave.S/t1"`, cleans, leaves)
	k.say(`{"method":"thread/closed","params":{"threadId":"T"}}`)
	k.wantTold("permission_resolved", `{"decision":"lapsed","permission":"`+strings.TrimSuffix(strings.SplitAfter(k.told("permission_requested")[0], `"permission":"`)[1][:18], `"`)+`"}`)
	if a := k.About(); a.Left || len(a.Pending) > 0 {
		t.Errorf("%+v", a)
	}
	k.say(`{"method":"thread/closed","params":{"threadId":"S"}}`)
	if !k.About().Left {
		t.Error("it has not left")
	}
	if frames, ok := k.steers("op"); ok || len(frames) > 0 {
		t.Error("it is steered behind its leave")
	}
	wantFrames(t, k.interrupts())
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

func TestOwner(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":"turn/t1","result":{"turn":{"id":"U"}}}`:                                     "turn/t1",
		`{"error":{"code":-32600,"message":"no \",\"id\":\"x\""},"id":"leave.T/t1"}` + "\n": "leave.T/t1",
		`{"id":7,"result":{}}`: "",
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T"}}`:              "T",
		`{"method":"turn/started","params":{"threadId":"T","turn":{"id":"U"}}}`:                            "T",
		`{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"T","turnId":"U"}}`: "T",
		`{"method":"thread/started","params":{"thread":{"id":"T","sessionId":"X"}}}`:                       "T",
		`{"method":"item/started","params":{"item":{"arguments":{"threadId":"O"}},"threadId":"T"}}`:        "T",
		`{"method":"item/started","params":{"item":{"text":"\"threadId\":\"O\""},"threadId":"T"}}`:         "T",
		`{"method":"configWarning","params":{"summary":"x"}}`:                                              "",
		`{"method":"x","params":{"threadId":"a\"b"}}`:                                                      "",
		`{"method":"x","params":{"threadId":"` + strings.Repeat("long", 200) + `"}}`:                       "",
		`{"id":`: "", `{"id":"`: "", `{"error":`: "", `{"method":"x","params":{"threadId":"`: "", "": "", "no JSON": "",
	} {
		if got := owner([]byte(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// It tells no line's owner wrongly of all that the real server has said.
func TestGolden_Owner(t *testing.T) {
	for name, output := range transcripts(t) {
		told := 0
		for line := range bytes.Lines(output) {
			var m struct {
				ID     any
				Method string
				Params struct {
					ThreadID string
					Thread   struct{ ID string }
				}
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			want := m.Params.ThreadID + m.Params.Thread.ID
			if id, ok := m.ID.(string); ok && m.Method == "" {
				want = id
			}
			if got := owner(line); got != want {
				t.Errorf("%s: %q, want %q: %.300s", name, got, want, line)
			}
			told += len(want)
		}
		if told == 0 {
			t.Errorf("%s: nothing is told", name)
		}
	}
}

func BenchmarkOwner(b *testing.B) {
	text := func(n int) []byte {
		return fmt.Appendf(nil, `{"method":"item/agentMessage/delta","params":{"threadId":"01a22e30-aa23-7b93-adc7-70e2fc066973",`+
			`"turnId":"01a22e30-aa23-7b93-adc7-70e2fc066974","itemId":"msg_1","delta":"%s"},"emittedAtMs":1796070030634}`, strings.Repeat(`a \"word\" `, n))
	}
	for name, line := range map[string][]byte{
		"delta": text(5), "long": text(100_000),
		"item": []byte(`{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"msg_1","text":"hello, world, and all that is in it",` +
			`"phase":null},"threadId":"01a22e30-aa23-7b93-adc7-70e2fc066973","turnId":"01a22e30-aa23-7b93-adc7-70e2fc066974","completedAtMs":1796070030634}}`),
		"answer": []byte(`{"id":"turn/01a22e30.1.1","result":{"turn":{"id":"01a22e30-aa23-7b93-adc7-70e2fc066974","items":[],"status":"inProgress"}}}`),
	} {
		b.Run(fmt.Sprint(name, " ", len(line)), func(b *testing.B) {
			for b.Loop() {
				if owner(line) == "" {
					b.Fatal(name)
				}
			}
		})
	}
}
