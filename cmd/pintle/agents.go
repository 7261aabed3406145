package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
)

// drivers are the kinds of agent that this binary can drive.
func drivers() map[string]providers.Provider {
	return map[string]providers.Provider{command.Name: command.Provider()}
}

// agentsVerb is `pintle agents`.
type agentsVerb struct{ output }

// Run lists the agents.
func (v *agentsVerb) Run(a *app) error {
	list := []api.Provider{{Name: command.Name, Enabled: true, Version: Version}}
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

// readiness says whether an agent can be used, and what for, or why not.
func readiness(p api.Provider) (ready, note string) {
	switch {
	case !p.Enabled:
		return "no", p.Reason
	case p.Name == command.Name:
		return "yes", "runs what follows --"
	}
	return "yes", ""
}
