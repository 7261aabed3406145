package worktree

import (
	"path"
	"strings"
)

// patterns decide as those of .gitignore do: one without a slash inside is for a base name at any depth, one with a
// slash for a path from the root; what is below a directory that matches, matches; the last one counts, and ! takes back.
type patterns []string

// match reports whether the path of a file matches.
func (ps patterns) match(name string) bool {
	found := false
	for _, p := range ps {
		p, negated := strings.CutPrefix(p, "!")
		if matchPath(p, strings.Split(name, "/")) {
			found = !negated
		}
	}
	return found
}

func matchPath(pattern string, parts []string) bool {
	pattern, dirOnly := strings.CutSuffix(pattern, "/")
	pattern = strings.ReplaceAll(pattern, "[!", "[^")
	want := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if !strings.Contains(pattern, "/") {
		want = []string{"**", pattern}
	}
	for n := 1; n <= len(parts); n++ {
		if (n < len(parts) || !dirOnly) && matchParts(want, parts[:n]) {
			return true
		}
	}
	return false
}

// matchParts compares component by component; ** stands for any number of them.
func matchParts(want, parts []string) bool {
	switch {
	case len(want) == 0:
		return len(parts) == 0
	case want[0] == "**":
		return matchParts(want[1:], parts) || len(parts) > 0 && matchParts(want, parts[1:])
	case len(parts) == 0:
		return false
	}
	ok, _ := path.Match(want[0], parts[0])
	return ok && matchParts(want[1:], parts[1:])
}
