package main

import (
	"bytes"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

func TestTalkDoesNotSpeakToTheTerminal(t *testing.T) {
	for s, want := range map[string]string{
		"plain, Grüße, 世界 🎉":           "plain, Grüße, 世界 🎉",
		"\x1b]0;title\a":               `\x1b]0;title\a`,
		"a\rb\x00\x7f":                 `a\rb\x00\x7f`,
		"\u009b31m":                    `\u009b31m`,
		"\x9b31m":                      `\x9b31m`,
		"\ufffd \"quoted\" \\x1b \xff": "\ufffd \"quoted\" \\x1b \\xff",
		"two\nlines":                   "two\nlines",
		"a \u202eb\u2066":              `a \u202eb\u2066`,
	} {
		if got := mute(s); got != want {
			t.Errorf("%q: %q; want %q", s, got, want)
		}
	}
	var talk bytes.Buffer
	a := &app{stderr: &talk}
	a.fail(api.E(api.CodeNotFound, "no \x1b[2J").WithNext("see \x1b[2J"))
	if got, want := talk.String(), "pintle: no \\x1b[2J\npintle: hint: see \\x1b[2J\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
