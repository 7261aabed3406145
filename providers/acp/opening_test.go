package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// Nothing is offered to an agent that it could do by way of us, and the version is the first.
func TestOpening_OffersNothing(t *testing.T) {
	k := with(t, agent{}, providers.Order{})
	k.said(`"protocolVersion":1`, `"readTextFile":false`, `"writeTextFile":false`, `"terminal":false`, `"session":{"notices":{}}`)
	k.hears(answerTo("initialize", `{"protocolVersion":2}`))
	k.ended(session.Failed, "protocol", "version 2")
}

func TestOpening_NewSession(t *testing.T) {
	k := prompted(t, agent{}, providers.Order{})
	a := k.fold.About()
	if !a.Ready || a.Conversation != "s" || a.Version != "9" || a.Prompt != "7.0" && a.Prompt == "" || a.Confirmed {
		t.Errorf("%+v", a)
	}
	open := with(t, agent{}, providers.Order{Open: true})
	open.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s"}`))
	open.ended(session.Completed, "", "")
	lost := with(t, agent{}, providers.Order{})
	lost.hears(answerTo("initialize", hello), answerTo("open", `{}`))
	lost.ended(session.Failed, "protocol", "opened no session")
}

// One that can be resumed is; else it is loaded, and what that tells is of before.
func TestOpening_GoesOn(t *testing.T) {
	on := providers.Order{Conversation: "s"}
	k := with(t, agent{}, on)
	k.hears(answerTo("initialize", hello))
	k.said("session/resume", `"sessionId":"s"`)
	k.hears(answerTo("open", `{}`))
	k.said("session/prompt")

	k = with(t, agent{}, on)
	k.hears(answerTo("initialize", loads))
	k.said("session/load")
	k.hears(piece("of before", "m0"), answerTo("open", `{}`))
	k.said("session/prompt")
	if n := k.count("agent_message_chunk", ""); n != 0 {
		t.Errorf("%d pieces", n)
	}

	k = with(t, agent{}, on)
	k.hears(answerTo("initialize", neither))
	k.ended(session.Failed, "config", "cannot go on")
}

// Gemini CLI tells what was behind its answer.
func TestOpening_ReplaysLate(t *testing.T) {
	k := with(t, agent{replaysLate: true}, providers.Order{Conversation: "s"})
	k.hears(answerTo("initialize", loads), answerTo("open", `{}`), piece("of before", ""))
	k.said("session/load")
	k.hears(told(`"sessionUpdate":"available_commands_update","availableCommands":[]`))
	k.said("session/prompt")
	k.hears(piece("now", ""), answerTo("prompt", `{"stopReason":"end_turn"}`))
	if n := k.count("agent_message_chunk", ""); n != 1 {
		t.Errorf("%d pieces", n)
	}
	k.ended(session.Completed, "", "")
}

// A conversation that is gone is replaced by one fresh one, and that is told.
func TestOpening_Replaces(t *testing.T) {
	for _, e := range []string{
		errorTo("open", -32002, "Resource not found", ""), errorTo("open", -32603, "Internal error", `{"details":"no rollout found for thread id s"}`),
		errorTo("open", -32603, "Internal error: OpenCode service failure", `{"service":"session"}`), errorTo("open", -1, "No conversation found with this id", ""),
	} {
		k := with(t, agent{}, providers.Order{Conversation: "s"})
		k.hears(answerTo("initialize", hello), e)
		k.said("session/new")
		if n := k.count("conversation_replaced", `"was":"s"`); n != 1 {
			t.Errorf("%s: told %d times", e, n)
		}
	}
	k := with(t, agent{}, providers.Order{Conversation: "s"})
	k.hears(answerTo("initialize", hello), errorTo("open", -32000, "Authentication required", ""))
	k.ended(session.Failed, "auth", "Authentication required")
	// That something else is not there is no reason to give it up.
	for _, e := range []string{
		errorTo("open", -32603, "Internal error: OpenCode service failure", `{"service":"session","errorName":"SQLiteError"}`),
		errorTo("open", -32603, "Internal error", `{"details":"git: command not found"}`), errorTo("open", -32602, "Invalid params: model not found", ""),
	} {
		k := with(t, agent{}, providers.Order{Conversation: "s"})
		k.hears(answerTo("initialize", hello), e)
		k.ended(session.Failed, "config", "")
	}
	k = with(t, agent{}, providers.Order{Conversation: "s", Lost: true})
	k.hears(answerTo("initialize", hello))
	k.said("session/new")
}

