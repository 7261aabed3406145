package environ

import "strings"

// Missing returns those of the recorded names that a later start lacks (E4), in their order. host is what
// that start has, as NAME=value: the values that the record holds and those that a caller brought. An
// empty value counts as absent, as it does in Compose.
func Missing(names []string, host []string) []string {
	has := present(host)
	return lacking(names, func(name string) bool { return has[name] != "" })
}

// Lacks is Missing for an environment that is already composed, where a variable that was configured as
// empty is there.
func (e Environment) Lacks(names []string) []string {
	return lacking(names, func(name string) bool {
		_, ok := e.Vars[name]
		return ok
	})
}

// lacking leaves ours out: they are set anew at each start and are outside every comparison (E3).
func lacking(names []string, has func(string) bool) []string {
	var missing []string
	for _, name := range names {
		if !strings.HasPrefix(name, ownPrefix) && !has(name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// present reads NAME=value entries. Empty values count as absent (E2). Of two entries with one name the
// first counts, as it does for getenv.
func present(list []string) map[string]string {
	vars := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		if _, again := vars[name]; name != "" && !again {
			vars[name] = value
		}
	}
	for name, value := range vars {
		if value == "" {
			delete(vars, name)
		}
	}
	return vars
}
