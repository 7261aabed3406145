package config

import (
	"errors"
	"strings"
)

// What can be wrong with a line of an environment file. They go to the user inside an Error.
var (
	errNoAssignment = errors.New("expected NAME=value")
	errName         = errors.New("a name is made of letters, digits and _, and does not begin with a digit")
	errOpenQuote    = errors.New("the quote is not closed on this line")
	errAfterQuote   = errors.New("something follows the closing quote")
	errNUL          = errors.New("a value holds no NUL")
)

// parseEnvLine reads one line without the space around it. A comment and an empty line give no name. There is no
// expansion: `$` stands for itself.
func parseEnvLine(line string) (name, value string, err error) {
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	name, rest, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		return "", "", errNoAssignment // what stands there may be a value, so that it is not named
	case !validName(name):
		return "", "", errName
	case strings.Contains(rest, "\x00"):
		return name, "", errNUL
	}
	value, err = parseEnvValue(strings.TrimSpace(rest))
	return name, value, err
}

// parseEnvValue reads 'as it is', "with \n escapes", or plain up to a comment, which begins with a space and a #.
func parseEnvValue(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	switch s[0] {
	case '\'':
		value, rest, ok := strings.Cut(s[1:], "'")
		return closed(value, rest, ok)
	case '"':
		return closed(unescape(s[1:]))
	case '#':
		return "", nil
	}
	value, _, _ := strings.Cut(s, " #")
	return strings.TrimSpace(value), nil
}

// closed checks what stands behind a quoted value.
func closed(value, rest string, ok bool) (string, error) {
	rest = strings.TrimSpace(rest)
	switch {
	case !ok:
		return "", errOpenQuote
	case rest != "" && rest[0] != '#':
		return "", errAfterQuote
	}
	return value, nil
}

// escaped returns what a letter behind a backslash stands for between double quotes. Another one keeps its
// backslash.
func escaped(c byte) (byte, bool) {
	switch c {
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case '"', '\\', '$', '`':
		return c, true
	}
	return 0, false
}

// unescape reads up to the closing double quote.
func unescape(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			return b.String(), s[i+1:], true
		}
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			if e, known := escaped(s[i+1]); known {
				c = e
				i++
			}
		}
		b.WriteByte(c)
	}
	return "", "", false
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
