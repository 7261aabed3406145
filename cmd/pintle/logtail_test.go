package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/state/journal"
)

func TestTailCountsLinesOfBothStreams(t *testing.T) {
	type said struct{ kind, text string }
	o, e := "agent_message_chunk", "stderr"
	told := []said{{o, "a\nb\n"}, {e, "c\nd"}, {o, "e\n"}, {e, "d\nf\n"}, {o, "g"}}
	for n, want := range [][]said{
		nil,
		{{o, "g"}},
		{{e, "f\n"}, {o, "g"}},
		{{o, "e\n"}, {e, "f\n"}, {o, "g"}}, // the rest of d's line, which began before, is left out
		{{e, "d"}, {o, "e\n"}, {e, "d\nf\n"}, {o, "g"}},
		{{e, "c\nd"}, {o, "e\n"}, {e, "d\nf\n"}, {o, "g"}},
		{{o, "b\n"}, {e, "c\nd"}, {o, "e\n"}, {e, "d\nf\n"}, {o, "g"}},
		told,
		told,
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := &lines{n: n, within: map[string]bool{}}
			for i, s := range told {
				l.output(journal.Event{Seq: uint64(i + 1), Type: s.kind}, []byte(s.text))
			}
			if len(l.places) > 2*n+1 {
				t.Errorf("%d places are kept", len(l.places))
			}
			from, found := l.first()
			if found != (n > 0) {
				t.Fatalf("found a place: %v", found)
			}
			var got []said
			for i, s := range told {
				seq := uint64(i + 1)
				if !found || seq < from.seq {
					continue // a reader begins there
				}
				if b := from.cut(journal.Event{Seq: seq, Type: s.kind}, []byte(s.text)); len(b) > 0 {
					got = append(got, said{s.kind, string(b)})
				}
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(said{})); d != "" {
				t.Error(d)
			}
		})
	}
}
