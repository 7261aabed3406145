package pi

import (
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestBegin_GreetsAndPrompts(t *testing.T) {
	k := newTalk(t)
	wantFrames(t, k.begin(order(1, "")), `t1.begin.0 {"id":"get_state/t1","type":"get_state"}`)
	if a := k.About(); a.Ready || a.Conversation != "" {
		t.Errorf("%+v", a)
	}
	k.say(answer("another", started))
	wantFrames(t, k.say(k.stateOf(0)), `{"id":"prompt/t1","message":"x","streamingBehavior":"followUp","type":"prompt"}`)
	if a := k.About(); !a.Ready || a.Conversation != conversation(order(1, "")) || a.Model != "p/m" || a.Prompt == "" || a.Confirmed {
		t.Errorf("%+v", a)
	}
	k.says(answer("prompt/t1", started), runs)
	if k.About().Confirmed {
		t.Error("it is not in the conversation yet")
	}
	if k.say(user("x")); !k.About().Confirmed {
		t.Error("it is in the conversation")
	}
}

func TestBegin_OpensOnly(t *testing.T) {
	k := newTalk(t)
	o := order(1, "")
	o.Open, o.Conversation = true, "C"
	wantFrames(t, k.opens(o))
	k.wantEnd(session.Completed, "", "")
	wantFrames(t, k.begin(order(2, "")), `"message":"x"`)
	if a := k.About(); a.Conversation != "C" || a.End != nil {
		t.Errorf("%+v", a)
	}
}

// One who may not do everything unasked has our extension, or is not driven: neither at once nor in a later turn.
func TestBegin_HeldToAsking(t *testing.T) {
	policy := order(1, "all")
	policy.Policy = true
	for _, o := range []providers.Order{order(1, "none"), order(1, "reads"), order(1, "edits"), policy} {
		k := newTalk(t)
		wantFrames(t, k.opens(o), `"type":"prompt"`)
		k = newTalk(t)
		k.begin(o)
		wantFrames(t, k.say(k.stateOf(0)))
		k.wantEnd(session.Failed, "config", "did not load the extension")
	}
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(signs, ended("stop", ""), settles) // it is too late to say so
	wantFrames(t, k.begin(order(2, "none")))
	k.wantEnd(session.Failed, "config", "without being told to ask")
}

func TestGreeted(t *testing.T) {
	state := func(more string) string {
		return `{"id":"get_state/t1","type":"response","success":true,"data":{"sessionId":"` + conversation(order(1, "")) + `"` + more + `}}`
	}
	for name, test := range map[string]struct{ line, model, code, message string }{
		"refused":              {refusal("get_state/t1", "no"), "", "protocol", "no"},
		"another conversation": {`{"id":"get_state/t1","type":"response","success":true,"data":{"sessionId":"D"}}`, "", "protocol", `"D"`},
		"no model":             {state(""), "", "config", "no model"},
		"an unknown model":     {state(`,"model":{"id":"unknown","name":"unknown","provider":"unknown"}`), "", "config", "no model"},
		"another model":        {state(`,"model":{"id":"m","provider":"p"}`), "other", "config", "p/m for other"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			o := order(1, "")
			o.Model = test.model
			k.begin(o)
			wantFrames(t, k.say(test.line))
			k.wantEnd(session.Failed, test.code, test.message)
			if k.About().Ready {
				t.Error("it is ready")
			}
		})
	}
}

func TestFits(t *testing.T) {
	m := model{ID: "claude-opus-4-5", Name: "Claude Opus 4.5", Provider: "anthropic"}
	for wish, want := range map[string]bool{
		"": true, "opus": true, "anthropic/claude-opus-4-5": true, "Opus 4.5:high": true, "opus-4-5:max": true, "sonnet": false, "opus:much": false,
	} {
		if got := m.fits(wish); got != want {
			t.Errorf("%q: %v", wish, got)
		}
	}
}

// A conversation that goes on and of which pi has nothing is another one.
func TestStands_Replaced(t *testing.T) {
	for count, told := range []int{1, 0} {
		k := newTalk(t)
		o := order(1, "")
		o.Conversation = "C"
		k.begin(o)
		k.say(k.stateOf(count))
		if n := len(k.told("conversation_replaced")); n != told || k.About().Conversation != "C" {
			t.Errorf("with %d messages it is told %d times", count, n)
		}
	}
}

func TestAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		line    string
		outcome session.Outcome
		code    string
	}{
		"no key":    {refusal("prompt/t1", "No API key found for anthropic. Use /login"), session.Failed, "auth"},
		"refused":   {refusal("prompt/t1", "no"), session.Failed, "config"},
		"handled":   {answer("prompt/t1", handled), session.Completed, ""},
		"too old":   {`{"id":"prompt/t1","type":"response","success":true}`, session.Failed, "config"},
		"not of it": {answer("prompt/t2", handled), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.opens(order(1, ""))
			if k.say(test.line); test.outcome == "" {
				k.wantOn()
				return
			}
			k.wantEnd(test.outcome, test.code, "")
		})
	}
}

// A command of an extension's that begins a run has that for its answer.
func TestAccepted_CommandBeginsARun(t *testing.T) {
	k := newTalk(t)
	k.opens(order(1, ""))
	k.says(runs, answer("prompt/t1", handled))
	k.wantOn()
	k.says(beginsToSay, pieceOf("hello"), ended("stop", ""), settles)
	k.wantEnd(session.Completed, "", "")
	if got := k.text(k.About().Message); got != "hello" {
		t.Errorf("%q", got)
	}
	k.wantTold("agent_turn_ended", `{"outcome":"completed"}`) // it was taken for an extension's own at first
}

// A prompt in the midst of an extension's run is given behind it, and one that came into it is answered by what follows.
func TestPrompt_BehindAnExtensionsRun(t *testing.T) {
	k := newTalk(t)
	k.works(order(1, ""))
	k.says(beginsToSay, pieceOf("one"), ended("stop", ""), settles, runs)
	wantFrames(t, k.begin(order(2, "")))
	k.says(user("theirs"), beginsToSay, pieceOf("theirs"), ended("stop", ""))
	wantFrames(t, k.say(settles), `"id":"prompt/t2"`)
	k.wantTold("agent_turn_started", `{"reason":"an extension of pi's has begun it"}`)
	k.wantTold("agent_turn_ended", `{"outcome":"completed"}`)

	k.says(runs, answer("prompt/t2", queued), user("theirs"), beginsToSay, pieceOf("theirs"), ended("stop", ""))
	if k.About().Confirmed {
		t.Error("another message was taken for the prompt")
	}
	k.says(user("x"), beginsToSay, pieceOf("two"), ended("stop", ""), settles)
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); k.text(a.Message) != "two" || a.Usage.InputTokens != 100 {
		t.Errorf("%+v", a)
	}
}

// One that it never came to is not in its queue any more.
func TestPrompt_NeverTakenIn(t *testing.T) {
	for code, want := range map[string]session.Outcome{"transient": session.Failed, "cancelled": session.Cancelled} {
		k := newTalk(t)
		k.opens(order(1, ""))
		k.says(runs, answer("prompt/t1", queued))
		if want == session.Cancelled {
			wantFrames(t, k.interrupts(), "clear_queue", "abort")
		}
		wantFrames(t, k.say(breaksOff), `"id":"clear_queue/t1"`)
		k.wantOn()
		k.say(answer("clear_queue/t1", ""))
		k.wantEnd(want, code, "")
	}
}
