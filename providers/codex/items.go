package codex

import (
	"encoding/json"
	"strings"
)

// item is a thing of a turn. Only what is told of it is decoded.
type item struct {
	ID, ClientID                                                  ident
	Type, Text, Command, Cwd, Status, Tool, Server, Query, Prompt string
	AggregatedOutput                                              *string
	ExitCode                                                      *int
	Changes                                                       []change
	AgentThreadID                                                 ident
	ReceiverThreadIDs                                             []ident
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

// item tells a thing's beginning or end. Messages are told if they are the newest turn's; calls always are: what was begun
// in an earlier turn, or by an agent that this one has started, is done in the same directory.
func (f *fold) item(ended bool, params json.RawMessage) {
	var p struct {
		where
		Item item
	}
	_ = json.Unmarshal(params, &p)
	f.alive(p.where, p.Item.Type != "userMessage")
	f.starts(p.Item)
	switch it := p.Item; it.Type {
	case "agentMessage":
		if f.mine(p.where) {
			f.message(it, ended)
		}
	case "userMessage":
		if f.own(p.ThreadID) {
			f.confirmed(string(it.ClientID)) // whose message it is was told by whoever gave it
		}
	case "reasoning", "":
	default:
		f.tool(p.where, it, ended)
	}
}

// starts notes the agents that are started. Others may be written to, and be another session's.
func (f *fold) starts(it item) {
	switch {
	case it.Type == "subAgentActivity":
		f.adopt(it.AgentThreadID)
	case it.Type == "collabAgentToolCall" && it.Tool == "spawnAgent":
		for _, thread := range it.ReceiverThreadIDs {
			f.adopt(thread)
		}
	}
}

// alive is that something came of the turn: what was the trouble is over.
func (f *fold) alive(w where, begun bool) {
	if f.Prompt == "" || f.End != nil {
		return
	}
	if f.mine(w) {
		f.Trouble = ""
	}
	f.Begun = f.Begun || begun && (f.mine(w) || !f.own(w.ThreadID))
}

// message begins another message. One that came without deltas is told whole.
func (f *fold) message(it item, ended bool) {
	if string(it.ID) != f.Message {
		f.Message, f.Spoken = string(it.ID), false
	}
	if ended && !f.Spoken && it.Text != "" {
		f.Spoken = true
		f.tell("agent_message_chunk", chunk{text{"text", it.Text}, f.Message})
	}
}

// piece is a part of a text.
type piece struct {
	where
	ItemID ident
	Delta  string
}

// part reads one of the newest turn's.
func (f *fold) part(params json.RawMessage) (p piece, ok bool) {
	_ = json.Unmarshal(params, &p)
	f.alive(p.where, true)
	return p, f.mine(p.where) && p.Delta != ""
}

func (f *fold) delta(params json.RawMessage) {
	if p, ok := f.part(params); ok {
		f.Message, f.Spoken = string(p.ItemID), true
		f.tell("agent_message_chunk", chunk{text{"text", p.Delta}, f.Message})
	}
}

func (f *fold) thought(params json.RawMessage) {
	if p, ok := f.part(params); ok {
		f.tell("agent_thought_chunk", chunk{text{"text", p.Delta}, string(p.ItemID)})
	}
}

// tool is ACP's tool call. Output comes with the end alone: its deltas are not complete.
func (f *fold) tool(w where, it item, ended bool) {
	if ended {
		f.closes(it)
		f.tell("tool_call_update", it.result())
		return
	}
	f.opens(w, it)
	title, kind := f.title(it)
	data := map[string]any{"toolCallId": it.ID, "status": "in_progress", "title": title, "kind": kind}
	if it.Command != "" {
		data["rawInput"] = map[string]string{"command": it.Command, "cwd": it.Cwd}
	}
	if it.Type == "fileChange" && len(it.Changes) > 0 {
		data["rawInput"] = shown(it.Changes, changesLimit)
	}
	if at := locations(it); len(at) > 0 {
		data["locations"] = at
	}
	f.tell("tool_call", data)
}

// result is how a tool call ended.
func (it item) result() map[string]any {
	data := map[string]any{"toolCallId": it.ID, "status": "completed"}
	if it.Status == "failed" || it.Status == "declined" {
		data["status"] = "failed"
	}
	switch it.Type {
	case "commandExecution":
		out := map[string]any{"exitCode": it.ExitCode}
		if it.AggregatedOutput != nil {
			out["output"] = *it.AggregatedOutput
		}
		data["rawOutput"] = out
	case "fileChange":
		data["rawOutput"] = map[string]any{"changes": it.Changes}
	}
	return data
}

// title is what a tool call is called, and ACP's kind of it.
func (f *fold) title(it item) (title, kind string) {
	switch it.Type {
	case "commandExecution":
		return it.Command, "execute"
	case "fileChange":
		return f.changing(it.paths()), "edit"
	case "webSearch":
		return it.Query, "search"
	case "mcpToolCall":
		return it.Server + " " + it.Tool, "other"
	case "collabAgentToolCall":
		return strings.TrimSpace(it.Tool + " " + clip(it.Prompt, wordsLimit)), "other"
	}
	return it.Type, "other"
}

func (it item) paths() (paths []string) {
	for _, c := range it.Changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// changing names files, as seen from where the agent works.
func (f *fold) changing(paths []string) string {
	var names []string
	for _, path := range paths {
		names = append(names, f.relative(path))
	}
	if len(names) == 0 {
		return "change files"
	}
	return "change " + strings.Join(names, ", ")
}

// relative is a path as seen from the order's directory, or from what the server calls that.
func (f *fold) relative(path string) string {
	for _, dir := range []string{f.Order.Cwd, f.Dir} {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/"); ok && dir != "" {
			return rest
		}
	}
	return path
}

func locations(it item) (at []map[string]string) {
	for _, path := range it.paths() {
		at = append(at, map[string]string{"path": path})
	}
	return at
}

// plan is ACP's plan.
func (f *fold) plan(params json.RawMessage) {
	var p struct {
		where
		Plan []struct{ Step, Status string }
	}
	_ = json.Unmarshal(params, &p)
	if !f.mine(p.where) {
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

// warned tells what the agent wants somebody to know.
func (f *fold) warned(params json.RawMessage) {
	var p struct{ Message, Summary string }
	_ = json.Unmarshal(params, &p)
	if p.Message+p.Summary != "" {
		f.notice(p.Message + p.Summary)
	}
}
