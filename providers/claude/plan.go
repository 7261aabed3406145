package claude

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pintle/pintle/providers/wire"
)

// step is one of the agent's plan. Some models have a tool that states all steps, others one for each change; the newest
// have none.
type step struct {
	ID      string `json:"id,omitempty"`
	Content string `json:"content"`
	Status  string `json:"status"`
}

// todo is a step in the agent's words.
type todo struct {
	ID      ident
	Content word
	Subject word
	Status  ident
}

func (t todo) step() step {
	s := step{string(t.ID), wire.Clip(cmp.Or(string(t.Content), string(t.Subject)), wire.WordsLimit), string(t.Status)}
	s.Status = cmp.Or(s.Status, "pending")
	return s
}

// planned is the plan as a whole.
func (f *fold) planned(todos []todo) {
	f.Steps = nil
	for _, t := range todos[:min(wire.Most, len(todos))] {
		f.Steps = append(f.Steps, t.step())
	}
	f.plan()
}

// change is what came of a tool that changes the plan.
type change struct {
	Task    todo
	Tasks   []todo
	ID      ident `json:"taskId"`
	Success bool
	Changed struct{ To ident } `json:"statusChange"`
}

// replan takes in what came of a call, if it changed the plan.
func (f *fold) replan(c call, outcome json.RawMessage) {
	var o change
	if !read(outcome, &o) {
		return
	}
	switch {
	case c.Tool == "TaskList":
		f.planned(o.Tasks)
	case c.Tool == "TaskCreate" && o.Task.ID != "" && len(f.Steps) < wire.Most:
		f.Steps = append(f.Steps, o.Task.step())
		f.plan()
	case c.Tool == "TaskUpdate" && o.Success:
		f.restep(string(o.ID), c.Subject, string(o.Changed.To))
		f.plan()
	}
}

// restep changes a step, which may be one of before this process.
func (f *fold) restep(id, subject, status string) {
	i := slices.IndexFunc(f.Steps, func(s step) bool { return s.ID == id })
	switch {
	case i >= 0 && status == "deleted":
		f.Steps = slices.Delete(f.Steps, i, i+1)
		return
	case i < 0 && (len(f.Steps) == wire.Most || status == "deleted"):
		return
	case i < 0:
		i = len(f.Steps)
		f.Steps = append(f.Steps, step{ID: id, Content: "task " + id, Status: "pending"})
	}
	f.Steps[i].Content = cmp.Or(subject, f.Steps[i].Content)
	f.Steps[i].Status = cmp.Or(status, f.Steps[i].Status)
}

// plan is ACP's plan.
func (f *fold) plan() {
	entries := []map[string]string{}
	for _, s := range f.Steps {
		entries = append(entries, map[string]string{"content": s.Content, "status": s.Status, "priority": "medium"})
	}
	f.Tell("plan", map[string]any{"entries": entries})
}
