package environ

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// quotings are the ways in which the writers of JSON that agents are made with escape a string: JavaScript's
// and Rust's leave everything alone that may stand for itself, Go's escapes HTML too, Python's all that is
// not ASCII.
var quotings = []func(string) string{
	func(s string) string { return quote(s, never) },
	func(s string) string { return quote(s, html) },
	func(s string) string { return quote(s, foreign) },
}

func never(rune) bool     { return false }
func html(r rune) bool    { return strings.ContainsRune("<>&\u2028\u2029", r) }
func foreign(r rune) bool { return r > 0x7e }

// short returns the escapes with a letter of their own. It is no map, which would be built at each start.
func short(r rune) string {
	switch r {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	}
	return ""
}

// quote returns the inside of a JSON string that holds s.
func quote(s string, also func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		switch escape := short(r); {
		case escape != "":
			b.WriteString(escape)
		case r < 0x20 || also(r):
			writeEscape(&b, r)
		default:
			b.WriteString(s[i : i+width(s[i:])])
		}
	}
	return b.String()
}

// width is the length of the first character of s as it stands there: a byte that is no UTF-8 is 1 long,
// although it reads as U+FFFD, whose own length is 3.
func width(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

func writeEscape(b *strings.Builder, r rune) {
	if r <= 0xffff {
		fmt.Fprintf(b, `\u%04x`, r)
		return
	}
	high, low := utf16.EncodeRune(r)
	fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
}
