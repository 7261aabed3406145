package session

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Payload is what must be equal for an order to be a repeat (X4), as given, before configuration. A field
// that is absent equals its default at the time it was introduced, so every field has omitempty.
type Payload struct {
	Prompt     string            `json:"prompt,omitempty"`
	Argv       []string          `json:"argv,omitempty"`
	Provider   string            `json:"provider,omitempty"`
	Model      string            `json:"model,omitempty"`
	AgentArgs  []string          `json:"agentArgs,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Session    string            `json:"session,omitempty"`
	Worktree   bool              `json:"worktree,omitempty"`
	Branch     string            `json:"branch,omitempty"`   // of the worktree, made for it
	Base       string            `json:"base,omitempty"`     // which it is made from
	Checkout   string            `json:"checkout,omitempty"` // a branch that is there
	Pull       int               `json:"pr,omitempty"`       // a pull request's number
	Reuse      string            `json:"worktreeReuse,omitempty"`
	Mode       string            `json:"mode,omitempty"` // one of the agent's own
	Approve    string            `json:"approve,omitempty"`
	Unattended string            `json:"unattended,omitempty"`
	Policy     string            `json:"policy,omitempty"` // hash of the file of rules
	Env        []string          `json:"env,omitempty"`    // names and globs of --env, NAME=<hash> for a value
	Secret     []string          `json:"secret,omitempty"` // names of --secret
	Options    map[string]string `json:"options,omitempty"`
}

// Differing returns the names of the fields in which two payloads differ, sorted.
func (p Payload) Differing(q Payload) []string {
	a, b := fields(p), fields(q)
	var names []string
	for name, value := range a {
		if !bytes.Equal(value, b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func fields(p Payload) map[string]json.RawMessage {
	data, _ := json.Marshal(p) // strings only: cannot fail
	m := map[string]json.RawMessage{}
	_ = json.Unmarshal(data, &m)
	return m
}
