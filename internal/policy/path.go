package policy

import (
	"path"
	"slices"
	"strings"
)

// covers reports whether a pattern holds for a file, or for a directory that it is in.
func covers(pattern, name string, q Request) bool {
	return matches(rooted(pattern, q), parts(absolute(name, q)))
}

// above reports whether a pattern may hold for something below a directory.
func above(pattern, name string, q Request) bool {
	below, dir := rooted(pattern, q), parts(absolute(name, q))
	for i, part := range dir {
		switch {
		case i == len(below):
			return false
		case below[i] == "**":
			return true
		case !one(below[i], part):
			return false
		}
	}
	return len(below) > len(dir)
}

// rooted are the parts of a pattern from the root. Where the agent works, and its home, are no patterns.
func rooted(pattern string, q Request) []string {
	q.Cwd, q.Home = quote(q.Cwd), quote(q.Home)
	return parts(absolute(pattern, q))
}

// absolute is a path, or a pattern of paths, from the root. ~ is the home.
func absolute(name string, q Request) string {
	rest, home := strings.CutPrefix(name, "~")
	switch {
	case strings.HasPrefix(name, "**/"):
		return path.Clean("/" + name)
	case home && q.Home != "" && (rest == "" || rest[0] == '/'):
		return path.Clean(q.Home + "/" + rest)
	case strings.HasPrefix(name, "/"):
		return path.Clean(name)
	}
	return path.Clean(q.Cwd + "/" + name)
}

// Real is a rule for the same files under the names that they have behind links, as far as the rule names directories. ok is false
// if it is no other one.
func (r Rule) Real(cwd, home string, behind func(string) string) (real Rule, ok bool) {
	if r.Path == "" || strings.HasPrefix(r.Path, "**/") {
		return r, false
	}
	all := strings.Split(r.Path, "/")
	named := len(all)
	if i := slices.IndexFunc(all, func(p string) bool { return strings.ContainsAny(p, `*?[\`) }); i >= 0 {
		named = i
	}
	names := strings.Join(all[:named], "/")
	if names == "" && strings.HasPrefix(r.Path, "/") {
		names = "/"
	}
	was := absolute(names, Request{Cwd: cwd, Home: home})
	is := behind(was)
	real = r
	real.Path = path.Join(append([]string{quote(is)}, all[named:]...)...)
	return real, is != was
}

func parts(name string) []string {
	name = strings.Trim(name, "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// matches compares part by part. A pattern that ends before the name holds for all that is below. What is no pattern is a name.
func matches(pattern, name []string) bool {
	for i, p := range pattern {
		if p == "**" {
			for from := i; from <= len(name); from++ {
				if matches(pattern[i+1:], name[from:]) {
					return true
				}
			}
			return false
		}
		if i >= len(name) {
			return false
		}
		if !one(p, name[i]) {
			return false
		}
	}
	return true
}

// one compares a part.
func one(pattern, part string) bool {
	ok, err := path.Match(pattern, part)
	return ok || err != nil && pattern == part
}
