// Package acp drives every agent that speaks the Agent Client Protocol, version 1, over its standard streams (JSON-RPC 2.0, one
// object a line).
//
// What the real agents do was recorded by experiment; what differs from one to the next is in the table of agents.go.
package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// Name is what the configuration calls the kind of an agent that is known only by its command.
const Name = "acp"

// Providers are the agents that are known by name, and the kind of all others.
func Providers() (all []providers.Provider) {
	for i := range agents {
		all = append(all, provider(&agents[i]))
	}
	return all
}

// provider is one agent.
func provider(a *agent) providers.Provider {
	return providers.Provider{
		Name: a.name, Program: a.program, Natives: a.natives, Environment: a.environment, Stdin: true, Modes: true, Lockless: true, Steers: a.steers, Split: wire.Split,
		Habits: a.habits, Approves: a.approves, Kept: a.kept, Aside: a.aside,
		Tested: a.tested, Install: installs(a.pkg), Login: a.login, Keys: a.keys, Credentials: a.files,
		Launch:  a.launch,
		Unasked: func(approve string) []string { return a.unasked[approve] },
		New:     func(saved json.RawMessage) (providers.Fold, error) { return restore(a, saved) },
	}
}

func installs(pkg string) string {
	if pkg == "" {
		return ""
	}
	return "npm install -g " + pkg
}

func (a *agent) launch(o providers.Order, more []string, _ string) providers.Launch {
	l := providers.Launch{Args: slices.Concat([]string{a.program}, a.args, more)}
	if a.program == "" {
		l.Args[0] = a.name
	}
	if a.modelArg != "" && o.Model != "" {
		l.Args = append(l.Args, a.modelArg, o.Model)
	}
	if a.env != nil {
		l.Env = a.env(o)
	}
	return l
}

func restore(a *agent, saved json.RawMessage) (providers.Fold, error) {
	f := &fold{agent: a}
	if len(saved) == 0 || bytes.Equal(saved, []byte("null")) {
		return f, nil
	}
	if err := json.Unmarshal(saved, &f.state); err != nil {
		return nil, fmt.Errorf("state of the Agent Client Protocol: %w", err)
	}
	return f, nil
}
