package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// located is a file that an agent names, from the root, as it names it. ok is false if agents may take that for different files.
func located(name, cwd, home string) (path string, ok bool) {
	rest, homely := strings.CutPrefix(name, "~")
	switch {
	case name == "" || strings.ContainsRune(name, 0) || scheme.MatchString(name):
		return name, false
	case homely && home != "" && (rest == "" || rest[0] == '/'):
		return home + rest, true
	case homely:
		return name, false
	case filepath.IsAbs(name):
		return name, true
	}
	return cwd + "/" + name, true
}

// scheme begins what is no file's name, or that of one in another form.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// mostLinks is how many links are followed in one path, as by the kernel.
const mostLinks = 40

// behind is where a path leads, as the kernel takes it: each link is followed, also one to what is not there, and .. goes up
// from where a link has led. ok is false if that cannot be told.
func behind(name string) (path string, ok bool) {
	at, rest := "/", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part) // of .. too: at has no links any more
		to, err := os.Readlink(next)
		switch {
		case part == "" || part == ".":
		case err == nil && part != "..":
			if links++; links > mostLinks {
				return name, false
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
		case err == nil, errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			at = next
		default:
			return name, false
		}
	}
	return at, true
}

// resolved is the same of a directory that is there.
func resolved(name string) string {
	if path, ok := behind(name); ok {
		return path
	}
	return filepath.Clean(name)
}
