package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/session"
)

// environment composes what the agent gets (E1, E2), from this verb's own environment.
func (v *runVerb) environment(a *app, cfg config.Config) (environ.Environment, error) {
	set, err := cfg.Env.Read()
	if err != nil {
		return environ.Environment{}, usage("%w", err)
	}
	p := environ.Policy{Pass: slices.Clone(cfg.Env.Pass), Set: map[string]string{}, SecretValues: map[string]string{}}
	maps.Copy(p.Set, set)
	if g, err := a.agent(cfg, cmp.Or(v.Agent, cfg.Agent)); err == nil { // else the order is refused for that
		p.Pass = append(p.Pass, g.Environment...)
		maps.Copy(p.Set, g.Agent.Env)
	}
	for _, word := range v.Env {
		if name, value, ok := strings.Cut(word, "="); ok {
			p.Set[name] = value
			continue
		}
		p.Pass = append(p.Pass, word)
	}
	if err := addSecrets(&p, v.Secret); err != nil {
		return environ.Environment{}, err
	}
	if err := p.Check(); err != nil {
		return environ.Environment{}, usage("%w", err)
	}
	env := p.Compose(a.environ())
	return env, sendable(env)
}

// sendable refuses variables that are no UTF-8: they go to the supervisor as JSON, which would change them.
func sendable(env environ.Environment) error {
	for name, value := range env.Vars {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return usage("environment variable %q is not valid UTF-8: it could not be passed on as it is", name)
		}
	}
	return nil
}

func addSecrets(p *environ.Policy, words []string) error {
	for _, word := range words {
		name, file, ok := strings.Cut(word, "=@")
		if before, _, value := strings.Cut(name, "="); value || name == "" {
			return usage("--secret %s=…: give NAME or NAME=@FILE; a value on a command line is no secret", before)
		}
		if !ok {
			p.Secrets = append(p.Secrets, name)
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return usage("--secret %s: %w", name, err)
		}
		p.Secrets = append(p.Secrets, name)
		p.SecretValues[name] = strings.TrimSuffix(string(data), "\n")
	}
	return nil
}

// unset refuses a secret that is to come from this verb's environment, and is not there.
func (v *runVerb) unset(getenv func(string) string) error {
	for _, name := range v.Secret {
		if !strings.Contains(name, "=") && getenv(name) == "" {
			return usage("--secret %s: not set", name)
		}
	}
	return nil
}

// plain refuses an order whose words hold the value of a secret: it would be on record, and a command line in ps(1).
func plain(p session.Payload, env environ.Environment) error {
	for name := range env.Secret {
		value := env.Vars[name]
		holds := func(s string) bool { return len(value) >= 8 && strings.Contains(s, value) }
		switch {
		case slices.ContainsFunc(slices.Concat(p.Argv, p.AgentArgs), holds):
			return usage("the command line holds the value of the secret %s: have the command read it from its environment", name)
		case holds(p.Prompt):
			return usage("the prompt holds the value of the secret %s: have the agent read it from its environment", name)
		}
	}
	return nil
}

// envPayload is --env as far as it makes orders equal: names, and the hash of a value that was given.
func (v *runVerb) envPayload() (words []string) {
	for _, word := range v.Env {
		if name, value, ok := strings.Cut(word, "="); ok {
			sum := sha256.Sum256([]byte(value))
			word = name + "=sha256:" + hex.EncodeToString(sum[:])
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

func secretNames(words []string) (names []string) {
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=@")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// processUmask reads the caller's file mode mask, which can only be read by setting it. Nothing else of
// this process makes files yet.
func processUmask() int {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return mask
}
