// Package policy decides what an agent may do without anybody being asked: by rules of the user's on the tool, the command
// line and the files, and by what --approve says of kinds of tools.
//
// It is pure. A rule sees what an agent says that it is about to do, as words of a command line and names of files; what a
// program then does is beyond it. So where a rule that denies may hold and it cannot be told, the user is asked.
package policy

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Policy is a list of rules. Their order does not matter: what denies goes before what allows.
type Policy struct {
	Rules []Rule `json:"rules,omitempty"`
}

// Rule holds for what all of its keys hold for.
type Rule struct {
	Deny bool `json:"deny,omitempty"`
	// Kind is ACP's kind of tool: read, edit, delete, move, search, execute, think, fetch, other.
	Kind string `json:"kind,omitempty"`
	// Tool is a pattern (path.Match) of the agent's own name of the tool.
	Tool string `json:"tool,omitempty"`
	// Command is how a command line begins, in whole words.
	Command string `json:"command,omitempty"`
	// Exact is a command line, byte for byte: what somebody has allowed for the rest of a session.
	Exact string `json:"exact,omitempty"`
	// Path is a pattern of files: relative to where the agent works, absolute, or below ~. ** is any number of directories; as
	// the first it begins at the root. A pattern holds for all that is in a directory for which it holds.
	Path string `json:"path,omitempty"`
	// Reason of a rule that denies is told with the refusal: in the journal, and to who looks on.
	Reason string `json:"reason,omitempty"`
	// From is where the rule stands, as in "policy.toml:3".
	From string `json:"from,omitempty"`
}

// Request is what an agent is about to do, as far as it says.
type Request struct {
	Kind, Tool, Command string
	Paths               []string // absolute, or relative to Cwd
	Cwd, Home           string
}

// Verdict is what becomes of a request.
type Verdict string

// The verdicts.
const (
	Ask   Verdict = "ask"
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
)

// Decision is a verdict and what it comes from: "" if nothing speaks of it.
type Decision struct {
	Verdict Verdict
	By      string
	Reason  string
}

// holds is whether a rule holds for a request: that may not be known.
type holds int

const (
	no holds = iota
	unknown
	yes
)

// and is yes if both are.
func (h holds) and(o holds) holds { return min(h, o) }

func is(b bool) holds {
	if b {
		return yes
	}
	return no
}

// Decide decides. approve is what --approve says; "" leaves it to the agent what it asks for, and to the rules and the user
// what becomes of it.
func (p Policy) Decide(approve string, q Request) Decision {
	line := read(q.Command)
	doubt := ""
	for _, r := range p.Rules {
		if !r.Deny {
			continue
		}
		switch r.denies(q, line) {
		case yes:
			return Decision{Deny, r.name(), r.Reason}
		case unknown:
			doubt = r.name()
		}
	}
	if doubt != "" {
		return Decision{Ask, doubt + " may deny it", ""}
	}
	if by, ok := p.allows(q, line); ok {
		return Decision{Allow, by, ""}
	}
	if approves(approve, q) {
		return Decision{Allow, "--approve " + approve, ""}
	}
	return Decision{Verdict: Ask}
}

// name is who decides by a rule: the place of one in a file, or whoever allowed it for a session.
func (r Rule) name() string { return cmp.Or(r.From, r.String()) }

// String is the rule in the words of its file.
func (r Rule) String() string {
	words := []string{"allow"}
	if r.Deny {
		words[0] = "deny"
	}
	for _, key := range [][2]string{{"kind", r.Kind}, {"tool", r.Tool}, {"command", r.Command}, {"exact", r.Exact}, {"path", r.Path}} {
		if key[1] != "" {
			words = append(words, key[0]+"="+strconv.Quote(key[1]))
		}
	}
	if r.From != "" {
		words = append(words, "("+r.From+")")
	}
	return strings.Join(words, " ")
}

// denies reports whether the rule holds, or may.
func (r Rule) denies(q Request, line commands) holds {
	h := yes
	if r.Kind != "" {
		h = h.and(is(r.Kind == q.Kind))
	}
	if r.Tool != "" {
		h = h.and(r.tool(q))
	}
	if r.Command != "" {
		h = h.and(r.mayRun(q, line))
	}
	if r.Path != "" {
		h = h.and(r.touches(q))
	}
	return h
}

// tool compares names of tools.
func (r Rule) tool(q Request) holds {
	if q.Tool == "" {
		return unknown
	}
	names := strings.NewReplacer("/", "\x00") // * is for all of a name
	ok, err := path.Match(names.Replace(r.Tool), names.Replace(q.Tool))
	return is(ok || err != nil)
}

