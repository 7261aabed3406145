package claude

import (
	"encoding/json"
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// pending is a permission that nobody has answered, with the agent's own id of the question.
type pending struct {
	providers.Permission
	Request string `json:"request"`
}

// request is what the agent asks of us.
type request struct {
	Subtype word
	Tool    ident `json:"tool_name"`
	Input   json.RawMessage
	Reason  word  `json:"decision_reason"`
	Call    ident `json:"tool_use_id"`
	Agent   ident `json:"agent_id"`
	Forced  bool  `json:"requires_user_interaction"`
	Hook    ident `json:"callback_id"`
	Server  ident `json:"mcp_server_name"`
	Message word
}

// asked takes in what the agent asks of us. What can be answered by yes or no is a permission and waits for its answer; the
// rest is refused at once, since the turn would wait for ever.
func (f *fold) asked(m message) {
	var q request
	read(m.Request, &q)
	switch id := string(m.RequestID); q.Subtype {
	case "hook_callback":
		f.hooked(id, string(q.Hook))
	case "can_use_tool":
		f.wants(id, q)
	case "elicitation":
		f.Notice("the MCP server " + string(q.Server) + " asked for an answer, which cannot be given here: " + string(q.Message))
		f.reply(id, map[string]any{"action": "decline"})
	default:
		f.Send(map[string]any{"type": "control_response", "response": map[string]any{
			"subtype": "error", "request_id": id, "error": "not available here",
		}})
	}
}

// asks is why a use of a tool is a question: what we say of it ourselves.
const asks = "pintle was told to ask"

// hooked turns a use of a tool into a question.
func (f *fold) hooked(id, hook string) {
	answer := map[string]any{}
	f.Hooked = f.Hooked || hook == sign
	if hook != sign && gated(f.Order) {
		answer["hookSpecificOutput"] = map[string]any{
			"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": asks,
		}
	}
	f.reply(id, answer)
}

// reply answers what the agent asked.
func (f *fold) reply(id string, answer map[string]any) {
	f.Send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": id, "response": answer,
	}})
}

// unanswerable are the tools that are questions to a person, and what the model is told in place of an answer. To approve a
// plan is to allow what is in it.
var unanswerable = map[string]string{
	"AskUserQuestion": "Nobody is there to answer questions. Decide by yourself, go on, and say what you have assumed.",
	"EnterPlanMode":   "Nobody is there to approve a plan. Go on without one.",
	"ExitPlanMode":    "Nobody is there to approve the plan. End your turn with it as your answer.",
}

// wants takes in that the agent wants to use a tool.
func (f *fold) wants(id string, q request) {
	known := slices.ContainsFunc(f.Pending, func(p pending) bool { return p.Request == id })
	in := inputOf(q.Input)
	d := f.deed(string(q.Tool), in)
	instead, question := unanswerable[string(q.Tool)]
	all := f.Order.Approve == "all" && !f.Order.Policy
	switch {
	case known: // said again
	case question && !(all && d.kind == "switch_mode"):
		f.Notice("Claude Code asked " + questionOf(string(q.Tool), in) + ", which cannot be answered here")
		f.deny(id, instead)
	case q.Forced && d.kind != "switch_mode":
		f.Notice("Claude Code asked " + d.wish() + ", which needs a person, and was refused")
		f.deny(id, "Nobody is there to do this. Go on without it.")
	case !f.ours():
		f.Notice("Claude Code asked " + d.wish() + " outside of a turn, and was refused")
		f.deny(id, refused)
	case all:
		f.alive()
		f.reply(id, map[string]any{"behavior": "allow"})
	case len(f.Pending) == wire.Most:
		f.Notice("Claude Code asked " + d.wish() + ": more than can be kept, and was refused")
		f.deny(id, refused)
	default:
		f.ask(id, q, d)
	}
}

// questionOf is what a person is asked, in words.
func questionOf(tool string, in input) string {
	switch {
	case tool == "AskUserQuestion" && len(in.Questions) > 0:
		return "a question: " + string(in.Questions[0].Question)
	case tool == "AskUserQuestion":
		return "a question"
	}
	return "to have a plan approved"
}

// refused is what the model is told of what it was refused.
const refused = "This was not allowed. Do not try it in another way; go on without it, or say what you would need."

func (f *fold) deny(id, why string) {
	f.reply(id, map[string]any{"behavior": "deny", "message": why})
}

// ask has a permission wait for its answer.
func (f *fold) ask(id string, q request, d deed) {
	f.alive()
	f.Asked++
	p := pending{Request: id, Permission: providers.Permission{
		ID: wire.Permission(f.Order.Turn, f.Asked, []byte(id)), ToolCall: string(q.Call), Title: wire.Clip(d.wish(), wire.TitleLimit), Kind: d.kind,
		Tool: string(q.Tool), Command: d.command, Paths: d.paths,
	}}
	if q.Reason != asks {
		p.Reason = wire.Clip(string(q.Reason), wire.WordsLimit)
	}
	f.Tell("permission_requested", map[string]any{
		"permission": p.ID, "reason": p.Reason, "options": []providers.Decision{providers.Allow, providers.Deny},
		"toolCall": map[string]any{"toolCallId": p.ToolCall, "title": p.Title, "kind": p.Kind, "rawInput": wire.Shown(q.Input)},
	})
	f.Pending = append(f.Pending, p)
}

// Answer answers what was asked.
func (f *fold) Answer(permission string, d providers.Decision) []providers.Frame {
	i := slices.IndexFunc(f.Pending, func(p pending) bool { return p.ID == permission })
	if i < 0 {
		return nil
	}
	p := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	return f.Made(f.ordered("answer."+permission), 0, func() {
		switch d {
		case providers.Allow:
			f.reply(p.Request, map[string]any{"behavior": "allow"})
		case providers.Deny:
			f.deny(p.Request, refused)
		default:
			f.Denied = "it asked " + p.Title + ", and nobody was there to allow it"
			f.reply(p.Request, map[string]any{"behavior": "deny", "message": refused, "interrupt": true})
			f.interrupt() // an agent that was started ends alone by that
		}
	})
}

// lapsed has permissions not be pending any more.
func (f *fold) lapsed(which func(pending) bool) {
	for _, p := range f.Pending {
		if which(p) {
			f.Tell("permission_resolved", map[string]string{"permission": p.ID, "decision": "lapsed"})
		}
	}
	f.Pending = slices.DeleteFunc(f.Pending, which)
}
