package codex

import (
	"encoding/json"

	"github.com/pintle/pintle/providers"
)

// item is a thing of a turn. Only what is told of it is decoded.
type item struct {
	Type, ID, Text, Command, Cwd, Status, Tool, Server, Query string
	AggregatedOutput                                          *string
	ExitCode                                                  *int
	Changes                                                   []struct {
		Path, Diff string
		Kind       struct{ Type string }
	}
}

// text is ACP's block of text.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// chunk is a piece of a message.
type chunk struct {
	Content   text   `json:"content"`
	MessageID string `json:"messageId,omitempty"`
}

// item tells a thing's beginning or end.
func (f *fold) item(ended bool, params json.RawMessage) {
	var p struct{ Item item }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch it := p.Item; it.Type {
	case "agentMessage":
		f.message(it, ended)
	case "userMessage", "reasoning", "":
	default:
		f.tool(it, ended)
	}
}

// message begins another message. One that came without deltas is told whole.
func (f *fold) message(it item, ended bool) {
	if it.ID != f.Message {
		f.Message, f.Spoken = it.ID, false
	}
	if ended && !f.Spoken && it.Text != "" {
		f.Spoken = true
		f.tell("agent_message_chunk", chunk{text{"text", it.Text}, it.ID})
	}
}

func (f *fold) delta(params json.RawMessage) {
	var p struct{ ItemID, Delta string }
	if json.Unmarshal(params, &p) != nil || p.Delta == "" {
		return
	}
	f.Message, f.Spoken = p.ItemID, true
	f.tell("agent_message_chunk", chunk{text{"text", p.Delta}, p.ItemID})
}

func (f *fold) thought(params json.RawMessage) {
	var p struct{ ItemID, Delta string }
	if json.Unmarshal(params, &p) == nil && p.Delta != "" {
		f.tell("agent_thought_chunk", chunk{text{"text", p.Delta}, p.ItemID})
	}
}

// tool is ACP's tool call. Output comes with the end alone: its deltas are not complete.
func (f *fold) tool(it item, ended bool) {
	data := map[string]any{"toolCallId": it.ID, "status": status(it, ended)}
	f.Open--
	if !ended {
		f.Open += 2
		data["title"], data["kind"] = title(it)
		if it.Command != "" {
			data["rawInput"] = map[string]string{"command": it.Command, "cwd": it.Cwd}
		}
		if at := locations(it); len(at) > 0 {
			data["locations"] = at
		}
		f.tell("tool_call", data)
		return
	}
	if it.Type == "commandExecution" {
		out := map[string]any{"exitCode": it.ExitCode}
		if it.AggregatedOutput != nil {
			out["output"] = *it.AggregatedOutput
		}
		data["rawOutput"] = out
	}
	if it.Type == "fileChange" {
		data["rawOutput"] = map[string]any{"changes": it.Changes}
	}
	f.tell("tool_call_update", data)
}

// status is ACP's word for how far a tool call is.
func status(it item, ended bool) string {
	switch {
	case !ended:
		return "in_progress"
	case it.Status == "failed" || it.Status == "declined":
		return "failed"
	}
	return "completed"
}

// title is what a tool call is called, and ACP's kind of it.
func title(it item) (title, kind string) {
	switch it.Type {
	case "commandExecution":
		return it.Command, "execute"
	case "fileChange":
		return "change files", "edit"
	case "webSearch":
		return it.Query, "search"
	case "mcpToolCall":
		return it.Server + " " + it.Tool, "other"
	}
	return it.Type, "other"
}

func locations(it item) (at []map[string]string) {
	for _, c := range it.Changes {
		at = append(at, map[string]string{"path": c.Path})
	}
	return at
}

// plan is ACP's plan.
func (f *fold) plan(params json.RawMessage) {
	var p struct {
		Plan []struct{ Step, Status string }
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	entries := []map[string]string{}
	for _, s := range p.Plan {
		status := s.Status
		if status == "inProgress" {
			status = "in_progress"
		}
		entries = append(entries, map[string]string{"content": s.Step, "status": status, "priority": "medium"})
	}
	f.tell("plan", map[string]any{"entries": entries})
}

// used is what the thread has cost so far.
func (f *fold) used(params json.RawMessage) {
	var p struct {
		TokenUsage struct {
			Total struct{ InputTokens, CachedInputTokens, OutputTokens int64 }
		}
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	t := p.TokenUsage.Total
	f.Usage = providers.Usage{InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedInputTokens}
	f.tell("usage_update", f.Usage)
}

// warned tells what the agent wants somebody to know.
func (f *fold) warned(params json.RawMessage) {
	var p struct{ Message, Summary string }
	if json.Unmarshal(params, &p) == nil && p.Message+p.Summary != "" {
		f.tell("agent_notice", map[string]string{"message": p.Message + p.Summary})
	}
}