// mayRun reports whether a command line has such a command in it. Of a command whose line is not told nothing is known.
func (r Rule) mayRun(q Request, line commands) holds {
	switch {
	case q.Command == "" && q.Kind == "execute":
		return unknown
	case q.Command == "":
		return no
	}
	return line.may(r.Command)
}

// touches reports whether a file of the request's is one of the rule's. A command may touch any, and so may what names none.
func (r Rule) touches(q Request) holds {
	if len(q.Paths) == 0 {
		return is(q.Kind != "think").and(unknown)
	}
	h := is(q.Command != "").and(unknown)
	for _, name := range q.Paths {
		switch {
		case covers(r.Path, name, q):
			return yes
		case slices.Contains(deep, q.Kind) && above(r.Path, name, q):
			h = unknown
		}
	}
	return h
}

// deep are kinds of tools that are about all that is below a directory.
var deep = []string{"search", "delete", "move", "other"}

// allows reports whether rules allow all of a request. A command line may need several: one for each of its commands.
func (p Policy) allows(q Request, line commands) (by string, ok bool) {
	var running []Rule
	for _, r := range p.Rules {
		switch {
		case r.Deny || !r.fits(q):
		case r.Command != "":
			running = append(running, r)
		default:
			return r.name(), true
		}
	}
	if len(running) == 0 || !line.only(running) {
		return "", false
	}
	return running[0].name(), true
}

// fits reports whether all keys but the command hold for certain.
func (r Rule) fits(q Request) bool {
	if r.Tool != "" && r.tool(q) != yes || r.Kind != "" && r.Kind != q.Kind || r.Exact != "" && r.Exact != q.Command {
		return false
	}
	if q.Command != "" && q.Kind != "execute" && r.Command+r.Exact+r.Tool == "" {
		return false // whatever it calls itself, it runs something
	}
	if r.Path == "" {
		return r.Kind+r.Tool+r.Command+r.Exact != ""
	}
	outside := func(name string) bool { return !covers(r.Path, name, q) }
	return len(q.Paths) > 0 && q.Command == "" && !slices.ContainsFunc(q.Paths, outside)
}

// approves reports whether --approve allows a request. What changes files is only allowed in the directory in which the agent
// works, and by what names them.
func approves(approve string, q Request) bool {
	looks := slices.Contains([]string{"read", "search", "think"}, q.Kind) && q.Command == ""
	changes := slices.Contains([]string{"edit", "delete", "move"}, q.Kind) && q.Command == ""
	outside := func(name string) bool { return !covers(".", name, q) }
	switch approve {
	case "all":
		return true
	case "edits":
		return looks || changes && len(q.Paths) > 0 && !slices.ContainsFunc(q.Paths, outside)
	case "reads":
		return looks
	}
	return false
}

// Always is the rule by which what was allowed once is allowed from then on: the same command line; the same tool for files in
// the directory where the agent works, if it is about files; else the same tool. ok is false if it is about files elsewhere, or
// the agent says too little of it.
func Always(q Request) (r Rule, ok bool) {
	switch {
	case q.Kind == "execute" || q.Command != "":
		return Rule{Kind: q.Kind, Exact: q.Command, From: always}, q.Command != ""
	case slices.Contains([]string{"read", "search", "edit", "delete", "move"}, q.Kind):
		r = Rule{Kind: q.Kind, Tool: quote(q.Tool), Path: ".", From: always}
		return r, r.fits(q)
	}
	return Rule{Kind: q.Kind, Tool: quote(q.Tool), From: always}, q.Tool != ""
}

// always is where such a rule comes from.
const always = "pintle allow --always"

// quote is a pattern that only that name matches.
func quote(name string) string {
	var b []rune
	for _, r := range name {
		if slices.Contains([]rune(`*?[\`), r) {
			b = append(b, '\\')
		}
		b = append(b, r)
	}
	return string(b)
}

// Unkept are the rules that an agent cannot be held to, since it uses tools of those kinds unasked (X37).
func (p Policy) Unkept(unasked []string) (rules []Rule) {
	for _, r := range p.Rules {
		if r.Deny && slices.ContainsFunc(unasked, r.concerns) {
			rules = append(rules, r)
		}
	}
	return rules
}

// concerns reports whether a rule may speak of a kind of tool.
func (r Rule) concerns(kind string) bool {
	switch {
	case r.Kind != "":
		return r.Kind == kind
	case r.Command != "":
		return kind == "execute"
	case r.Path != "":
		return kind != "think"
	}
	return true
}
