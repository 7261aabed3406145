package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error is what is wrong in a file. Load and Repository return it; the user mends the line.
type Error struct {
	File    string
	Line    int    // 0 where it belongs to no line
	Key     string // "" for a syntax error
	Problem string
}

func (e *Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Key != "" {
		return fmt.Sprintf("%s: %s: %s", place, e.Key, e.Problem)
	}
	return fmt.Sprintf("%s: %s", place, e.Problem)
}

// decode reads the user's configuration over the defaults.
func decode(path, text string) (Config, error) {
	c := Default()
	meta, err := decodeInto(&c, path, text)
	if err != nil {
		return Config{}, err
	}
	c.path, c.sources = path, sources(path, text, meta.Keys())
	return c, check(path, text, c.rules())
}

// decodeInto reads text over the defaults that are in the value, and refuses every key that it does not have.
func decodeInto(value any, path, text string) (toml.MetaData, error) {
	meta, err := toml.Decode(text, value)
	if err != nil {
		return meta, refused(path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		key := unknown[0]
		return meta, &Error{path, lineOf(text, key), key.String(), "unknown key"}
	}
	return meta, checkKeys(path, text, meta)
}

// checkKeys refuses what the library lets pass: keys in another case, and a value where a table with free names
// belongs, which it drops without a word.
func checkKeys(path, text string, meta toml.MetaData) error {
	for _, key := range meta.Keys() {
		switch {
		case strings.ToLower(fixed(key)) != fixed(key):
			return &Error{path, lineOf(text, key), key.String(), "unknown key (keys are in lower case)"}
		case namesFollow(key) && meta.Type(key...) != "Hash":
			return &Error{path, lineOf(text, key), key.String(), "must be a table" + hint(key)}
		}
	}
	return nil
}

// fixed returns the part of a key that we named, without agents, variables and models, which users name.
func fixed(key toml.Key) string {
	var parts []string
	for i, part := range key {
		if !namesFollow(key[:i]) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// namesFollow reports whether the keys of a table are names that users choose.
func namesFollow(key toml.Key) bool {
	switch len(key) {
	case 1:
		return key[0] == "agent" || key[0] == "prices"
	case 3:
		return key[0] == "agent" && key[2] == "env"
	}
	return false
}

// hint helps who writes `agent = "codex"`, which is the obvious thing to try.
func hint(key toml.Key) string {
	if key.String() == "agent" {
		return " [agent.NAME]; the default agent is `default_agent`"
	}
	return ""
}

// refused turns the library's error into ours. It has two kinds: of one the place can be asked, and the other has it
// in its text.
func refused(path string, err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return &Error{path, parse.Position.Line, strings.Trim(parse.LastKey, "."), parse.Message}
	}
	wrong := &Error{File: path, Problem: err.Error()}
	if n, _ := fmt.Sscanf(wrong.Problem, "toml: line %d (last key %q)", &wrong.Line, &wrong.Key); n == 2 {
		_, wrong.Problem, _ = strings.Cut(wrong.Problem, "): ")
	}
	return wrong
}

// sources notes the line of each key that the file sets.
func sources(path, text string, keys []toml.Key) map[string]string {
	from := map[string]string{}
	for key, line := range linesOf(text, keys) {
		from[key] = fmt.Sprintf("%s:%d", path, line)
	}
	return from
}

// check refuses values that have the right type and make no sense.
func check(path, text string, rules []rule) error {
	for _, rule := range rules {
		if rule.broken {
			line := lineOf(text, strings.Split(rule.key, "."))
			return &Error{path, line, rule.key, rule.want}
		}
	}
	return nil
}

// rule is a demand on the value of a key.
type rule struct {
	key    string
	broken bool
	want   string
}

func (c Config) rules() []rule {
	rules := []rule{
		{"recovery.tries", c.Recovery.Tries < 1, "must be at least 1"},
		{"deadlines.operation", c.Deadlines.Operation == 0, "must not be none"},
		{"limits.running", c.Limits.Running < 0, "must not be negative"},
		{"limits.spool", c.Limits.Spool < 1<<20, "must be at least 1MiB"},
		{"limits.frame_bytes", c.Limits.FrameBytes < 1<<10, "must be at least 1KiB"},
		{"limits.usd_per_day", c.Limits.USDPerDay < 0, "must not be negative"},
	}
	for _, entry := range c.entries() {
		if d, ok := entry.value.(Duration); ok {
			rules = append(rules, rule{entry.key, d < 0, "must not be negative"})
		}
	}
	return rules
}
