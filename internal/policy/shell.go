package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commands are what a line of shell runs, in whatever place of it: behind pipes, in substitutions, in what a shell is given
// with -c.
type commands struct {
	line   string // it as it came
	simple []simple
	// opaque says that it runs more than can be told, or cannot be read.
	opaque bool
	// writes says that it changes files or variables itself, or what words mean.
	writes bool
}

// simple is one command's words. One that is not literal is nil.
type simple []*string

const (
	most    = 6        // how deep lines in lines are read
	longest = 64 << 10 // bytes of a line that is read
)

// The dialects in which a line is read. Nobody says which shell an agent has, and sh may be any: what one of them takes for words
// another one runs. So what either finds in a line counts, and what either cannot read is opaque.
var anySh, bash = []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}, []syntax.LangVariant{syntax.LangBash}

// read reads a line.
func read(line string) commands {
	c := commands{line: line}
	c.add(line, most, anySh)
	return c
}

func (c *commands) add(line string, depth int, dialects []syntax.LangVariant) {
	if len(line) > longest || depth == 0 || strings.ContainsRune(line, 0) {
		c.opaque = true
		return
	}
	for _, dialect := range dialects {
		file, err := syntax.NewParser(syntax.Variant(dialect), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
		if err != nil {
			c.opaque = true
			continue
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			c.node(n, depth)
			return true
		})
	}
}

// harmless says that a redirection changes no file.
func harmless(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.DplOut:
		to := literal(r.Word)
		return to != nil && strings.Trim(*to, "0123456789-") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob:
		to := literal(r.Word)
		return to != nil && *to == "/dev/null"
	}
	return false
}

// literal is what a word is; nil if something in it is expanded.
func literal(w *syntax.Word) *string {
	if w == nil {
		return nil
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !plain(part.Value) {
				return nil
			}
			b.WriteString(unescaped(part.Value, ""))
		case *syntax.SglQuoted:
			if part.Dollar {
				return nil
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if !quoted(&b, part) {
				return nil
			}
		default:
			return nil
		}
	}
	s := b.String()
	return &s
}

// plain says that a shell makes no other words of this: no pattern, no braces, no home.
func plain(s string) bool { return s == "[" || s == "[[" || !strings.ContainsAny(s, "*?[{~") }

// unescaped is what a shell makes of backslashes: before one of those characters, or before any.
func unescaped(s, special string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quoted adds what is between double quotes, if nothing in it is expanded.
func quoted(b *strings.Builder, q *syntax.DblQuoted) bool {
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || q.Dollar {
			return false
		}
		b.WriteString(unescaped(lit.Value, "\"\\$`\n"))
	}
	return true
}

// call takes one command in. A shell with a script that can be read is what that runs.
func (c *commands) call(args []*syntax.Word, depth int) {
	if len(args) == 0 {
		return
	}
	var words simple
	for _, w := range args {
		words = append(words, literal(w))
	}
	if script, dialects := words.script(); script != nil {
		c.add(*script, depth-1, dialects)
		return
	}
	c.writes = c.writes || slices.Contains(changers, words.name())
	c.simple = append(c.simple, words)
}

// changers change variables, or what words mean, for what follows.
var changers = []string{
	"alias", "enable", "hash", "trap", "set", "shopt", "read", "mapfile", "readarray", "getopts", "printf", "unset", "export", "eval",
	"source", ".", "exec",
}

// name is a command's, "" if it cannot be told.
func (s simple) name() string {
	if s[0] == nil {
		return ""
	}
	return *s[0]
}

// shells run lines, or files of them. Those that have dialects here are read.
var shells = []string{
	"sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "pdksh", "yash", "csh", "tcsh", "fish", "pwsh", "powershell", "nu", "elvish", "xonsh",
}

