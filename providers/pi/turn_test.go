package pi

import (
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestTurn(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(beginsToSay, pieceOf("hel"), pieceOf("lo"))
	if a := k.About(); !a.Begun || k.text(a.Message) != "hello" {
		t.Errorf("%+v", a)
	}
	k.say(ended("toolUse", ""))
	first := k.About().Message
	k.says(beginsToSay, pieceOf("done"), ended("stop", ""), settles)
	k.wantEnd(session.Completed, "", "")
	a := k.About()
	if a.Message == first || k.text(a.Message) != "done" {
		t.Errorf("%+v", a)
	}
	if u := a.Usage; u.InputTokens != 200 || u.OutputTokens != 20 || u.CachedTokens != 60 || u.USD == nil || *u.USD != 1 {
		t.Errorf("%+v", u)
	}

	k.works(order(2, ""))
	k.says(beginsToSay, pieceOf("again"), ended("stop", ""), settles)
	if b := k.About(); b.Message == a.Message || b.Usage.InputTokens != 100 {
		t.Errorf("%+v", b)
	}
}

// What was not told in pieces is told as a whole.
func TestTurn_WholeMessages(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(beginsToSay, `{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hello"}],"stopReason":"stop"}}`)
	k.say(`{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","delta":"well"}}`)
	if got := k.text(k.About().Message); got != "hello" || len(k.told("agent_thought_chunk")) != 2 {
		t.Errorf("%q, %q", got, k.told("agent_thought_chunk"))
	}
}

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		lines         []string
		outcome       session.Outcome
		code, message string
	}{
		"answered":      {[]string{ended("stop", ""), settles}, session.Completed, "", ""},
		"cut off":       {[]string{ended("length", ""), settles}, session.Failed, "", "limit of tokens"},
		"failed":        {[]string{ended("error", `,"errorMessage":"503: down"`), settles}, session.Failed, "transient", "503: down"},
		"without words": {[]string{ended("error", ""), settles}, session.Failed, "", "does not say why"},
		"unheard":       {[]string{ended("new", ""), settles}, session.Failed, "protocol", "new"},
		"nothing":       {[]string{settles}, session.Failed, "", "without an answer"},
		"aborted":       {[]string{ended("aborted", ""), breaksOff}, session.Cancelled, "cancelled", "an extension"},
		"tried again":   {[]string{ended("error", `,"errorMessage":"503"`), ended("stop", ""), settles}, session.Completed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.works(order(1, ""))
			k.says(test.lines...)
			k.wantEnd(test.outcome, test.code, test.message)
			k.says(ended("error", ""), breaksOff) // the first end counts
			k.wantEnd(test.outcome, test.code, test.message)
		})
	}
}

// What pi does about trouble is told, and is over once something comes.
func TestTroubled(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.say(`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"errorMessage":"429: slow"}`)
	if a := k.About(); a.Trouble != "429: slow; pi tries it again, 1 of 3" || a.Begun {
		t.Errorf("%+v", a)
	}
	k.wantTold("agent_notice", `{"cause":"capacity","message":"429: slow; pi tries it again, 1 of 3","willRetry":true}`)
	k.says(beginsToSay, pieceOf("hello"))
	if a := k.About(); a.Trouble != "" {
		t.Errorf("%+v", a)
	}
	k.says(`{"type":"compaction_start","reason":"overflow"}`, `{"type":"compaction_end","errorMessage":"no"}`,
		`{"type":"extension_error","extensionPath":"/e.ts","error":"it threw"}`, `{"type":"auto_retry_start","attempt":2}`, `{"type":"auto_retry_end"}`)
	if n := len(k.told("agent_notice")); n != 5 || k.About().Trouble != "" {
		t.Errorf("%q", k.told("agent_notice"))
	}
}

// An interrupt before pi has begun the run does nothing there: it is said again, until it can.
func TestInterrupt(t *testing.T) {
	k := newTalk(t)
	k.opens(order(1, ""))
	wantFrames(t, k.interrupts(), "clear_queue", "abort")
	wantFrames(t, k.say(answer("prompt/t1", started)), "clear_queue", "abort")
	wantFrames(t, k.say(runs), "clear_queue", "abort")
	k.says(user("x"), ended("aborted", ""), breaksOff)
	k.wantEnd(session.Cancelled, "cancelled", "was interrupted")
	wantFrames(t, k.interrupts())

	k.works(order(2, ""))
	wantFrames(t, k.interrupts(), "t2.interrupt.0", "t2.interrupt.1")
	wantFrames(t, k.interrupts(), "t2.interrupt.2", "t2.interrupt.3")
	k.says(ended("stop", ""), settles) // it came too late
	k.wantEnd(session.Completed, "", "")
}

// Before the prompt was given there is nothing to interrupt but what keeps us waiting.
func TestInterrupt_BeforeThePrompt(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	wantFrames(t, k.interrupts())
	wantFrames(t, k.say(k.stateOf(0)))
	k.wantEnd(session.Cancelled, "cancelled", "before the prompt")

	k.say(runs)
	wantFrames(t, k.begin(order(2, "")))
	wantFrames(t, k.interrupts(), "clear_queue", "abort")
	wantFrames(t, k.say(breaksOff))
	k.wantEnd(session.Cancelled, "cancelled", "before the prompt")
	k.wantTold("agent_turn_ended", `{"outcome":"cancelled"}`)

	k.opens(order(3, ""))
	k.interrupts()
	k.say(refusal("prompt/t3", "no"))
	k.wantEnd(session.Cancelled, "cancelled", "")
}

// What came of no line of the protocol says nothing.
func TestReceive_Garbage(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	before := string(k.State())
	for _, line := range []string{"", "null", "[]", `"x"`, "{", `{"type":5}`, `{"type":"unheard"}`, `{"type":"response","id":7,"success":true}`} {
		if wantFrames(t, k.say(line)); string(k.State()) != before {
			t.Errorf("%s: %s, was %s", line, k.State(), before)
		}
	}
	k.Receive(providers.Chunk{Stream: providers.Stderr, Data: []byte("a warning\n")})
	if k.About().Log != "a warning\n" {
		t.Errorf("%q", k.About().Log)
	}
	if _, err := restore([]byte("{")); err == nil {
		t.Error("half a state is none")
	}
}
