// Package providertest is the one suite that every provider passes: that its driver is a fold, whose answer
// depends on the bytes alone, not on how they were cut nor on where it was written down and taken up again.
package providertest

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/providers"
)

// floods are given to every provider, besides the transcripts of its own agent.
var floods = map[string][]byte{
	"nothing":         nil,
	"lines":           []byte("one\ntwo\n\nfour"),
	"one byte":        []byte("x"),
	"characters":      []byte(strings.Repeat("aä€😀", 200)),
	"not UTF-8":       []byte("a\xff\xfe\xc3\n\xe2\x82"),
	"a long line":     bytes.Repeat([]byte("0123456789"), 20_000),
	"half a JSON":     []byte(`{"jsonrpc":"2.0","method":"x`),
	"a foreign JSON":  []byte(`{"never":["heard",{"of":null}]}` + "\n"),
	"a banner before": []byte("Welcome!\n{}\n"),
}

// Order is the n-th of a fold that is checked, from 1. A transcript with a later turn in it is one of an agent that was
// given these.
func Order(n int) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", n), Prompt: fmt.Sprintf("prompt %d", n), Cwd: "/dir"}
}

// orders is how many a fold is given, if its turns end.
const orders = 3

// Run runs the suite. transcripts are outputs of the real agent, by name.
func Run(t *testing.T, p providers.Provider, transcripts map[string][]byte) {
	t.Helper()
	all := maps.Clone(floods)
	maps.Copy(all, transcripts)
	for name, output := range all {
		t.Run(name, func(t *testing.T) { check(t, p, output, 1, 3, 4096) })
	}
}

// Check is the suite for one output, whatever that is, in short.
func Check(t testing.TB, p providers.Provider, output []byte) {
	t.Helper()
	check(t, p, output, 7)
}

// most is how many pieces an output is given in; more takes long and shows nothing else.
const most = 1_000

func check(t testing.TB, p providers.Provider, output []byte, sizes ...int) {
	t.Helper()
	whole := len(output) + 1
	for _, interrupt := range []int{0, 1 + bytes.Count(output, []byte("\n"))/2} {
		want := feed(t, p, output, run{size: whole, interrupt: interrupt})
		for _, size := range sizes {
			if len(output)/size > most {
				size = 1 + len(output)/most
			}
			same(t, p, output, want, run{size: size, interrupt: interrupt}, run{size: size, interrupt: interrupt, again: true})
		}
		if _, spoken := restore(t, p, nil).(providers.Agent); !spoken {
			return
		}
	}
	leave := 1 + bytes.Count(output, []byte("\n"))/2
	for _, r := range []run{{open: true, steer: 5}, {shared: true, steer: 7, leave: leave}} {
		r.size = whole
		want := feed(t, p, output, r)
		r.again = true
		same(t, p, output, want, r)
	}
}

// same wants a fold that is given an output in other ways to make the same of it.
func same(t testing.TB, p providers.Provider, output []byte, want result, ways ...run) {
	t.Helper()
	for _, r := range ways {
		if got := feed(t, p, output, r); !reflect.DeepEqual(want, got) {
			t.Errorf("%+v (-want +got)\n%s", r, cmp.Diff(want, got))
		}
	}
}

// A run is how an output is given to a fold.
type run struct {
	size      int  // of the pieces, in bytes
	again     bool // every frame gets a fold that is restored from the state of the one before
	interrupt int  // after so many frames the turn is interrupted; 0: never
	steer     int  // every so many frames a message is put into the turn; 0: never
	leave     int  // after so many frames it is left; 0: never
	shared    bool // the process has other conversations
	open      bool // the first order is to open the conversation only
}

func feed(t testing.TB, p providers.Provider, output []byte, r run) result {
	t.Helper()
	s := sitting{TB: t, provider: p, run: r, fold: restore(t, p, nil), got: result{Text: map[string]string{}}, ops: map[string]bool{}}
	s.attend()
	for rest := output; len(rest) > 0; {
		n := min(r.size, len(rest))
		s.piece(rest[:n], n == len(rest))
		rest = rest[n:]
	}
	if len(s.buf) > 0 {
		t.Errorf("%d bytes at the end are in no frame", len(s.buf))
	}
	if a, ok := s.fold.(providers.Agent); ok {
		s.got.About = a.About()
	}
	return s.got
}
