package journal

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func seeds(f *testing.F) {
	dir := f.TempDir()
	w, _ := open(f, dir, 0)
	add(f, w, event("a"))
	add(f, w, event("b"), event("c"))
	whole, err := os.ReadFile(segment(f, dir))
	if err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for _, seed := range [][]byte{
		nil, whole, whole[:len(whole)-9], append(bytes.Clone(whole), 0, 0), bytes.Replace(whole, []byte("b"), []byte("\n"), 1),
		bytes.Join([][]byte{lines[2], lines[0]}, nil), append(bytes.Clone(whole), lines[0]...), []byte("\n\n{}\n"),
	} {
		f.Add(seed, uint16(len(seed)/2))
	}
}

// Whatever a segment holds, opening it keeps all that could be read, and what is appended then is read
// behind it.
func FuzzOpen(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint16) {
		dir := memory(t)
		if err := os.WriteFile(dir+"/"+segmentName(1), data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := readAll(t, dir, 0)
		w, found := open(t, dir, 0)
		if diff := cmp.Diff(before, readAll(t, dir, 0)); diff != "" {
			t.Fatalf("opening changed what is read: %s", diff)
		}
		add(t, w, event("next"))
		after := readAll(t, dir, 0)
		if diff := cmp.Diff(append(texts(before), "next"), texts(after)); diff != "" {
			t.Fatalf("%+v: %s", found, diff)
		}
	})
}

// A reader that comes while a segment is being written is told the same as one that comes later.
func FuzzReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		dir := memory(t)
		path := dir + "/" + segmentName(1)
		r := NewReader(dir, 0)
		defer r.Close()
		var got []Event
		for _, part := range [][]byte{data[:min(int(cut), len(data))], data} {
			if err := os.WriteFile(path, part, 0o600); err != nil {
				t.Fatal(err)
			}
			for {
				events, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if len(events) == 0 {
					break
				}
				got = append(got, events...)
			}
		}
		if diff := cmp.Diff(readAll(t, dir, 0), got); diff != "" {
			t.Fatal(diff)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Seq <= got[i-1].Seq {
				t.Fatalf("sequence %d behind %d", got[i].Seq, got[i-1].Seq)
			}
		}
	})
}

// Backwards comes what comes forwards, as long as nothing stands where it does not belong.
func FuzzBack(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, before uint16) {
		dir := memory(t)
		if err := os.WriteFile(dir+"/"+segmentName(1), data, 0o600); err != nil {
			t.Fatal(err)
		}
		all, got := readAll(t, dir, 0), backwards(t, dir, 0)
		if diff := cmp.Diff(all, got); diff != "" && ascending(data) {
			t.Fatal(diff)
		}
		last := uint64(0)
		for _, e := range backwards(t, dir, uint64(before)) {
			if e.Seq <= last || before > 0 && e.Seq >= uint64(before) {
				t.Fatalf("before %d came %d, before %d", before, last, e.Seq)
			}
			last = e.Seq
		}
		want := slices.DeleteFunc(all, func(e Event) bool { return e.Seq <= uint64(before) })
		if diff := cmp.Diff(texts(want), texts(readAll(t, dir, uint64(before)))); diff != "" && ascending(data) {
			t.Fatalf("behind %d: %s", before, diff)
		}
	})
}

func ascending(data []byte) bool {
	last := uint64(0)
	for line := range bytes.Lines(data) {
		e, err := parse(bytes.TrimSuffix(line, []byte("\n")))
		if err == nil && e.Seq <= last {
			return false
		}
		last = max(last, e.Seq)
	}
	return true
}