// The mode is stated, by whichever way there is, and held to.
func TestOpening_Mode(t *testing.T) {
	a := agent{modes: map[string]string{"none": "default", "all": "free"}}
	k := with(t, a, providers.Order{Approve: "none"})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.said("session/set_mode", `"modeId":"default"`)
	if k.fold.About().Ready {
		t.Error("it is ready before its mode is chosen")
	}
	k.hears(answerTo("choose", `{}`))
	k.said("session/prompt")

	// Rules want it to ask for all that it can.
	k = with(t, a, providers.Order{Approve: "all", Policy: true})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.said(`"modeId":"default"`)
	k.hears(errorTo("choose", -32602, "Invalid params", ""))
	k.ended(session.Failed, "config", "Invalid params")

	k = with(t, a, providers.Order{Approve: "all"})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.ended(session.Failed, "config", "does not offer the mode free, but auto, default")
	k = with(t, a, providers.Order{})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.said("session/prompt")

	// One that the order names is chosen of any agent.
	k = with(t, agent{}, providers.Order{Mode: "default"})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.said("session/set_mode", `"modeId":"default"`)
	k = with(t, agent{}, providers.Order{Mode: "none"})
	k.hears(answerTo("initialize", hello), answerTo("open", twoModes))
	k.ended(session.Failed, "config", "does not offer the mode none, but auto, default")
}

const options = `[{"id":"model","category":"model","currentValue":"a","options":[{"value":"a"},{"options":[{"value":"b"}]}]}]`

func TestOpening_Model(t *testing.T) {
	k := with(t, agent{}, providers.Order{Model: "b"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s","configOptions":`+options+`}`))
	k.said("session/set_config_option", `"configId":"model"`, `"value":"b"`)
	k.hears(answerTo("choose", `{"configOptions":`+options+`}`)) // it says that it still is the other one
	k.ended(session.Failed, "config", "did not take the model b")

	k = with(t, agent{}, providers.Order{Model: "c"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s","configOptions":`+options+`}`))
	k.ended(session.Failed, "config", "does not offer the model c, but a, b")

	k = with(t, agent{}, providers.Order{Model: "y"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s","models":{"currentModelId":"x","availableModels":[{"modelId":"x"},{"modelId":"y"}]}}`))
	k.said("session/set_model", `"modelId":"y"`)
	k.hears(answerTo("choose", `{}`))
	if a := k.fold.About(); a.Model != "y" || !a.Ready {
		t.Errorf("%+v", a)
	}
}

// There may be more models than a state is to have in it: those that are not kept can be chosen all the same.
func TestOpening_ManyModels(t *testing.T) {
	var all []string
	for i := range 3_000 {
		all = append(all, fmt.Sprintf(`{"value":"m%d"}`, i))
	}
	offered := func(current string) string {
		return fmt.Sprintf(`[{"id":"model","category":"model","currentValue":%q,"options":[{"options":[%s]}]}]`, current, strings.Join(all, ","))
	}
	k := with(t, agent{}, providers.Order{Model: "m2999"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s","configOptions":`+offered("m0")+`}`))
	k.said("session/set_config_option", `"value":"m2999"`)
	if n := len(k.fold.State()); n > 4_000 {
		t.Errorf("its state has %d bytes", n)
	}
	k.hears(answerTo("choose", `{"configOptions":`+offered("m2999")+`}`))
	k.said("session/prompt")
	k = with(t, agent{}, providers.Order{Model: "other"})
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s","configOptions":`+offered("m0")+`}`))
	k.ended(session.Failed, "config", "does not offer the model other, but m0, m1, ")
}

// What the agent wants to have seen is told whenever it comes.
func TestOpening_Notices(t *testing.T) {
	k := with(t, agent{}, providers.Order{})
	k.hears(answerTo("initialize", hello), told(`"sessionUpdate":"notice","severity":"warning","title":"no such key","description":"in line 3"`))
	if n := k.count("agent_notice", "no such key: in line 3"); n != 1 {
		t.Errorf("%+v", k.events)
	}
}
