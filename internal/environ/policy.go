// Package environ decides which variables an agent gets, which of their values may be stored, and what
// must be masked in everything that the agent says.
//
// Nothing is inherited but what a published list, the provider or the user names (E1, E2). Variables by
// which agents nest, and ours, are never taken from the host (E3). The host is always the calling verb:
// this package reads no environment, no file and no clock, so that the supervisor's variables cannot
// slip in. It is not the place where values are kept; an Environment lives in memory only (E4).
package environ

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy says what an agent's environment is made from.
type Policy struct {
	Provider     []string          // names or globs that the provider declares its own
	Pass         []string          // names or globs of `[env] pass` and of --env NAME|GLOB
	Set          map[string]string // values of `[env] file`, the configuration, then --env N=V: they win, unfiltered
	Secrets      []string          // names given with --secret NAME: taken from the host, masked
	SecretValues map[string]string // --secret NAME=@FILE, already read
}

// Compose makes the environment of an agent from the calling verb's os.Environ(). Ours are not in it;
// Environment.With sets them last.
func (p Policy) Compose(host []string) Environment {
	e := Environment{Vars: map[string]string{}, Secret: map[string]bool{}}
	for name, value := range present(host) {
		if p.inherits(name) {
			e.Vars[name] = value
		}
	}
	e.set(p.Set)
	e.set(p.SecretValues)
	e.mark(p.secretNames())
	return e
}

// inherits reports whether a variable of the host goes to the agent. What nests is asked first, so that
// no glob lets it through.
func (p Policy) inherits(name string) bool {
	if strings.HasPrefix(name, ownPrefix) || nests(name) {
		return false
	}
	return matches(storable, name) || matches(connection, name) || matches(p.Provider, name) ||
		matches(p.Pass, name) || slices.Contains(p.Secrets, name)
}

// secretNames are the names that the user called secret, whatever they look like.
func (p Policy) secretNames() []string {
	names := slices.Clone(p.Secrets)
	for name := range p.SecretValues {
		names = append(names, name)
	}
	return names
}

// Check refuses what no environment can hold, and patterns that path.Match does not understand. Its
// errors never hold a value.
func (p Policy) Check() error {
	for _, pattern := range slices.Concat(p.Provider, p.Pass) {
		if err := checkPattern(pattern); err != nil {
			return err
		}
	}
	for _, name := range p.Secrets {
		if err := checkVariable(name, ""); err != nil {
			return err
		}
	}
	return checkVariables(p.Set, p.SecretValues)
}

func checkVariables(sets ...map[string]string) error {
	for _, set := range sets {
		for name, value := range set {
			if err := checkVariable(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("environment pattern %q: %w", pattern, err)
	}
	return checkVariable(pattern, "")
}

// checkVariable finds what makes execve fail, or the agent read another variable than was meant.
func checkVariable(name, value string) error {
	switch {
	case name == "":
		return fmt.Errorf("environment: a variable needs a name")
	case strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("environment variable %q: a name holds no '=' and no NUL", name)
	case strings.Contains(value, "\x00"):
		return fmt.Errorf("environment variable %q: its value holds a NUL", name)
	}
	return nil
}
