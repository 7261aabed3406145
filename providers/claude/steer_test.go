package claude

import (
	"fmt"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// wantSteered compares what became of the last message.
func (k *talk) wantSteered(state providers.SteerState) {
	k.t.Helper()
	all := k.About().Steered
	if len(all) == 0 || all[len(all)-1].State != state || (state == providers.Refused) != (all[len(all)-1].Reason != "") {
		k.t.Errorf("%+v, want %s", all, state)
	}
}

// steerID is the id of a message of the first turn's.
func steerID(op string) string { return wire.UUID("steer", "", "t1", op) }

func TestSteer(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	frames, ok := k.steers("m")
	wantFrames(t, frames, `"content":"text of m"`)
	if frames, again := k.steers("m"); !ok || !again || len(frames) > 0 {
		t.Errorf("%v, %v, %s", ok, again, joined(frames))
	}
	k.wantSteered(providers.Sent)
	k.says(fateOf(steerID("m"), "queued"), replay(steerID("m")))
	k.wantSteered(providers.Confirmed)
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
}

// One that comes before the agent works on the prompt is held.
func TestSteer_IsHeld(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	if frames, ok := k.steers("m"); !ok || len(frames) > 0 {
		t.Errorf("%v, %s", ok, joined(frames))
	}
	wantFrames(t, k.greets(""), `"uuid":"`+k.promptID())
	k.wantSteered(providers.Held)
	wantFrames(t, k.say(k.inits(k.promptID())), `"text of m"`)
	k.wantSteered(providers.Sent)
}

// What comes too late for the turn is answered behind it: that is a part of the turn.
func TestSteer_IsAnsweredBehind(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.message("A", "first")
	k.steers("m")
	k.says(results("success", ""), stateIs("idle"))
	k.wantOn()
	k.says(stateIs("running"), fateOf(steerID("m"), "started"), k.inits(steerID("m")), replay(steerID("m")))
	k.wantSteered(providers.Confirmed)
	k.message("B", "behind")
	if a := k.About(); a.Usage.InputTokens != 100 || a.Message != "B" {
		t.Errorf("%+v", a)
	}
	k.say(results("success", ""))
	k.wantEnd(session.Completed, "", "")
	if n := len(k.told("agent_turn_started")); n > 0 {
		t.Errorf("%d turns", n)
	}
}

func TestSteer_IsForgotten(t *testing.T) {
	for _, lines := range [][]string{
		{fateOf(steerID("m"), "cancelled"), results("error_during_execution", "")},
		{results("error_during_execution", ""), fateOf(steerID("m"), "cancelled")},
	} {
		k := newTalk(t)
		k.runs(order(1, ""))
		k.steers("m")
		k.interrupts()
		if _, ok := k.steers("late"); ok {
			t.Error("it is put into a turn that is broken off")
		}
		k.says(lines...)
		k.wantEnd(session.Cancelled, "cancelled", "")
		k.wantSteered(providers.Refused)
	}
}

func TestSteer_IsRefused(t *testing.T) {
	k := newTalk(t)
	if _, ok := k.steers("m"); ok {
		t.Error("there is no turn")
	}
	o := order(1, "")
	o.Open = true
	k.begin(o)
	if _, ok := k.steers("m"); ok {
		t.Error("there is no prompt")
	}
	k.greets("")
	if _, ok := k.steers("m"); ok {
		t.Error("the turn has ended")
	}
	k.begin(order(2, ""))
	k.steers("held")
	k.say(fateOf(k.promptID(), "refused"))
	k.wantEnd(session.Failed, "protocol", "")
	k.wantSteered(providers.Refused)
}

func TestSteer_IsBounded(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	for i := range wire.SteersKept {
		k.steers(fmt.Sprint(i))
	}
	if _, ok := k.steers("more"); ok {
		t.Error("there is no room")
	}
	k.say(replay(wire.UUID("steer", "", "t1", "3")))
	if _, ok := k.steers("more"); !ok || len(k.Steers) != wire.SteersKept {
		t.Errorf("%d are known", len(k.Steers))
	}
}
