package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pintle/pintle/internal/policy"
)

// maxPolicy bounds a policy file, which goes into the record of each order.
const maxPolicy = 256 << 10

// written is a rule as a policy file has it.
type written struct {
	Kind    string `toml:"kind"`
	Tool    string `toml:"tool"`
	Command string `toml:"command"`
	Path    string `toml:"path"`
	Reason  string `toml:"reason"`
}

// Policy reads a file of permission rules: [[allow]] and [[deny]], each with one or more of kind, tool, command and path. What
// is wrong in it is an *Error; errors.Is(err, fs.ErrNotExist) if there is none.
func Policy(file string) (policy.Policy, error) {
	text, err := os.ReadFile(file)
	switch {
	case err != nil:
		return policy.Policy{}, fmt.Errorf("read the policy: %w", err)
	case len(text) > maxPolicy:
		return policy.Policy{}, &Error{File: file, Problem: fmt.Sprintf("larger than %s", Bytes(maxPolicy))}
	case depth(text) > maxDepth:
		return policy.Policy{}, &Error{File: file, Problem: "nested too deeply"}
	}
	return decodePolicy(file, string(text))
}

func decodePolicy(file, text string) (p policy.Policy, err error) {
	var f struct {
		Allow []written `toml:"allow"`
		Deny  []written `toml:"deny"`
	}
	if _, err := decodeInto(&f, file, text); err != nil {
		return p, err
	}
	for _, part := range []struct {
		name  string
		rules []written
	}{{"allow", f.Allow}, {"deny", f.Deny}} {
		lines := heads(text, part.name)
		for i, w := range part.rules {
			line := 0
			if len(lines) == len(part.rules) {
				line = lines[i]
			}
			r := w.rule(part.name == "deny", filepath.Base(file), line)
			if problem := r.Wrong(); problem != "" {
				return p, &Error{file, line, part.name, problem}
			}
			p.Rules = append(p.Rules, r)
		}
	}
	return p, nil
}

// heads are the lines on which the tables of a list begin.
func heads(text, name string) (lines []int) {
	head := regexp.MustCompile(`^\s*\[\[\s*` + name + `\s*\]\]`)
	for i, line := range strings.Split(text, "\n") {
		if head.MatchString(line) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func (w written) rule(deny bool, file string, line int) policy.Rule {
	from := file
	if line > 0 {
		from = fmt.Sprintf("%s:%d", file, line)
	}
	return policy.Rule{Deny: deny, Kind: w.Kind, Tool: w.Tool, Command: w.Command, Path: w.Path, Reason: w.Reason, From: from}
}
