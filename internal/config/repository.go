package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// RepositoryFile is the name of a repository's own configuration, at its root.
const RepositoryFile = ".pintle.toml"

// MaxRepositoryFile bounds that file: whoever can push can write it.
const MaxRepositoryFile = 1 << 20

// Repo is a repository's .pintle.toml with the defaults filled in. It says what is done to a worktree that pintle
// makes and nothing else: it comes with a clone, so that no line of it may reach further than that.
type Repo struct {
	Worktree struct {
		Setup          Commands `toml:"setup"`   // run by sh -c in the new worktree, in order; the first failure ends it
		Cleanup        Commands `toml:"cleanup"` // likewise, before the worktree goes
		Copy           []string `toml:"copy"`    // patterns of files that git does not have, from the caller's checkout
		SetupTimeout   Duration `toml:"setup_timeout"`
		CleanupTimeout Duration `toml:"cleanup_timeout"`
	} `toml:"worktree"`
	Archive struct {
		Keep []string `toml:"keep"` // patterns of ignored files that archive keeps
	} `toml:"archive"`
}

// Commands are written as one string or as a list of them.
type Commands []string

// UnmarshalTOML implements toml.Unmarshaler.
func (c *Commands) UnmarshalTOML(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	*c = nil
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return errors.New("must be a string or a list of strings")
		}
		*c = append(*c, s)
	}
	return nil
}

// DefaultRepo is the configuration of a repository that has none.
func DefaultRepo() (r Repo) {
	r.Worktree.SetupTimeout, r.Worktree.CleanupTimeout = minutes(10), minutes(1)
	r.Archive.Keep = []string{".env*"}
	return r
}

// Repository reads a repository's configuration. name is what errors call the file, such as ".pintle.toml at 1a2b3c4".
func Repository(name string, text []byte) (Repo, error) {
	if len(text) > MaxRepositoryFile {
		return Repo{}, &Error{File: name, Problem: fmt.Sprintf("larger than %s", Bytes(MaxRepositoryFile))}
	}
	if depth(text) > maxDepth {
		return Repo{}, &Error{File: name, Problem: "nested too deeply"}
	}
	r := DefaultRepo()
	if _, err := decodeInto(&r, name, string(text)); err != nil {
		return Repo{}, err
	}
	if err := check(name, string(text), r.rules()); err != nil {
		return Repo{}, err
	}
	return r, nil
}

func (r Repo) rules() []rule {
	w := r.Worktree
	rules := []rule{
		{"worktree.setup_timeout", w.SetupTimeout <= 0, "must be positive"},
		{"worktree.cleanup_timeout", w.CleanupTimeout <= 0, "must be positive"},
	}
	rules = append(rules, each("worktree.setup", w.Setup, command)...)
	rules = append(rules, each("worktree.cleanup", w.Cleanup, command)...)
	rules = append(rules, each("worktree.copy", w.Copy, pattern)...)
	return append(rules, each("archive.keep", r.Archive.Keep, pattern)...)
}

// each makes a rule of what is wrong with the values of a list.
func each(key string, values []string, wrong func(string) string) (rules []rule) {
	for _, v := range values {
		if problem := wrong(v); problem != "" {
			rules = append(rules, rule{key, true, fmt.Sprintf("%.80q %s", v, problem)})
		}
	}
	return rules
}

// command says what is wrong with a command.
func command(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is blank"
	case strings.ContainsRune(s, 0):
		return "holds a NUL, which no command can"
	}
	return ""
}

// pattern says what is wrong with a pattern. A directory may end in a slash, as people write it.
func pattern(s string) string {
	_, bad := path.Match(s, "")
	clean := strings.TrimSuffix(s, "/")
	switch {
	case strings.TrimSpace(s) == "":
		return "is blank"
	case strings.ContainsRune(s, 0):
		return "holds a NUL, which no path can"
	case strings.HasPrefix(s, "/"):
		return "is absolute: patterns are relative to the root of the repository"
	case clean == "." || !utf8.ValidString(s) || !fs.ValidPath(clean):
		return "is no pattern of paths below the root: write it without ., .. and //"
	case strings.Contains(s, "**"):
		return "has **, which is not supported: a directory is taken with all that is in it"
	case bad != nil:
		return "is no pattern: " + bad.Error()
	}
	return ""
}

// Empty reports whether there is nothing that trust must cover.
func (r Repo) Empty() bool {
	return len(r.Worktree.Setup)+len(r.Worktree.Cleanup)+len(r.Worktree.Copy) == 0
}

// Fingerprint is what trust is recorded of: the commands, the copies and how long they may take, however the file
// writes them. What archive keeps is not in it: that runs nothing, and only keeps more or fewer of the user's own files.
func (r Repo) Fingerprint() string {
	w := r.Worktree
	// A list of lists of strings has one JSON, and TOML is UTF-8, which JSON keeps as it is.
	text, err := json.Marshal([][]string{
		{"pintle trust 1"}, w.Setup, w.Cleanup, w.Copy, {w.SetupTimeout.String(), w.CleanupTimeout.String()},
	})
	if err != nil {
		panic(fmt.Sprintf("config: fingerprint: %v", err)) // strings are always encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
