package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/policy"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
)

// rules are those of the file that --policy names, else the agent's own; nil without. What was named on the command line is a
// part of what makes two orders equal. An agent that cannot be held to them is refused (X37).
func (v *runVerb) rules(a *app, cfg config.Config, p *session.Payload) (*policy.Policy, error) {
	if p.Provider == command.Name {
		return nil, nil
	}
	g, err := a.agent(cfg, p.Provider)
	if err != nil {
		return nil, err
	}
	file := cmp.Or(v.Policy, g.Agent.Policy)
	if file == "" {
		return nil, g.keeps(*p, nil)
	}
	rules, err := config.Policy(file)
	switch {
	case err != nil && v.Policy == "":
		return nil, usage("[agent.%s] policy, in %s: %w", p.Provider, cfg.Path(), err)
	case err != nil:
		return nil, usage("--policy: %w", err)
	}
	if v.Policy != "" {
		p.Policy = hashed(rules)
	}
	return &rules, g.keeps(*p, &rules)
}

// hashed is what of rules makes two orders equal: not where they stand.
func hashed(rules policy.Policy) string {
	rules.Rules = slices.Clone(rules.Rules)
	for i := range rules.Rules {
		rules.Rules[i].From = ""
	}
	data, _ := json.Marshal(rules) // plain values: cannot fail
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
