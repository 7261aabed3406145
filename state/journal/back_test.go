package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// backwards are the events before a sequence, in order.
func backwards(t testing.TB, dir string, before uint64, kinds ...string) (all []Event) {
	t.Helper()
	for e, err := range Back(dir, before, kinds...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	slices.Reverse(all)
	return all
}

func kind(kind, text string) Event {
	e := event(text)
	e.Type = kind
	return e
}

// rolled is a journal of two segments, with lines that are longer than a block.
func rolled(t *testing.T) (dir string, total int) {
	t.Helper()
	dir = memory(t)
	w, _ := open(t, dir, 0)
	for i := range 18 {
		add(t, w, big(2*i), event("small"))
	}
	if firsts, err := segments(dir); err != nil || len(firsts) != 2 {
		t.Fatalf("segments %v, %v; want 2", firsts, err)
	}
	return dir, 36
}

func TestR10_BackIsTheJournalFromItsEnd(t *testing.T) {
	dir, total := rolled(t)
	all := readAll(t, dir, 0)
	for _, before := range []uint64{0, 1, 2, 33, 34, 99} {
		want := all
		if before > 0 {
			want = all[:min(total, int(before-1))]
		}
		got := backwards(t, dir, before)
		if len(got) != len(want) || !slices.Equal(texts(want), texts(got)) {
			t.Errorf("before %d: %d events, want %d", before, len(got), len(want))
		}
	}
}

func TestR10_BackStopsWhenTold(t *testing.T) {
	dir, total := rolled(t)
	if err := os.Remove(filepath.Join(dir, segmentName(1))); err != nil { // it is never looked for
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, segmentName(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	for e, err := range Back(dir, 0) {
		if err != nil || e.Seq != uint64(total) {
			t.Errorf("%d, %v", e.Seq, err)
		}
		break
	}
	var last error
	for _, err := range Back(dir, 3) {
		last = err
	}
	if last == nil {
		t.Error("a segment that cannot be read is told of as none")
	}
}

func TestR10_BackGivesTheKindsAlone(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	add(t, w, kind("a", "1"), kind("b", "2"), kind("c", `"type":"a"`), kind("a", "4"))
	sly := kind("c", "")
	sly.Data = []byte(`{"type":"a"}`)
	add(t, w, sly, kind("b", "6"))
	for name, c := range map[string]struct {
		kinds []string
		want  []string
	}{
		"one": {[]string{"a"}, []string{"1", "4"}}, "two": {[]string{"b", "a"}, []string{"1", "2", "4", "6"}}, "none there": {[]string{"x"}, nil},
	} {
		if diff := cmp.Diff(c.want, texts(backwards(t, dir, 0, c.kinds...))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCase19_BackPassesOverTornTailsAndDamage(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	for _, s := range []string{"a", "b", "c"} {
		add(t, w, event(s), event(s+s))
	}
	_ = w.Close()
	whole, err := os.ReadFile(segment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	all := []string{"a", "aa", "b", "bb", "c", "cc"}
	for name, c := range map[string]struct {
		data []byte
		want []string
	}{
		"whole":                   {whole, all},
		"the commit is missing":   {bytes.Join(lines[:5], nil), all[:4]},
		"the commit is torn":      {whole[:len(whole)-1], all[:4]},
		"a torn line":             {append(bytes.Clone(whole), lines[0][:30]...), all},
		"zeroes of a power cut":   {append(bytes.Clone(whole), make([]byte, 2*readSize)...), all},
		"a damaged line":          {bytes.Replace(whole, []byte(`"bb"`), []byte(`"XX"`), 1), []string{"a", "aa", "b", "c", "cc"}},
		"the last commit damaged": {bytes.Replace(whole, []byte(`"cc"`), []byte(`"XX"`), 1), all[:4]},
		"a newline in a line":     {bytes.Replace(whole, []byte(`"bb"`), []byte("\n\nb\""), 1), []string{"a", "aa", "b", "c", "cc"}},
		"an empty first line":     {append([]byte("\n"), whole...), all},
		"no whole line":           {whole[:20], nil},
		"nothing":                 {nil, nil},
	} {
		rewrite(t, segment(t, dir), func([]byte) []byte { return c.data })
		if diff := cmp.Diff(c.want, texts(backwards(t, dir, 0))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.want, texts(readAll(t, dir, 0))); diff != "" {
			t.Errorf("%s: read forwards: %s", name, diff)
		}
	}
	if got := backwards(t, dir+"/none", 0); got != nil {
		t.Errorf("of no journal: %v", got)
	}
}

func TestR10_BackGoesOverReboots(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 3 {
		w, _ := open(t, dir, 1_000_000)
		if i > 0 { // at the first, nothing was written before the next
			want = append(want, fmt.Sprint(i))
			add(t, w, event(fmt.Sprint(i)))
		}
		_ = w.Close()
	}
	if diff := cmp.Diff(want, texts(backwards(t, dir, 0))); diff != "" {
		t.Error(diff)
	}
	for _, e := range readAll(t, dir, 0) {
		if got := backwards(t, dir, e.Seq); len(got) > 0 && got[len(got)-1].Seq >= e.Seq {
			t.Errorf("before %d came %d", e.Seq, got[len(got)-1].Seq)
		}
	}
}

// Whoever reads while the writer writes gets the journal as it was at some time: whole appends, without a gap.
func TestR10_BackWhileAWriterWrites(t *testing.T) {
	dir := memory(t)
	w, _ := open(t, dir, 0)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range 300 {
			if _, err := w.Append([]Event{event(strings.Repeat("x", 1000*(i%100))), event("b")}, Commit{}, false); err != nil {
				t.Error(err)
			}
		}
	})
	for going := true; going; {
		select {
		case <-done:
			going = false
		default:
		}
		got := backwards(t, dir, 0)
		for i, e := range got {
			if e.Seq != uint64(i+1) {
				t.Fatalf("sequence %d at %d", e.Seq, i)
			}
		}
		if len(got)%2 != 0 {
			t.Fatalf("%d events: a part of an append", len(got))
		}
	}
	wg.Wait()
}
