package acp

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/pintle/pintle/providers/wire"
)

// input is what a tool is given, as far as it says what would be done. A name that is written in another case is another name:
// the agent takes it for one.
type input struct {
	given   bool     // there is any
	runs    bool     // something in it is run
	command string   // the line of shell that is; "" if that cannot be told
	paths   []string // the files that it names
}

func readInput(raw json.RawMessage) (in input) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	in.given = len(fields) > 0
	var lines []string
	for _, key := range []string{"command", "cmd"} {
		if value, ok := fields[key]; ok {
			in.runs = true
			lines = append(lines, line(value))
		}
	}
	more := slices.ContainsFunc([]string{"args", "argv", "arguments"}, func(key string) bool { return fields[key] != nil })
	if len(lines) == 1 && !more && len(lines[0]) <= wire.TitleLimit {
		in.command = lines[0]
	}
	for _, key := range []string{"file_path", "filePath", "path", "notebook_path", "absolute_path"} {
		if path := name(fields[key]); path != "" {
			in.paths = append(in.paths, path)
		}
	}
	return in
}

// line is a line of shell, or the words of one; "" if it is neither.
func line(value json.RawMessage) string {
	if s := name(value); s != "" {
		return s
	}
	var words []string
	if json.Unmarshal(value, &words) != nil {
		return ""
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// bare are words that no shell makes anything else of.
var bare = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as a shell takes it for just that.
func quoted(word string) string {
	if bare.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
