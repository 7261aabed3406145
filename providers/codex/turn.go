package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/session"
)

// policy is what --approve means to codex.
type policy struct{ approval, sandbox, granted string }

// policies are by --approve; granted is what the server calls the sandbox in its answers.
var policies = map[string]policy{
	"none":  {"untrusted", "read-only", "readOnly"},
	"reads": {"on-request", "read-only", "readOnly"},
	"edits": {"on-request", "workspace-write", "workspaceWrite"},
	"all":   {"never", "danger-full-access", "dangerFullAccess"},
}

// answered goes on with what the answer to one of our requests allows.
func (f *fold) answered(what string, result json.RawMessage) {
	switch what {
	case "init":
		f.greeted(result)
	case "thread":
		f.opened(result)
	case "turn":
		var r struct{ Turn struct{ ID string } }
		_ = json.Unmarshal(result, &r)
		f.Turn = r.Turn.ID
	}
}

// greeted opens the thread.
func (f *fold) greeted(result json.RawMessage) {
	var r struct{ UserAgent string }
	_ = json.Unmarshal(result, &r)
	if _, rest, ok := strings.Cut(r.UserAgent, "/"); ok {
		f.Version, _, _ = strings.Cut(rest, " ")
	}
	f.send(map[string]any{"method": "initialized"})
	params := map[string]any{"cwd": f.Order.Cwd}
	if f.Order.Model != "" {
		params["model"] = f.Order.Model
	}
	if p, ok := policies[f.Order.Approve]; ok {
		params["approvalPolicy"], params["sandbox"] = p.approval, p.sandbox
	}
	if f.Order.Conversation == "" {
		f.call("thread", "thread/start", params)
		return
	}
	params["threadId"], params["excludeTurns"] = f.Order.Conversation, true
	f.call("thread", "thread/resume", params)
}

// opened checks that the thread is what was asked for, and gives the prompt.
func (f *fold) opened(result json.RawMessage) {
	var r struct {
		Thread         struct{ ID string }
		Model          string
		ApprovalPolicy json.RawMessage
		Sandbox        struct{ Type string }
	}
	_ = json.Unmarshal(result, &r)
	f.Model = r.Model
	if r.Thread.ID == "" {
		f.finish(session.Failed, "protocol", "codex opened no thread")
		return
	}
	if p, ok := policies[f.Order.Approve]; ok && (name(r.ApprovalPolicy) != p.approval || r.Sandbox.Type != p.granted) {
		f.finish(session.Failed, "config", fmt.Sprintf("codex did not take the policy: asked for %s with %s, got %s with %s",
			p.approval, p.sandbox, r.ApprovalPolicy, r.Sandbox.Type))
		return
	}
	f.Thread = r.Thread.ID
	f.call("turn", "turn/start", map[string]any{
		"threadId": f.Thread,
		"input":    []any{map[string]any{"type": "text", "text": f.Order.Prompt, "text_elements": []any{}}},
	})
}

// refused is an error answer. One to an interrupt means that there is nothing to interrupt.
func (f *fold) refused(what, message string) {
	switch what {
	case "init", "thread", "turn":
		code := "config"
		switch {
		case strings.Contains(message, "already has an active writer"):
			code = "busy"
		case strings.Contains(message, "no rollout found"), strings.Contains(message, "is archived"):
			code = "session_lost"
		}
		f.finish(session.Failed, code, message)
	}
}

// notified takes a notification in.
func (f *fold) notified(method string, params json.RawMessage) {
	switch method {
	case "turn/started":
		f.started(params)
	case "turn/completed":
		f.completed(params)
	case "item/started", "item/completed":
		f.item(method == "item/completed", params)
	case "item/agentMessage/delta":
		f.delta(params)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		f.thought(params)
	case "turn/plan/updated":
		f.plan(params)
	case "thread/tokenUsage/updated":
		f.used(params)
	case "error":
		f.failed(params)
	case "configWarning", "warning":
		f.warned(params)
	}
}

// started is the turn's confirmation; an interrupt that came before it is due now.
func (f *fold) started(params json.RawMessage) {
	var p struct{ Turn struct{ ID string } }
	_ = json.Unmarshal(params, &p)
	if f.Turn == "" {
		f.Turn = p.Turn.ID
	}
	f.Started = true
	if f.Stop {
		f.interrupt()
	}
}

// completed ends the turn. After an interrupt the command goes on in the background until it is told otherwise.
func (f *fold) completed(params json.RawMessage) {
	var p struct {
		Turn struct {
			ID, Status string
			Error      *turnError
		}
	}
	_ = json.Unmarshal(params, &p)
	if f.Turn != "" && p.Turn.ID != f.Turn {
		return
	}
	switch {
	case p.Turn.Status == "completed":
		f.finish(session.Completed, "", "")
	case p.Turn.Status == "interrupted":
		f.call("clean", "thread/backgroundTerminals/clean", map[string]string{"threadId": f.Thread})
		f.finish(session.Cancelled, "cancelled", "the turn was interrupted")
	case p.Turn.Error != nil:
		end := p.Turn.Error.end()
		f.finish(end.Outcome, end.Code, end.Message)
	case f.Failure != nil:
		f.finish(f.Failure.Outcome, f.Failure.Code, f.Failure.Message)
	default:
		f.finish(session.Failed, "protocol", "the turn ended as "+p.Turn.Status)
	}
}
