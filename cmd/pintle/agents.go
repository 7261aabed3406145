package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pintle/pintle/providers/codex"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
)

// agentsVerb is `pintle agents`.
type agentsVerb struct{ output }

// Run lists the agents.
func (v *agentsVerb) Run(a *app) error {
	list := []api.Provider{{Name: command.Name, Enabled: true, Version: Version}, a.find(codex.Name)}
	if v.JSON {
		a.print(list)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "AGENT\tREADY\tVERSION\tNOTE")
	for _, p := range list {
		ready, note := readiness(p)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, ready, p.Version, note)
	}
	return nil
}

// find looks for an agent as an order would, and asks it for its version.
func (a *app) find(name string) api.Provider {
	found, err := agent{name: name, Provider: drivers()[name]}.locate("", "/", a.getenv("PATH"))
	path := found.Path
	if err != nil {
		return api.Provider{Name: name, Reason: "not found in PATH: install it"}
	}
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return api.Provider{Name: name, Path: path, Reason: "does not tell its version: " + err.Error()}
	}
	line := strings.TrimSpace(string(out)) // codex-cli 0.171.0
	version := line[strings.LastIndexByte(line, ' ')+1:]
	c := codexCheck{ctx: a.ctx, path: path}
	return api.Provider{Name: name, Enabled: true, Path: path, Version: version, Reason: strings.Join(c.doubts(version), "; ")}
}

// readiness says whether an agent can be used, and what for, what may be in its way, or why not.
func readiness(p api.Provider) (ready, note string) {
	switch {
	case !p.Enabled:
		return "no", p.Reason
	case p.Name == command.Name:
		return "yes", "runs what follows --"
	}
	return "yes", p.Reason
}
