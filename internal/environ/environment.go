package environ

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// minSecret is the length in characters below which a value is not masked (E5): shorter ones turn up in
// ordinary text, and masking them would tell more than it hides.
const minSecret = 8

// Environment is what one agent gets. It holds secrets: it is kept in memory and never written.
type Environment struct {
	Vars   map[string]string `json:"vars"`
	Secret map[string]bool   `json:"secret,omitempty"` // by --secret and by name
}

// Restore makes an Environment again from its List and the names that were called secret, for an adopter
// that got it from a shim.
func Restore(list, secrets []string) Environment {
	e := Environment{Vars: map[string]string{}, Secret: map[string]bool{}}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			e.Vars[name] = value
		}
	}
	e.mark(secrets)
	return e
}

// Brought makes the Environment that came with a request: nothing is added to it, and of the secrets those by name are known
// too. Its errors never hold a value.
func Brought(vars map[string]string, secrets []string) (Environment, error) {
	e := Environment{Vars: vars, Secret: map[string]bool{}}
	e.mark(secrets)
	if err := checkVariables(vars); err != nil {
		return e, err
	}
	for _, name := range secrets {
		if _, there := vars[name]; !there {
			return e, fmt.Errorf("environment: the secret %q is not in it", name)
		}
	}
	return e, nil
}

// Tells names a secret whose value is in one of texts that are put on record; "" if there is none.
func (e Environment) Tells(texts ...string) string {
	for _, name := range e.SecretNames() {
		value := e.Vars[name]
		told := func(text string) bool { return strings.Contains(text, value) }
		if utf8.RuneCountInString(value) >= minSecret && slices.ContainsFunc(texts, told) {
			return name
		}
	}
	return ""
}

// List returns NAME=value, sorted, as execve takes it.
func (e Environment) List() []string {
	list := make([]string, 0, len(e.Vars))
	for _, name := range e.Names() {
		list = append(list, name+"="+e.Vars[name])
	}
	return list
}

// Names returns all names, sorted. A record holds those of the environment before With.
func (e Environment) Names() []string {
	return slices.Sorted(maps.Keys(e.Vars))
}

// SecretNames returns the names whose values are masked or would be if they were longer, sorted.
func (e Environment) SecretNames() []string {
	return slices.Sorted(maps.Keys(e.Secret))
}

// Stored returns the only variables whose values a record may hold (E4).
func (e Environment) Stored() map[string]string {
	stored := map[string]string{}
	for name, value := range e.Vars {
		if matches(storable, name) && !e.Secret[name] {
			stored[name] = value
		}
	}
	return stored
}

// SecretValues returns what must be masked (E5), the longest first.
func (e Environment) SecretValues() []string {
	var values []string
	for name := range e.Secret {
		if value := e.Vars[name]; utf8.RuneCountInString(value) >= minSecret {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, longestFirst)
	return slices.Compact(values)
}

// With returns a copy in which own is set last, so that it cannot be overridden.
func (e Environment) With(own map[string]string) Environment {
	vars := maps.Clone(e.Vars)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, own)
	return Environment{Vars: vars, Secret: maps.Clone(e.Secret)}
}

// String names the variables and hides the values, so that no log line and no %v can leak one.
func (e Environment) String() string {
	return fmt.Sprintf("environment(%s)", strings.Join(e.Names(), " "))
}

// GoString does for %#v what String does for %v.
func (e Environment) GoString() string { return e.String() }

// set adds configured values. Ours are left out: only With sets them.
func (e Environment) set(values map[string]string) {
	for name, value := range values {
		if !slices.Contains(own, name) {
			e.Vars[name] = value
		}
	}
}

// mark notes the secrets among the variables: those that were named, and those whose names say so.
func (e Environment) mark(named []string) {
	for name := range e.Vars {
		if slices.Contains(named, name) || secretByName(name) {
			e.Secret[name] = true
		}
	}
}

func longestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}
