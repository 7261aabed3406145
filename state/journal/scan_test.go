package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func scanned(t testing.TB, dir string, since time.Time) []Event {
	t.Helper()
	events, err := Scan(dir, since, "receipt")
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestF4_ScanFindsTheReceiptsThatAreCommitted(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	sly := kind("other", "")
	sly.Data = []byte(`{"type":"receipt"}`)
	add(t, w, kind("receipt", "1"), sly, kind("other", `"type":"receipt"`))
	add(t, w, kind("receipts", "4"), kind("receipt", "5"))
	add(t, w, kind("receipt", "6"), kind("receipt", "7"))
	_ = w.Close()
	if diff := cmp.Diff([]string{"1", "5", "6", "7"}, texts(scanned(t, dir, clock()))); diff != "" {
		t.Error(diff)
	}
	rewrite(t, segment(t, dir), func(b []byte) []byte { return bytes.Replace(b, []byte(`"5"`), []byte(`"X"`), 1) })
	if diff := cmp.Diff([]string{"1", "6", "7"}, texts(scanned(t, dir, clock()))); diff != "" {
		t.Errorf("damaged: %s", diff)
	}
	rewrite(t, segment(t, dir), func(b []byte) []byte { return b[:len(b)-1] })
	if diff := cmp.Diff([]string{"1"}, texts(scanned(t, dir, clock()))); diff != "" {
		t.Errorf("without the commit: %s", diff)
	}
	if got := scanned(t, dir+"/none", clock()); got != nil {
		t.Errorf("of no journal: %v", got)
	}
}

// A segment is passed over only when the next one proves that all of it is older.
func TestF4_ScanPassesOverWhatIsOlder(t *testing.T) {
	dir := t.TempDir()
	at := func(hour int) time.Time { return clock().Add(time.Duration(hour) * time.Hour) }
	for i, hours := range [][]int{{0, 1}, {2, 3}, {4, 5}, {}} {
		w, _ := open(t, dir, uint64(min(i, 1)*1_000_000))
		for _, h := range hours {
			e := kind("receipt", fmt.Sprint(h))
			e.Time = at(h)
			add(t, w, e)
		}
		_ = w.Close()
	}
	firsts, err := segments(dir)
	if err != nil || len(firsts) != 4 {
		t.Fatalf("segments %v, %v; want 4", firsts, err)
	}
	for since, want := range map[int][]string{
		-1: {"0", "1", "2", "3", "4", "5"}, 2: {"0", "1", "2", "3", "4", "5"}, 3: {"2", "3", "4", "5"}, 4: {"2", "3", "4", "5"}, 9: {"4", "5"},
	} {
		if diff := cmp.Diff(want, texts(scanned(t, dir, at(since)))); diff != "" {
			t.Errorf("since %d: %s", since, diff)
		}
	}
	rewrite(t, filepath.Join(dir, segmentName(firsts[2])), func(b []byte) []byte { return bytes.Replace(b, []byte(`"4"`), []byte(`"X"`), 1) })
	if diff := cmp.Diff([]string{"2", "3", "5"}, texts(scanned(t, dir, at(9)))); diff != "" {
		t.Errorf("of a segment whose beginning is damaged it is not known when it begins: %s", diff)
	}
}

// An interrupted append is torn only until the next writer writes in its place: what stands behind the last commit counts
// for nothing, also a receipt that is whole.
func TestF4_ScanTakesNothingFromATornAppend(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	add(t, w, kind("receipt", "1"))
	_ = w.Close()
	e := kind("receipt", "2")
	e.Seq = 2
	rewrite(t, segment(t, dir), func(b []byte) []byte { return appendLine(b, &e) })
	if diff := cmp.Diff([]string{"1"}, texts(scanned(t, dir, clock()))); diff != "" {
		t.Error(diff)
	}
}

// journalOf fills a journal with n segments of what agents say, a receipt in each hundred.
func journalOf(b *testing.B, n int) (dir string, size int64) {
	b.Helper()
	dir = b.TempDir()
	w, _ := open(b, dir, 0)
	text := string(bytes.Repeat([]byte("some words "), 20))
	for firsts := []uint64(nil); len(firsts) <= n; {
		var events []Event
		for i := range 1000 {
			e := event(text)
			if i%100 == 0 {
				e.Type = "receipt"
			}
			events = append(events, e)
		}
		add(b, w, events...)
		var err error
		if firsts, err = segments(dir); err != nil {
			b.Fatal(err)
		}
	}
	_ = w.Close()
	for _, path := range must(filepath.Glob(dir + "/*.jsonl")) {
		size += must(os.Stat(path)).Size()
	}
	return dir, size
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkScan(b *testing.B) {
	dir, size := journalOf(b, 16)
	b.SetBytes(size)
	for b.Loop() {
		if len(scanned(b, dir, clock())) == 0 {
			b.Fatal("nothing found")
		}
	}
}

// The newest page costs a block, and not a segment.
func BenchmarkBack_Tail(b *testing.B) {
	dir, _ := journalOf(b, 1)
	for b.Loop() {
		n := 0
		for _, err := range Back(dir, 0) {
			if n++; err != nil || n == 100 {
				break
			}
		}
	}
}

// To look for one kind costs reading alone.
func BenchmarkBack_Kind(b *testing.B) {
	dir, size := journalOf(b, 4)
	b.SetBytes(size)
	for b.Loop() {
		for _, err := range Back(dir, 0, "turn_started") {
			b.Fatal("found", err)
		}
	}
}
