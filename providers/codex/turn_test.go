package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestTurn_TheNextIsGivenToTheLoadedThread(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U1")
	k.notifies("item/agentMessage/delta", "U1", `"itemId":"m1","delta":"one"`)
	k.notifies("thread/tokenUsage/updated", "U1", `"tokenUsage":{"total":{"inputTokens":100},"last":{"inputTokens":100}}`)
	k.ends("U1", "completed")
	k.wantEnd(session.Completed, "", "")

	k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
	want := providers.About{Conversation: "T", Model: "m", Version: Tested, Ready: true, Prompt: "t2.begin.0"}
	if diff := cmp.Diff(want, k.About()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantFrames(t, k.frames[len(k.frames)-1:], `t2.begin.0 {"id":"turn/t2","method":"turn/start"`)
	k.runs("U2")
	k.notifies("item/agentMessage/delta", "U2", `"itemId":"m2","delta":"two"`)
	k.ends("U2", "completed")
	k.wantEnd(session.Completed, "", "")
	if got := k.About(); got.Message != "m2" || !got.Begun || !got.Confirmed {
		t.Errorf("%+v", got)
	}
}

func TestTurn_HowFarItIs(t *testing.T) {
	k := newTalk(t)
	far := func(want string) {
		t.Helper()
		a := k.About()
		if got := fmt.Sprint(a.Prompt != "", a.Confirmed, a.Begun); got != want {
			t.Errorf("prompt, confirmed, begun: %s, want %s", got, want)
		}
	}
	k.opens()
	far("true false false")
	k.replies(`{"turn":{"id":"U"}}`)
	far("true true false")
	k.notifies("turn/started", "U", `"turn":{"id":"U"}`)
	k.notifies("item/started", "U", `"item":{"type":"userMessage","id":"u"}`)
	far("true true false")
	k.notifies("item/reasoning/textDelta", "U", `"itemId":"r","delta":"hm"`)
	far("true true true")
}

// What comes late of an earlier turn ends nothing, says nothing in its name, and is the end of what it began.
func TestTurn_LateNotificationsAreOfTheirOwnTurn(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U1")
	k.notifies("item/started", "U1", `"item":{"type":"commandExecution","id":"c1","command":"sleep 9"}`)
	k.ends("U1", "interrupted")
	k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
	if open := k.About().Open; open != 1 {
		t.Errorf("%d open", open)
	}
	k.say(`{"id":"turn/t1","result":{"turn":{"id":"U1"}}}`)
	k.runs("U2")
	k.notifies("item/agentMessage/delta", "U2", `"itemId":"m2","delta":"two"`)
	k.notifies("item/agentMessage/delta", "U1", `"itemId":"m1","delta":"late"`)
	k.notifies("item/completed", "U1", `"item":{"type":"agentMessage","id":"m1","text":"late"}`)
	k.notifies("item/completed", "U1", `"item":{"type":"commandExecution","id":"c1","status":"failed"}`)
	k.notifies("turn/started", "U1", `"turn":{"id":"U1"}`)
	k.notifies("thread/tokenUsage/updated", "U1", `"tokenUsage":{"total":{"inputTokens":9}}`)
	k.notifies("error", "U1", `"error":{"message":"late"},"willRetry":false`)
	k.ends("U1", "failed")
	if a := k.About(); a.End != nil || a.Message != "m2" || a.Open != 0 || a.Usage != (providers.Usage{}) {
		t.Errorf("%+v", a)
	}
	if got := k.told("tool_call_update"); len(got) != 1 || !strings.Contains(got[0], "c1") {
		t.Errorf("%q", got)
	}
	k.ends("U2", "completed")
	k.wantEnd(session.Completed, "", "")
}

// A server that is in the middle of a turn puts the prompt into that one.
func TestTurn_APromptThatSteersIsAFailure(t *testing.T) {
	for name, reply := range map[string]func(k *talk){
		"into an earlier turn": func(k *talk) { k.replies(`{"turn":{"id":"U1"}}`) },
		"into one that began by itself": func(k *talk) {
			k.replies(`{"turn":{"id":"V"}}`)
		},
		"into one of which it says nothing": func(k *talk) {
			k.replies(`{"turn":{"id":"W"}}`)
			k.notifies("turn/started", "X", `"turn":{"id":"X"}`)
		},
		"answered with another one than started": func(k *talk) {
			k.notifies("turn/started", "X", `"turn":{"id":"X"}`)
			k.replies(`{"turn":{"id":"W"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.opens()
			k.runs("U1")
			k.ends("U1", "completed")
			k.notifies("turn/started", "V", `"turn":{"id":"V"}`)
			k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
			reply(k)
			k.wantEnd(session.Failed, "protocol", "a turn that ran already")
			if !k.About().Confirmed {
				t.Error("it counts as never given")
			}
		})
	}
}

func TestTurn_InterruptWaitsForTheStart(t *testing.T) {
	k := newTalk(t)
	k.opens()
	wantFrames(t, k.interrupts())
	k.replies(`{"turn":{"id":"U"}}`)
	wantFrames(t, k.interrupts())
	wantFrames(t, k.notifies("turn/started", "U", `"turn":{"id":"U"}`), `"turn/interrupt"`)
	wantFrames(t, k.interrupts(), `t1.interrupt.0 {"id":"interrupt/t1","method":"turn/interrupt","params":{"threadId":"T","turnId":"U"}}`)
	wantFrames(t, k.interrupts(), `t1.interrupt.1 `)
	wantFrames(t, k.ends("U", "interrupted"), `{"id":"clean/t1","method":"thread/backgroundTerminals/clean"`)
	k.wantEnd(session.Cancelled, "cancelled", "interrupted")
	wantFrames(t, k.interrupts())
}

func TestTurn_InterruptedBeforeThePrompt(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	wantFrames(t, k.interrupts())
	k.replies(`{"userAgent":"pintle/` + Tested + `"}`)
	k.replies(`{"thread":{"id":"T"}}`)
	k.wantEnd(session.Cancelled, "cancelled", "before the prompt was given")
	if a := k.About(); a.Prompt != "" {
		t.Errorf("%+v", a)
	}
}

// An agent that this one has started works on while its own turn runs, whatever becomes of the turn that began it.
func TestTurn_StartedAgentsAreInterruptedToo(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.say(`{"method":"turn/started","params":{"threadId":"S","turn":{"id":"V"}}}`)
	k.say(`{"method":"item/agentMessage/delta","params":{"threadId":"S","turnId":"V","itemId":"s","delta":"inner"}}`)
	k.say(`{"method":"item/started","params":{"threadId":"S","turnId":"V","item":{"type":"commandExecution","id":"c","command":"ls"}}}`)
	k.say(`{"method":"thread/tokenUsage/updated","params":{"threadId":"S","turnId":"V","tokenUsage":{"total":{"inputTokens":7},"last":{"inputTokens":7}}}}`)
	k.notifies("thread/tokenUsage/updated", "U", `"tokenUsage":{"total":{"inputTokens":5},"last":{"inputTokens":5}}`)
	if a := k.About(); a.Message != "" || a.Open != 1 || !a.Begun || a.Usage.InputTokens != 12 {
		t.Errorf("%+v", a)
	}
	wantFrames(t, k.interrupts(), `{"threadId":"T","turnId":"U"}`, `{"threadId":"S","turnId":"V"}`)
	k.ends("U", "interrupted")
	k.wantEnd(session.Cancelled, "cancelled", "")
	wantFrames(t, k.say(`{"method":"turn/completed","params":{"threadId":"S","turn":{"id":"V","status":"interrupted"}}}`), `backgroundTerminals/clean","params":{"threadId":"S"}`)
	wantFrames(t, k.say(`{"method":"turn/started","params":{"threadId":"S","turn":{"id":"W"}}}`), `{"threadId":"S","turnId":"W"}`)
}

// An interrupted turn tells no end of a call that waited.
func TestTurn_WhatNeverEndsIsEnded(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.notifies("item/started", "U", `"item":{"type":"commandExecution","id":"runs","command":"sleep 9"}`)
	k.notifies("item/started", "U", `"item":{"type":"commandExecution","id":"asks","command":"rm x"}`)
	k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"asks","command":"rm x"}}`)
	k.notifies("item/started", "U", `"item":{"type":"mcpToolCall","id":"waits","server":"s","tool":"t"}`)
	k.ends("U", "interrupted")
	k.wantTold("tool_call_update", `{"status":"failed","toolCallId":"asks"}`, `{"status":"failed","toolCallId":"waits"}`)
	if open := k.About().Open; open != 1 {
		t.Errorf("%d open", open)
	}
}

// The count of a thread is of all its life, and that of an agent that was started is not in it.
func TestTurn_UsageIsOfTheTurn(t *testing.T) {
	k := newTalk(t)
	count := func(turn string, total, last int) {
		t.Helper()
		k.notifies("thread/tokenUsage/updated", turn, fmt.Sprintf(`"tokenUsage":{"total":{"inputTokens":%d},"last":{"inputTokens":%d}}`, total, last))
	}
	k.opens()
	count("of before", 1000, 100) // what thread/resume brings
	k.runs("U1")
	count("U1", 1100, 100)
	count("U1", 1250, 150)
	if got := k.About().Usage.InputTokens; got != 250 {
		t.Errorf("the first turn cost %d", got)
	}
	k.ends("U1", "completed")
	k.begin(providers.Order{Turn: "t2", Prompt: "y"})
	k.runs("U2")
	count("U2", 1290, 40)
	if got := k.About().Usage.InputTokens; got != 40 {
		t.Errorf("the second turn cost %d", got)
	}
	k.wantTold("usage_update", `{"inputTokens":100}`, `{"inputTokens":250}`, `{"inputTokens":40}`)
}

func TestTurn_TroubleIsOverWhenSomethingComes(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.notifies("error", "U", `"error":{"message":"Reconnecting... waiting for network"},"willRetry":true`)
	if a := k.About(); a.Trouble != "Reconnecting... waiting for network" || a.End != nil {
		t.Errorf("%+v", a)
	}
	k.notifies("item/agentMessage/delta", "U", `"itemId":"m","delta":"x"`)
	if a := k.About(); a.Trouble != "" {
		t.Errorf("%+v", a)
	}
}

// No list grows over its bound.
func TestTurn_AFloodOfWhatIsOpenIsBounded(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	refused := 0
	for i := range 2 * most {
		k.offset++ // not every line is restored: that is shown elsewhere
		for _, line := range []string{
			`{"method":"item/started","params":{"item":{"type":"commandExecution","id":"c%d"}}}`,
			`{"method":"turn/started","params":{"threadId":"S%d","turn":{"id":"V"}}}`,
			`{"method":"thread/tokenUsage/updated","params":{"threadId":"S%d","tokenUsage":{"total":{"inputTokens":1}}}}`,
			`{"method":"turn/started","params":{"threadId":"T","turn":{"id":"E%d"}}}`,
			`{"id":%d,"method":"item/commandExecution/requestApproval","params":{"itemId":"c","command":"ls"}}`,
		} {
			k.offset += 1000
			_, frames := k.Receive(providers.Chunk{Stream: providers.Stdout, Offset: k.offset, Data: fmt.Appendf(nil, line, i)})
			refused += len(slices.DeleteFunc(frames, func(f providers.Frame) bool { return !strings.Contains(string(f.Data), "decline") }))
		}
	}
	for name, n := range map[string]int{"items": len(k.Items), "others": len(k.Others), "meters": len(k.Meters), "earlier": len(k.Earlier), "pending": len(k.Pending)} {
		if n > most {
			t.Errorf("%d %s", n, name)
		}
	}
	if refused < most {
		t.Errorf("%d refused", refused)
	}
	if n := len(k.State()); n > 1<<20 {
		t.Errorf("the state has %d bytes", n)
	}
}
