package wire

import (
	"regexp"
	"testing"

	"github.com/pintle/pintle/providers"
)

func TestClipAndTail(t *testing.T) {
	for _, tt := range []struct {
		in         string
		n          int
		clip, tail string
	}{{"abc", 3, "abc", "abc"}, {"abcd", 2, "ab", "cd"}, {"äöü", 2, "äö", "ü"}, {"", 0, "", ""}, {"€€", 4, "€€", "€"}} {
		if got := Clip(tt.in, tt.n); got != tt.clip {
			t.Errorf("Clip(%q, %d) = %q", tt.in, tt.n, got)
		}
		if got := Tail(tt.in, tt.n); got != tt.tail {
			t.Errorf("Tail(%q, %d) = %q", tt.in, tt.n, got)
		}
	}
}

func TestUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	a, b := UUID("t1", "x"), UUID("t1", "y")
	if !form.MatchString(a) || a == b || a != UUID("t1", "x") {
		t.Errorf("%s, %s", a, b)
	}
}

// What is made again has other names only if it is made for something else.
func TestMaker(t *testing.T) {
	var m Maker
	two := func() { m.Send("<a>"); m.Send(1) }
	first := m.Made("7", 0, two)
	if len(first) != 2 || first[0].Op != "7.0" || first[1].Op != "7.1" || string(first[0].Data) != "\"<a>\"\n" {
		t.Errorf("%+v", first)
	}
	if more := m.Made("7", m.Index(), two); more[0].Op != "7.2" {
		t.Errorf("%+v", more)
	}
	m.Notice("hm")
	if told := m.Told(); len(told) != 1 || told[0].Type != "agent_notice" || len(m.Told()) != 0 {
		t.Errorf("%+v", told)
	}
}

func TestLog(t *testing.T) {
	if got := Log("a", []byte("\x1b[31mred\x1b[0m\xff")); got != "ared\ufffd" {
		t.Errorf("%q", got)
	}
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		s     providers.Stream
		in    string
		final bool
		n     int
	}{{providers.Stdout, "a\nb", false, 2}, {providers.Stdout, "ab", false, 0}, {providers.Stdout, "ab", true, 2}, {providers.Stderr, "a\nb", false, 3}} {
		if got := Split(tt.s, []byte(tt.in), tt.final); got != tt.n {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}
