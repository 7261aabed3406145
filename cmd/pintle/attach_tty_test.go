package main

import (
	"strings"
	"testing"
	"time"
)

func TestWhole_WhatIsWrittenStandsAbove(t *testing.T) {
	for name, c := range map[string]struct {
		writes []string // "" ends the line
		want   string
	}{
		"a line":            {[]string{"one\n"}, "one\n"},
		"pieces":            {[]string{"on", "e\n"}, "on\n" + anew + "one\n"},
		"pieces of a line":  {[]string{"a ", "b ", "c"}, "a \n" + anew + "a b \n" + anew + "a b c\n"},
		"two at once":       {[]string{"one\ntw", "o"}, "one\ntw\n" + anew + "two\n"},
		"ended":             {[]string{"one", "", "two"}, "one\ntwo\n"},
		"ended twice":       {[]string{"one\n", "", "two\n"}, "one\ntwo\n"},
		"broken at a blank": {[]string{"one two three"}, "one two\nthree\n"},
		"broken in a word":  {[]string{"123456789012"}, "123456789\n012\n"},
		"wide":              {[]string{"水水水水水"}, "水水水水\n水\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			w := &whole{out: &out, width: func() int { return 10 }}
			for _, text := range c.writes {
				if text == "" {
					w.end()
					continue
				}
				if _, err := w.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if got := out.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKeys_CtrlCIsNoEndOfTheLine(t *testing.T) {
	interrupts := make(chan time.Time, 2)
	b := make([]byte, 16)
	n, err := (&keys{strings.NewReader("a\x03b\x03\x03\r"), interrupts}).Read(b)
	if err != nil || string(b[:n]) != "ab\r" || len(interrupts) != 2 {
		t.Errorf("got %q, %d interrupts, %v", b[:n], len(interrupts), err)
	}
}
