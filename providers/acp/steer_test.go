package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

const (
	takes = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}},"_meta":{"steering":{"supported":true}}}`
	done  = `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`
)

// steers is a talk with one that takes messages into its turn, which runs.
func steers(t *testing.T) *talk {
	t.Helper()
	k := with(t, agent{steers: true}, providers.Order{})
	k.hears(answerTo("initialize", takes), answerTo("open", `{"sessionId":"s"}`))
	return k
}

// steer puts a message into the turn.
func (k *talk) steer(op, text string, want bool) {
	k.t.Helper()
	frames, ok := k.fold.Steer(op, text)
	if ok != want {
		k.t.Errorf("%s is taken: %v", op, ok)
	}
	k.made(frames)
}

// fares wants the messages to be so, in their order.
func (k *talk) fares(want ...providers.SteerState) {
	k.t.Helper()
	var states []providers.SteerState
	for _, s := range k.fold.About().Steered {
		states = append(states, s.State)
	}
	if fmt.Sprint(states) != fmt.Sprint(want) {
		k.t.Errorf("they are %v, and not %v", states, want)
	}
}

func outcome(op, of string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"steer/%s","result":{"outcome":%q}}`, op, of)
}

// What the agent has it takes in before the turn ends as completed. Until then it may forget it.
func TestSteer_IsConfirmedByTheTurn(t *testing.T) {
	k := steers(t)
	k.steer("a", "look: \"there\"", true)
	k.said("_session/steering", `"text":"look: \"there\""`, `"idleBehavior":"promptRequired"`)
	k.fares(providers.Sent)
	n := len(k.frames)
	if k.steer("a", "again", true); len(k.frames) != n {
		t.Errorf("it is given twice: %s", k.frames[n])
	}
	k.hears(outcome("a", "injected"))
	k.fares(providers.Sent)
	k.hears(answerTo("prompt", done))
	k.fares(providers.Confirmed)
	k.ended(session.Completed, "", "")
	k.steer("late", "x", false)
}

// What comes before the prompt is held until that was given.
func TestSteer_IsHeld(t *testing.T) {
	k := with(t, agent{steers: true}, providers.Order{})
	k.steer("a", "first", true)
	k.steer("b", "second", true)
	k.hears(answerTo("initialize", takes))
	k.fares(providers.Held, providers.Held)
	k.hears(answerTo("open", `{"sessionId":"s"}`))
	k.fares(providers.Sent, providers.Sent)
	last := k.frames[len(k.frames)-3:]
	for i, words := range []string{"session/prompt", `"text":"first"`, `"text":"second"`} {
		if !strings.Contains(last[i], words) {
			t.Errorf("%d: %s", i, last[i])
		}
	}
	k = with(t, agent{steers: true}, providers.Order{})
	k.steer("a", "first", true)
	k.hears(errorTo("initialize", 1, "no", ""))
	k.fares(providers.Refused)
}

// One that came too late is told so behind the turn's end, which is waited for.
func TestSteer_ComesTooLate(t *testing.T) {
	k := steers(t)
	k.steer("a", "x", true)
	k.hears(answerTo("prompt", done))
	if end := k.fold.About().End; end != nil {
		t.Errorf("it ended before its message: %+v", end)
	}
	k.hears(outcome("a", "promptRequired"))
	k.fares(providers.Refused)
	k.ended(session.Completed, "", "")
}

// What a cancel comes before is not known, and no later turn says more of it, nor waits for it.
func TestSteer_BrokenOff(t *testing.T) {
	k := steers(t)
	k.steer("a", "x", true)
	k.steer("b", "y", true)
	k.hears(outcome("a", "injected"))
	k.made(k.fold.Interrupt())
	k.steer("c", "z", false)
	k.hears(answerTo("prompt", `{"stopReason":"cancelled"}`))
	k.ended(session.Cancelled, "cancelled", "")
	k.made(k.fold.Begin(providers.Order{Turn: "t1", Prompt: "more", Cwd: "/dir"}))
	k.hears(answerTo("prompt", done))
	k.ended(session.Completed, "", "")
	k.fares(providers.Sent, providers.Sent)
}

func TestSteer_Answers(t *testing.T) {
	for line, want := range map[string]providers.SteerState{
		outcome("a", "startedNewTurn"): providers.Confirmed, outcome("a", "bogus"): providers.Refused,
		`{"jsonrpc":"2.0","id":"steer/a","error":{"code":-32601,"message":"no such method"}}`: providers.Refused,
	} {
		k := steers(t)
		k.steer("a", "x", true)
		k.hears(line)
		k.fares(want)
	}
}

// An agent that may have it says at first whether it has.
func TestSteer_NotByAll(t *testing.T) {
	k := prompted(t, agent{steers: true}, providers.Order{})
	k.steer("a", "x", false)
	k = with(t, agent{}, providers.Order{})
	k.hears(answerTo("initialize", takes), answerTo("open", `{"sessionId":"s"}`))
	k.steer("a", "x", false)
	k = with(t, agent{steers: true}, providers.Order{Open: true})
	k.steer("a", "x", false)
}

// Whatever is put into turns, what is kept of it has a bound.
func TestSteer_Bounded(t *testing.T) {
	k := steers(t)
	k.steer("big", strings.Repeat("x", wire.HeldLimit+1), false)
	k.steer(strings.Repeat("o", 300), "x", false)
	for i := range wire.SteersKept {
		k.steer(fmt.Sprint(i), "x", true)
	}
	k.steer("more", "x", false)
	k.hears(outcome("0", "promptRequired"))
	k.steer("more", "x", true)
	if n := len(k.fold.About().Steered); n != wire.SteersKept {
		t.Errorf("%d are kept", n)
	}
}
