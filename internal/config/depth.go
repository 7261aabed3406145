package config

import "bytes"

// maxDepth is how deep a file from a stranger may nest, and how many dots a key in it may have. The library keeps every
// prefix of a key: one of 16 KiB in parts of one letter costs it 2.6 GB. Ours have one dot and two levels.
const maxDepth = 8

// depth returns how deep the brackets of a TOML text nest or how many dots a key of it has, whichever is more. It reads
// what stands outside of strings and comments as the library does, up to that one's first error.
func depth(text []byte) (deepest int) {
	open, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i += quote(text[i:]) - 1
		case '#':
			i += line(text[i:]) - 1
		case '.':
			dots++
		case '[', '{':
			open, dots = open+1, 0
		case ']', '}':
			open, dots = max(0, open-1), 0
		case '=', ',', '\n', '\r':
			dots = 0
		}
		deepest = max(deepest, open, dots)
	}
	return deepest
}

// line is the length of what is left of a line.
func line(text []byte) int {
	if i := bytes.IndexAny(text, "\r\n"); i >= 0 {
		return i
	}
	return len(text)
}

// quote is the length of the string at the beginning of text, which ends at its line unless it has three quotes.
func quote(text []byte) int {
	mark := text[:1]
	if triple := bytes.Repeat(mark, 3); bytes.HasPrefix(text, triple) {
		mark = triple
	}
	for i := len(mark); i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark[0] == '"':
			i++
		case text[i] == '\n' && len(mark) == 1:
			return i
		case bytes.HasPrefix(text[i:], mark):
			return i + len(mark) + more(text[i+len(mark):], mark)
		}
	}
	return len(text)
}

// more is how many quotes belong to a string of three quotes after those that end it: up to two.
func more(rest, mark []byte) (n int) {
	for len(mark) == 3 && n < 2 && n < len(rest) && rest[n] == mark[0] {
		n++
	}
	return n
}
