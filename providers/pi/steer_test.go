package pi

import (
	"fmt"
	"strings"
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

func TestSteer(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	frames, ok := k.steers("m", "turn left")
	wantFrames(t, frames, `{"id":"steer/t1.m","message":"turn left","type":"steer"}`)
	if frames, again := k.steers("m", "turn left"); !ok || !again || len(frames) > 0 {
		t.Errorf("%v, %v, %s", ok, again, joined(frames))
	}
	k.wantSteered(providers.Sent)
	k.says(answer("steer/t1.m", queued), user("another"))
	k.wantSteered(providers.Sent)
	k.say(user("turn left"))
	k.wantSteered(providers.Confirmed)
	k.says(ended("stop", ""), settles)
	k.wantEnd(session.Completed, "", "")
}

// One that comes before the prompt is in the conversation is held.
func TestSteer_IsHeld(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	if frames, ok := k.steers("m", "turn left"); !ok || len(frames) > 0 {
		t.Errorf("%v, %s", ok, joined(frames))
	}
	wantFrames(t, k.says(k.stateOf(0)), `"type":"prompt"`)
	wantFrames(t, k.says(answer("prompt/t1", started), runs))
	k.wantSteered(providers.Held)
	wantFrames(t, k.say(user("x")), `"message":"turn left"`)
	k.wantSteered(providers.Sent)
}

// A template makes another text of one that begins with a slash.
func TestSteer_Template(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.steers("m", "/left")
	k.says(answer("steer/t1.m", queued), user("turn left"))
	k.wantSteered(providers.Confirmed)
}

func TestSteer_IsRefused(t *testing.T) {
	for name, line := range map[string]string{"refused": refusal("steer/t1.m", "no"), "handled": answer("steer/t1.m", handled)} {
		k := newTalk(t)
		k.works(order(1, ""))
		k.steers("m", "turn left")
		if k.say(line); len(k.About().Steered) != 1 {
			t.Error(name)
		}
		k.wantSteered(providers.Refused)
	}
}

// What pi has when the run has ended it would take into the next one: it is to forget it before the turn ends.
func TestSteer_TooLate(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.steers("m", "turn left")
	wantFrames(t, k.says(ended("stop", ""), settles))
	k.wantOn()
	if _, ok := k.steers("n", "later"); ok {
		t.Error("the turn is about to end")
	}
	wantFrames(t, k.say(answer("steer/t1.m", queued)), `{"id":"clear_queue/t1","type":"clear_queue"}`)
	k.wantOn()
	k.say(answer("clear_queue/t1", ""))
	k.wantEnd(session.Completed, "", "")
	k.wantSteered(providers.Refused)

	k.works(order(2, ""))
	k.steers("o", "turn left")
	k.says(answer("steer/t2.o", queued), ended("stop", ""))
	wantFrames(t, k.say(settles), `"id":"clear_queue/t2"`)
	k.say(answer("clear_queue/t1", "")) // another turn's
	k.wantOn()
	k.say(answer("clear_queue/t2", ""))
	k.wantEnd(session.Completed, "", "")
}

// One that pi takes into a run behind the turn's is a part of the turn.
func TestSteer_AnsweredBehind(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.steers("m", "turn left")
	k.says(beginsToSay, pieceOf("one"), ended("stop", ""), settles, runs, answer("steer/t1.m", queued), user("turn left"))
	k.wantOn()
	k.says(beginsToSay, pieceOf("left"), ended("stop", ""), settles)
	k.wantEnd(session.Completed, "", "")
	k.wantSteered(providers.Confirmed)
	if got := k.text(k.About().Message); got != "left" {
		t.Errorf("%q", got)
	}
}

func TestSteer_NotTaken(t *testing.T) {
	k := newTalk(t)
	take := func(op, text string, want bool) {
		t.Helper()
		if _, ok := k.steers(op, text); ok != want {
			t.Errorf("%q: %v", op, ok)
		}
	}
	take("m", "no turn", false)
	k.works(order(1, ""))
	take("", "no name", false)
	take(strings.Repeat("m", 1<<12), "a long name", false)
	take("m", strings.Repeat("x", wire.HeldLimit+1), false)
	k.interrupts()
	take("m", "it is interrupted", false)
	k.says(breaksOff)
	take("m", "it has ended", false)
}

// The oldest are forgotten, of which all is known; if none is, there is no room.
func TestSteer_Room(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	for n := range wire.SteersKept {
		k.steers(fmt.Sprint("m", n), fmt.Sprint("text ", n))
	}
	if _, ok := k.steers("more", "more"); ok {
		t.Error("there is room")
	}
	k.say(user("text 0"))
	if _, ok := k.steers("more", "more"); !ok || len(k.About().Steered) != wire.SteersKept {
		t.Errorf("%v, %d", ok, len(k.About().Steered))
	}
}
