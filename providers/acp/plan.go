package acp

import (
	"encoding/json"

	"github.com/pintle/pintle/providers/wire"
)

// entry is a step of a plan, as the protocol has it.
type entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status"` // pending, in_progress, completed
}

// planned tells the plan of an agent that does not, but makes it by a tool: all of its steps are what the tool is given.
func (f *fold) planned(u update) {
	var given struct{ Todos []entry }
	if f.agent.planner == "" || u.Title != f.agent.planner || json.Unmarshal(u.RawInput, &given) != nil || len(given.Todos) == 0 {
		return
	}
	steps := given.Todos[:min(wire.Most, len(given.Todos))]
	for i := range steps {
		s := &steps[i]
		s.Content, s.Priority, s.Status = wire.Clip(s.Content, wire.WordsLimit), wire.Clip(s.Priority, wire.IDLimit), wire.Clip(s.Status, wire.IDLimit)
	}
	f.Tell("plan", map[string]any{"entries": steps})
}
