package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/policy"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/acp"
	"github.com/pintle/pintle/providers/claude"
	"github.com/pintle/pintle/providers/codex"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/providers/pi"
	"github.com/pintle/pintle/rpc/api"
)

// all are the drivers that this binary has, in the order in which agents are listed.
func all() []providers.Provider {
	return append([]providers.Provider{command.Provider(), codex.Provider(), claude.Provider(), pi.Provider()}, acp.Providers()...)
}

// drivers are they by name.
func drivers() map[string]providers.Provider {
	named := map[string]providers.Provider{}
	for _, p := range all() {
		named[p.Name] = p
	}
	return named
}

// agent is one that -a can name: its driver, and how the user has it started.
type agent struct {
	name string
	providers.Provider
	config.Agent
}

// agent finds an agent by its name: one that pintle knows, or one of a known kind that the configuration names.
func (a *app) agent(cfg config.Config, name string) (agent, error) {
	own, set := cfg.Agents[name]
	p, known := drivers()[name]
	switch {
	case known && own.Kind != "" && own.Kind != name:
		return agent{}, usage("[agent.%s] kind = %q: %s is an agent's own name; give yours another one", name, own.Kind, name)
	case known:
		return agent{name, p, own}, nil
	case !set:
		return agent{}, api.E(api.CodeNoAgent, "no agent called %s", record.Quote(name)).WithNext("pintle agents")
	}
	if own.Kind == "" {
		return agent{}, usage("[agent.%s] has no kind, and pintle knows no agent of that name: kind is one of %s", name, strings.Join(spokenTo(), ", "))
	}
	p, known = drivers()[own.Kind]
	if !known || p.Launch == nil {
		return agent{}, usage("[agent.%s] kind = %q: one of %s", name, own.Kind, strings.Join(spokenTo(), ", "))
	}
	if p.Program == "" && len(own.Command) == 0 {
		return agent{}, usage("[agent.%s] has no command: an agent of the kind %s is whatever that starts", name, own.Kind)
	}
	return agent{name, p, own}, nil
}

// keeps refuses a policy that the agent cannot be held to.
func (g agent) keeps(p session.Payload, rules *policy.Policy) error {
	return supervisor.Keeps(g.name, g.Provider, p.Approve, p.Mode, rules)
}

// spokenTo are the kinds of agents that are spoken to.
func spokenTo() (names []string) {
	for _, p := range all() {
		if p.Launch != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// locate finds the agent's program as an order would, with the PATH that the agent gets. given is what an order that comes
// over the socket names in its place.
func (g agent) locate(given, cwd, path string) (record.Program, error) {
	found := record.Program{More: g.Args}
	if g.name != g.Provider.Name {
		found.Kind = g.Provider.Name
	}
	word := cmp.Or(given, g.Program)
	if given == "" && len(g.Command) > 0 {
		word, found.Words = g.Command[0], g.Command[1:]
	}
	var err error
	if found.Path, err = program(word, cwd, path); err == nil {
		found.Path = g.native(found.Path)
	}
	return found, err
}

// native is the real program where a package's wrapper hides it.
func (g agent) native(found string) string {
	real, err := filepath.EvalSymlinks(found)
	if err != nil || g.Natives == nil {
		return found
	}
	for _, native := range g.Natives(real) {
		if _, err := os.Stat(native); err == nil {
			return native
		}
	}
	return found
}

// programOf is what is started for an order.
func (a *app) programOf(cfg config.Config, p session.Payload, path string) (record.Program, error) {
	if p.Provider == command.Name {
		found, err := program(p.Argv[0], p.Cwd, path)
		return record.Program{Path: found}, err
	}
	g, err := a.agent(cfg, p.Provider)
	if err != nil {
		return record.Program{}, err
	}
	return g.locate("", p.Cwd, path)
}

// located is locate for an order that comes over the socket, by the configuration as it is then.
func (a *app) located(name, given, cwd, path string) (record.Program, error) {
	cfg, err := a.config()
	if err != nil {
		return record.Program{}, fmt.Errorf("look for %s: %w", name, err)
	}
	if name == command.Name {
		return record.Program{}, nil // what has no conversation is refused for that
	}
	g, err := a.agent(cfg, name)
	if err != nil {
		return record.Program{}, err
	}
	return g.locate(given, cwd, path)
}
