package claude

import (
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

func TestBegin_GreetsAndPrompts(t *testing.T) {
	k := newTalk(t)
	wantFrames(t, k.begin(order(1, "")), `t1.begin.0 {"request":{"hooks":null,"subtype":"initialize"}`)
	if a := k.About(); a.Ready || a.Conversation != "" {
		t.Errorf("%+v", a)
	}
	k.say(`{"type":"control_response","response":{"subtype":"success","request_id":"another","response":{}}}`)
	wantFrames(t, k.greets(""), `"uuid":"`+k.promptID())
	if a := k.About(); !a.Ready || a.Conversation != conversation(order(1, "")) || a.Version != Tested || a.Prompt == "" || a.Confirmed {
		t.Errorf("%+v", a)
	}
}

func TestBegin_OpensOnly(t *testing.T) {
	k := newTalk(t)
	o := order(1, "")
	o.Open, o.Conversation = true, "C"
	k.begin(o)
	wantFrames(t, k.greets(""))
	k.wantEnd(session.Completed, "", "")
	wantFrames(t, k.begin(order(2, "")), `"content":"x"`)
	if a := k.About(); a.Conversation != "C" || a.End != nil {
		t.Errorf("%+v", a)
	}
}

// One who may not do everything unasked asks for everything, or is not driven.
func TestBegin_HeldToAsking(t *testing.T) {
	for _, test := range []struct {
		name   string
		order  providers.Order
		answer string
		hook   bool
		code   string
	}{
		{"none", order(1, "none"), hooked, true, ""},
		{"reads", order(1, "reads"), hooked, true, ""},
		{"edits", order(1, "edits"), hooked, true, ""},
		{"a policy", providers.Order{Turn: "t1", Approve: "all", Policy: true}, hooked, true, ""},
		{"all", order(1, "all"), "", false, ""},
		{"its own", order(1, ""), "", false, ""},
		{"a version without hooks", order(1, "none"), "", true, "config"},
		{"one that lets a tool through when the hook fails", order(1, "none"), `,"hooks_applied":true`, true, "config"},
		{"another mode", order(1, "all"), `,"current_permission_mode":"acceptEdits"`, false, "config"},
		{"another mode of its own", order(1, ""), `,"current_permission_mode":"acceptEdits"`, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			want := `"hooks":null`
			if test.hook {
				want = `"hooks":{"PreToolUse":[{"hookCallbackIds":["gate"],"matcher":"","onFailure":"block","timeout":2000000}],"UserPromptSubmit":[{"hookCallbackIds":["prompt"],`
			}
			wantFrames(t, k.begin(test.order), want)
			frames := k.greets(test.answer)
			if test.code != "" {
				wantFrames(t, frames)
				k.wantEnd(session.Failed, test.code, "")
				return
			}
			wantFrames(t, frames, `"type":"user"`)
		})
	}
}

// Nor is one that leaves its mode in the midst.
func TestBegins_ModeIsLeft(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, "none"))
	k.greets(hooked)
	k.say(prompted)
	init := `{"type":"system","subtype":"init","permissionMode":"bypassPermissions","user_message_uuids":["` + k.promptID() + `"]}`
	wantFrames(t, k.says(stateIs("running"), init), `"subtype":"interrupt"`)
	k.says(results("error_during_execution", `,"terminal_reason":"aborted_streaming"`))
	k.wantEnd(session.Failed, "config", "bypassPermissions")
}

// Nor is one whose hooks are off, whatever it says of them.
func TestBegins_HooksAreOff(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, "none"))
	k.greets(hooked)
	wantFrames(t, k.says(stateIs("running"), k.inits(k.promptID())), `"subtype":"interrupt"`)
	k.says(results("error_during_execution", `,"terminal_reason":"aborted_streaming"`))
	k.wantEnd(session.Failed, "config", "skips hooks")
}

func TestGreeted_Refused(t *testing.T) {
	k := newTalk(t)
	k.begin(order(1, ""))
	k.say(`{"type":"control_response","response":{"subtype":"error","request_id":"` + k.Waiting + `","error":"no"}}`)
	k.wantEnd(session.Failed, "config", "no")
}

func TestUnopened(t *testing.T) {
	gone := results("error_during_execution", `,"num_turns":0,"errors":["No conversation found with session ID: C"]`)
	for _, test := range []struct{ conversation, line, code string }{
		{"C", gone, "session_lost"},
		{"", gone, "config"},
		{"C", results("error_during_execution", `,"errors":["something else"]`), "config"},
	} {
		k := newTalk(t)
		o := order(1, "")
		o.Conversation = test.conversation
		k.begin(o)
		k.say(test.line)
		k.wantEnd(session.Failed, test.code, "")
		if k.About().Ready {
			t.Error("it is ready")
		}
	}
}

func TestIsVersion_NewerIsTold(t *testing.T) {
	for version, told := range map[string]int{"2.1.332": 0, "2.1.999": 0, "2.0.1": 0, "2.2.0": 1, "3.0": 1, "": 0, "x": 0} {
		k := newTalk(t)
		k.isVersion(version)
		if n := len(k.fold.Told()); n != told {
			t.Errorf("%q is told %d times", version, n)
		}
	}
}

// A conversation that goes on under another id is told of.
func TestMoved(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.say(`{"type":"system","subtype":"init","session_id":"D","user_message_uuids":["` + k.promptID() + `"]}`)
	if a := k.About(); a.Conversation != "D" {
		t.Errorf("%+v", a)
	}
	k.wantTold("conversation_replaced", `{"was":"`+conversation(order(1, ""))+`","why":"Claude Code went on under another id"}`)
}
