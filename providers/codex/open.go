package codex

import "slices"

// open is a tool call that has not ended.
type open struct {
	running
	ID      string   `json:"id"`
	Type    string   `json:"type"`
	Title   string   `json:"title,omitempty"`   // of a change: which files
	Changes *changes `json:"changes,omitempty"` // and what is done to them
}

// find is where an open call is; -1 if it is not.
func (f *fold) find(id string) int {
	return slices.IndexFunc(f.Items, func(o open) bool { return o.ID == id })
}

// opens notes a call. What is over the bound is told, and not counted.
func (f *fold) opens(w where, it item) {
	if f.find(string(it.ID)) >= 0 || len(f.Items) == most {
		return
	}
	o := open{running: running{string(w.ThreadID), string(w.TurnID)}, ID: string(it.ID), Type: clip(it.Type, idLimit)}
	if f.own(w.ThreadID) {
		o.Thread = f.Thread
	}
	if w.TurnID == "" {
		o.Turn = f.Turn
	}
	if it.Type == "fileChange" {
		o.Title, _ = f.title(it)
		o.Title = clip(o.Title, titleLimit)
		o.Changes = f.keep(it)
	}
	f.Items = append(f.Items, o)
}

func (f *fold) closes(it item) {
	f.Items = slices.DeleteFunc(f.Items, func(o open) bool { return o.ID == string(it.ID) })
}

// settle ends what never ends by itself once its turn has: an interrupted turn tells no end of a call that waited, for an
// agent or a permission, say. A command that runs goes on in the background and has its own end.
func (f *fold) settle(r running) {
	f.Items = slices.DeleteFunc(f.Items, func(o open) bool {
		asks := slices.ContainsFunc(f.Pending, func(p pending) bool { return p.ToolCall == o.ID })
		over := o.running == r && (o.Type != "commandExecution" || asks)
		if over {
			f.tell("tool_call_update", map[string]any{"toolCallId": o.ID, "status": "failed"})
		}
		return over
	})
}