// script is what a shell is given with -c, alone, and how that is to be read; nil if it is none, or is no literal. What follows a
// script is in its variables.
func (s simple) script() (script *string, dialects []syntax.LangVariant) {
	switch strings.TrimPrefix(s.name(), "/bin/") {
	case "bash":
		dialects = bash
	case "sh", "dash":
		dialects = anySh
	default:
		return nil, nil
	}
	for i, word := range s[1:] {
		switch {
		case word == nil:
			return nil, nil
		case (*word == "-c" || *word == "-lc") && i+3 == len(s):
			return s[i+2], dialects
		case *word != "-l":
			return nil, nil
		}
	}
	return nil, nil
}

// only reports whether a line runs nothing but what the rules allow, and changes nothing itself.
func (c commands) only(rules []Rule) bool {
	if c.opaque || c.writes || len(c.simple) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.simple, func(s simple) bool {
		return !slices.ContainsFunc(rules, func(r Rule) bool { return s.begins(strings.Fields(r.Command)) })
	})
}

// begins reports whether a command begins with those words for certain.
func (s simple) begins(prefix []string) bool {
	if len(prefix) == 0 || len(s) < len(prefix) {
		return false
	}
	for i, word := range prefix {
		if s[i] == nil || *s[i] != word {
			return false
		}
	}
	return true
}

// may reports whether a line has a command in it that begins so, or may have. Where all of its words are in the line, in whatever
// place, it may: there are more programs that run what they are given than anybody knows.
func (c commands) may(command string) holds {
	prefix := strings.Fields(command)
	h := no
	if c.opaque || !slices.ContainsFunc(prefix, func(word string) bool { return !mentions(c.line, word) }) {
		h = unknown
	}
	for _, s := range c.simple {
		h = max(h, s.may(prefix))
	}
	return h
}

// carriers run what follows in their arguments.
var carriers = []string{
	"sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "xargs", "command", "exec", "builtin", "setsid", "stdbuf", "eval",
	"watch", "find", "parallel", "chroot", "unshare", "strace", "ltrace", "script", "flock", "systemd-run", "busybox", "ssh",
	"source", ".", "sem",
}

// opaque are commands that read what they run from elsewhere.
var opaque = []string{"eval", "source", ".", "ssh"}

// adders add words to the command that they are given.
var adders = []string{"xargs", "parallel", "sem"}

// may reports the same of one command. Options may be between the words of the prefix, so that words which come in their order
// leave it unknown; so does a word that is not literal, where one of the prefix may be.
func (s simple) may(prefix []string) holds {
	base := path.Base(s.name())
	switch {
	case len(prefix) == 0 || s[0] == nil:
		return unknown
	case s.same(0, prefix):
		return yes
	case base == prefix[0] && s.holds(1, prefix[1:]):
		return unknown
	case slices.Contains(shells, base):
		return unknown
	case !slices.Contains(carriers, base):
		return no
	}
	h := is(slices.Contains(opaque, base) || s.splits() || base == "exec" && len(s) == 1).and(unknown)
	for i := 1; i < len(s); i++ {
		if s[i] == nil || slices.Contains(shells, path.Base(*s[i])) || slices.Contains(adders, base) && s.same(i, prefix[:1]) {
			h = max(h, unknown)
		}
		if s.same(i, prefix) {
			h = yes
		}
	}
	return h
}

// splits reports whether env makes words of one of its own, in a way that is not read here.
func (s simple) splits() bool {
	return slices.ContainsFunc(s, func(w *string) bool {
		return w != nil && (strings.HasPrefix(*w, "-S") || strings.HasPrefix(*w, "--split-string"))
	})
}

// same reports whether the words from there on are those of the prefix, the first by its last part.
func (s simple) same(from int, prefix []string) bool {
	if len(s)-from < len(prefix) {
		return false
	}
	for i, want := range prefix {
		got := s[from+i]
		if got == nil || *got != want && (i > 0 || path.Base(*got) != want) {
			return false
		}
	}
	return true
}

// holds reports whether the words from there on have those of the prefix in them, in that order, or may.
func (s simple) holds(from int, prefix []string) bool {
	for _, word := range s[from:] {
		if len(prefix) > 0 && (word == nil || *word == prefix[0]) {
			prefix = prefix[1:]
		}
	}
	return len(prefix) == 0
}
