package codex

import (
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

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
	k.notifies("item/started", "U", `"item":{"type":"commandExecution","id":"c","command":"ls"}`)
	k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`)
	k.departs(func() {}, `{"threadId":"T","turnId":"U"}`, `{"threadId":"S","turnId":"V"}`, `clean","params":{"threadId":"S"}`,
		`{"id":"leave.S/t1"`, cleans, leaves)
	k.say(`{"method":"thread/closed","params":{"threadId":"T"}}`)
	k.wantTold("permission_resolved", `{"decision":"lapsed","permission":"`+strings.TrimSuffix(strings.SplitAfter(k.told("permission_requested")[0], `"permission":"`)[1][:18], `"`)+`"}`)
	k.wantTold("tool_call_update", `{"status":"failed","toolCallId":"c"}`)
	if a := k.About(); a.Left || len(a.Pending) > 0 || a.Open > 0 {
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

// What was put into the turn before has a fate as far as the server still tells it.
func TestShare_LeaveAndWhatWasPutIntoTheTurn(t *testing.T) {
	k := sharing(t)
	for _, op := range []string{"op1", "op2", "op3"} {
		k.steers(op)
	}
	k.hears(k.Leave())
	k.say(`{"id":"steer.op1/t1","error":{"code":-32600,"message":"no active turn to steer"}}`)
	k.echoes("U", "op2")
	k.say(`{"method":"thread/closed","params":{"threadId":"T"}}`)
	k.wantSteered(
		providers.Steered{Op: "op1", Frame: "t1.steer.op1.0", State: providers.Refused, Reason: "no active turn to steer"},
		providers.Steered{Op: "op2", Frame: "t1.steer.op2.0", State: providers.Confirmed},
		providers.Steered{Op: "op3", Frame: "t1.steer.op3.0", State: providers.Sent},
	)
}
