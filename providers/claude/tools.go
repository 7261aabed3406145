package claude

import (
	"encoding/json"
	"slices"

	"github.com/pintle/pintle/providers/wire"
)

// call is the use of a tool that has not ended.
type call struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Parent  string `json:"parent,omitempty"`  // the call that has started the agent that makes this one
	Subject string `json:"subject,omitempty"` // of a step of the plan: what it is
}

// find is where an open call is; -1 if it is not.
func (f *fold) find(id string) int {
	return slices.IndexFunc(f.Calls, func(c call) bool { return c.ID == id })
}

// opens tells a call. What is over the bound is told, and not counted.
func (f *fold) opens(b block, parent string) {
	if b.ID == "" || f.find(string(b.ID)) >= 0 {
		return
	}
	in := inputOf(b.Input)
	if len(f.Calls) < wire.Most {
		f.Calls = append(f.Calls, call{ID: string(b.ID), Tool: string(b.Name), Parent: parent, Subject: wire.Clip(string(in.Subject), wire.WordsLimit)})
	}
	if b.Name == "TodoWrite" && parent == "" {
		f.planned(in.Todos)
	}
	d := f.deed(string(b.Name), in)
	data := map[string]any{
		"toolCallId": b.ID, "status": "in_progress", "title": d.title, "kind": d.kind, "rawInput": wire.Shown(b.Input),
	}
	if at := d.locations(); len(at) > 0 {
		data["locations"] = at
	}
	f.Tell("tool_call", data)
}

// closes tells what came of a call.
func (f *fold) closes(b block, outcome json.RawMessage, parent string) {
	if b.Call == "" {
		return
	}
	status := "completed"
	if b.IsError {
		status = "failed"
	}
	f.Tell("tool_call_update", map[string]any{"toolCallId": b.Call, "status": status, "rawOutput": output(b, outcome)})
	i := f.find(string(b.Call))
	if i < 0 {
		return
	}
	c := f.Calls[i]
	f.Calls = slices.Delete(f.Calls, i, i+1)
	if parent == "" {
		f.replan(c, outcome)
	}
}

// output is what came out: of a command, its outputs; of anything else, what the model is told.
func output(b block, outcome json.RawMessage) map[string]any {
	var command struct {
		Stdout, Stderr *string
		Interrupted    bool
		Task           ident `json:"backgroundTaskId"`
	}
	if read(outcome, &command) && command.Stdout != nil && command.Stderr != nil {
		out := map[string]any{"stdout": *command.Stdout, "stderr": *command.Stderr}
		if command.Interrupted {
			out["interrupted"] = true
		}
		if command.Task != "" {
			out["backgroundTaskId"] = command.Task
		}
		return out
	}
	return map[string]any{"output": b.Content.text()}
}

// settle ends what is open once nothing is at work any more: its end is not told then.
func (f *fold) settle() {
	for _, c := range f.Calls {
		f.Tell("tool_call_update", map[string]any{"toolCallId": c.ID, "status": "failed"})
	}
	f.Calls = nil
}

// task goes on beside the turns.
type task struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

// background takes in what goes on beside the turns by now.
func (f *fold) background(line []byte) {
	var m struct {
		Tasks []struct {
			ID   ident `json:"task_id"`
			Kind ident `json:"task_type"`
		}
	}
	read(line, &m)
	f.Tasks = nil
	for _, t := range m.Tasks[:min(wire.Most, len(m.Tasks))] {
		f.Tasks = append(f.Tasks, task{string(t.ID), string(t.Kind)})
	}
}

// helpers is how many agents are at work in the background, as agents that are started are by default, and the like: what
// they find out is answered. A command may go on for ever, and is not waited for.
func (f *fold) helpers() (n int) {
	for _, t := range f.Tasks {
		if t.Kind != "local_bash" {
			n++
		}
	}
	return n
}

// notified notes what has ended in the background: the agent may begin a turn for it.
func (f *fold) notified(line []byte) {
	var m struct{ Summary word }
	read(line, &m)
	f.Cause = wire.Clip(string(m.Summary), wire.WordsLimit)
}
