package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// runningTurn comes to a turn U of the first order that runs.
func runningTurn(t *testing.T) *talk {
	t.Helper()
	k := newTalk(t)
	k.opens()
	k.runs("U")
	return k
}

func (k *talk) wantSteered(want ...providers.Steered) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.About().Steered); diff != "" {
		k.t.Errorf("(-want +got)\n%s", diff)
	}
}

// echoes is the server's own telling of a message that it has taken in.
func (k *talk) echoes(turn, op string) {
	k.t.Helper()
	item := fmt.Sprintf(`"item":{"type":"userMessage","id":"u","clientId":%q,"content":[{"type":"text","text":"x"}]}`, op)
	k.notifies("item/started", turn, item)
	k.notifies("item/completed", turn, item)
}

func TestF6_SteerIsConfirmedWhenItIsInTheConversation(t *testing.T) {
	k := runningTurn(t)
	frames, ok := k.steers("op1")
	if !ok {
		t.Fatal("it is not taken")
	}
	wantFrames(t, frames, `t1.steer.op1.0 {"id":"steer.op1/t1","method":"turn/steer","params":{"clientUserMessageId":"op1","expectedTurnId":"U",`+
		`"input":[{"text":"text of op1","text_elements":[],"type":"text"}],"threadId":"T"}}`)
	sent := providers.Steered{Op: "op1", Frame: "t1.steer.op1.0", State: providers.Sent}
	k.wantSteered(sent)
	k.replies(`{"turnId":"U"}`)
	k.wantSteered(sent)
	events := len(k.events)
	k.echoes("U", "another's")
	k.wantSteered(sent)
	k.echoes("U", "op1")
	sent.State = providers.Confirmed
	k.wantSteered(sent)
	if len(k.events) != events {
		t.Errorf("it is told again: %+v", k.events[events:])
	}
	k.ends("U", "completed")
	k.wantEnd(session.Completed, "", "")
	k.wantSteered(sent)
}

// The same operation is given once, also by whoever does not know any more that it was.
func TestF5_SteerOfAKnownOperation(t *testing.T) {
	k := runningTurn(t)
	k.steers("op1")
	for range 2 {
		if frames, ok := k.steers("op1"); !ok || len(frames) > 0 {
			t.Errorf("%v, %s", ok, joined(frames))
		}
		k.ends("U", "completed")
	}
}

func TestF6_SteerWaitsForTheStart(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	for _, op := range []string{"op1", "op2"} {
		if frames, ok := k.steers(op); !ok || len(frames) > 0 {
			t.Errorf("%v, %s", ok, joined(frames))
		}
	}
	k.wantSteered(providers.Steered{Op: "op1", State: providers.Held}, providers.Steered{Op: "op2", State: providers.Held})
	k.say(`{"id":"` + k.last().ID + `","result":` + greeting + `}`)
	k.replies(`{"thread":{"id":"T"}}`)
	k.replies(`{"turn":{"id":"U"}}`)
	wantFrames(t, k.notifies("turn/started", "U", `"turn":{"id":"U"}`), `.0 {"id":"steer.op1/t1"`, `.1 {"id":"steer.op2/t1"`)
	wantFrames(t, k.notifies("turn/started", "U", `"turn":{"id":"U"}`))
}

func TestF6_SteerIsNotTaken(t *testing.T) {
	for name, come := range map[string]func(k *talk){
		"before the first order": func(*talk) {},
		"into an opening": func(k *talk) {
			k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir"})
		},
		"once the turn has ended": func(k *talk) { k.opens(); k.runs("U"); k.ends("U", "completed") },
		"once it is interrupted":  func(k *talk) { k.opens(); k.runs("U"); k.interrupts() },
		"once it is denied": func(k *talk) {
			k.opens()
			k.runs("U")
			k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`)
			k.answers(k.About().Pending[0].ID, providers.Fail)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			come(k)
			if frames, ok := k.steers("op1"); ok || len(frames) > 0 || len(k.About().Steered) > 0 {
				t.Errorf("%v, %s, %+v", ok, joined(frames), k.About().Steered)
			}
		})
	}
}

// While something is asked a message is taken, and taken in behind the answer.
func TestF6_SteerWhileSomethingIsAsked(t *testing.T) {
	k := runningTurn(t)
	k.say(`{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"c","command":"ls"}}`)
	if frames, ok := k.steers("op1"); !ok || len(frames) != 1 {
		t.Errorf("%v, %s", ok, joined(frames))
	}
}

func TestF6_SteerIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		come func(k *talk)
		why  string
	}{
		"by the server": {func(k *talk) {
			k.refuses("no active turn to steer")
		}, "no active turn to steer"},
		"behind the end": {func(k *talk) {
			k.say(`{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"U","status":"completed"}}}`)
			k.wantSteered(providers.Steered{Op: "op1", Frame: "t1.steer.op1.0", State: providers.Sent})
			k.refuses("no active turn to steer")
		}, "no active turn to steer"},
		"behind the end, in the next turn": {func(k *talk) {
			request := k.last().ID
			k.ends("U", "completed")
			k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
			k.runs("V")
			k.say(`{"id":"` + request + `","error":{"code":-32600,"message":"no active turn to steer"}}`)
		}, "no active turn to steer"},
		"by an interrupt": {func(k *talk) {
			k.replies(`{"turnId":"U"}`)
			k.interrupts()
			k.ends("U", "interrupted")
		}, overBefore},
		"by an interrupt, answered late": {func(k *talk) {
			request := k.last().ID
			k.interrupts()
			k.ends("U", "interrupted")
			k.say(`{"id":"` + request + `","result":{"turnId":"U"}}`)
		}, overBefore},
	} {
		t.Run(name, func(t *testing.T) {
			k := runningTurn(t)
			k.steers("op1")
			test.come(k)
			refused := providers.Steered{Op: "op1", Frame: "t1.steer.op1.0", State: providers.Refused, Reason: test.why}
			k.wantSteered(refused)
			k.echoes("U", "op1")
			k.wantSteered(refused)
		})
	}
}

// What never could be given is not given to the next turn.
func TestF6_SteerThatIsHeldEndsWithItsTurn(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.steers("op1")
	k.refuses("it broke")
	k.wantSteered(providers.Steered{Op: "op1", State: providers.Refused, Reason: "the turn ended before it could be given"})
	k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
	k.replies(`{"turn":{"id":"V"}}`)
	wantFrames(t, k.notifies("turn/started", "V", `"turn":{"id":"V"}`))
}

func TestF6_SteersAreBounded(t *testing.T) {
	k := runningTurn(t)
	for i := range wire.SteersKept {
		if _, ok := k.steers(fmt.Sprint("op", i)); !ok {
			t.Fatalf("the %dth is not taken", i)
		}
	}
	if _, ok := k.steers("one more"); ok {
		t.Error("there is no bound")
	}
	k.echoes("U", "op5")
	if _, ok := k.steers("one more"); !ok || len(k.About().Steered) != wire.SteersKept {
		t.Errorf("%v, %d kept", ok, len(k.About().Steered))
	}
	k = newTalk(t)
	k.opens()
	if _, ok := k.Steer("op", strings.Repeat("x", wire.HeldLimit+1)); ok {
		t.Error("any length is held")
	}
	if _, ok := k.Steer(strings.Repeat("x", idLimit+1), "x"); ok {
		t.Error("any name is taken")
	}
}
