package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAppend_RoundTrip(t *testing.T) {
	dir := t.TempDir()
	w, found := open(t, dir, 0)
	if diff := cmp.Diff(Recovered{Commits: map[string]Commit{}}, found); diff != "" {
		t.Errorf("a new journal: %s", diff)
	}
	given := []Event{event("a"), {Session: "s", Type: "bare", Time: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}}
	if last, err := w.Append(given, Commit{Runtime: "r", Out: 5, Err: 6}, true); err != nil || last != 2 {
		t.Fatalf("%d, %v", last, err)
	}
	if last, err := w.Append(nil, Commit{}, true); err != nil || last != 2 {
		t.Errorf("nothing appended: %d, %v", last, err)
	}
	want := []Event{event("a"), given[1]}
	want[0].Seq, want[0].Time, want[1].Seq, want[1].Commit = 1, clock(), 2, &Commit{Runtime: "r", Out: 5, Err: 6}
	if diff := cmp.Diff(want, readAll(t, dir, 0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[1:], readAll(t, dir, 1)); diff != "" {
		t.Error(diff)
	}
	if got := readAll(t, dir, 2); len(got) > 0 {
		t.Errorf("behind the last: %v", got)
	}
}

// Lines are written by hand; encoding/json must read back what was meant.
func TestAppendLine_RoundTrip(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) json.RawMessage {
		data, _ := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map"))
		return data
	})
	rapid.Check(t, func(t *rapid.T) {
		want := Event{
			Seq: rapid.Uint64().Draw(t, "seq"), Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
			Session: rapid.String().Draw(t, "session"), Execution: rapid.String().Draw(t, "execution"),
			Fence: rapid.Int64().Draw(t, "fence"), Turn: rapid.String().Draw(t, "turn"), Type: rapid.String().Draw(t, "type"),
			Data:   value.Draw(t, "data"),
			Commit: rapid.Ptr(rapid.Custom(func(t *rapid.T) Commit { return Commit{Runtime: rapid.StringN(0, 16, 32).Draw(t, "r"), Out: 1} }), true).Draw(t, "commit"),
		}
		line := appendLine(nil, &want)
		if bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not one line: %q", line)
		}
		line = line[:len(line)-1]
		got, err := parse(line)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got)\n%s", err, diff)
		}
		c, seq, ok := commitOf(line)
		if ok != (want.Commit != nil) || ok && (c != *want.Commit || seq != want.Seq) {
			t.Fatalf("commit %+v of %d, %v: %s", c, seq, ok, line)
		}
		at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
		line[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		// The hex digits of the sum may be written in capitals, which changes no number.
		if _, err := parse(line); err == nil && !bytes.Equal(bytes.ToLower(line), bytes.ToLower(appendLine(nil, &want)[:len(line)])) {
			t.Fatalf("a changed bit at %d went unseen: %s", at, line)
		}
	})
}

func TestCase19_TornTailIsNeverFused(t *testing.T) {
	whole := func() []byte {
		dir := t.TempDir()
		w, _ := open(t, dir, 0)
		add(t, w, event("a"))
		add(t, w, event("b"), event("c"))
		data, err := os.ReadFile(segment(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}()
	first := bytes.IndexByte(whole, '\n') + 1
	home := memory(t)
	for cut := range len(whole) + 1 {
		dir := fmt.Sprintf("%s/%d", home, cut)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+segmentName(1), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		w, found, err := Open(dir, 0, clock)
		if err != nil {
			t.Fatal(err)
		}
		want, end := []string(nil), 0
		switch {
		case cut == len(whole):
			want, end = []string{"a", "b", "c"}, cut
		case cut >= first:
			want, end = []string{"a"}, first
		}
		if int(found.Torn) != cut-end || int(found.Last) != len(want) || found.Damaged != "" {
			t.Errorf("cut at %d: %+v", cut, found)
		}
		add(t, w, event("next"))
		_ = w.Close()
		got := readAll(t, dir, 0)
		if diff := cmp.Diff(append(want, "next"), texts(got)); diff != "" {
			t.Errorf("cut at %d: %s", cut, diff)
		}
		for i, e := range got {
			if e.Seq != uint64(i+1) {
				t.Errorf("cut at %d: sequence %d at %d", cut, e.Seq, i)
			}
		}
	}
}

func TestOpen_SetsDamageInsideAside(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	for _, s := range []string{"a", "b", "c"} {
		add(t, w, event(s))
	}
	_ = w.Close()
	path := segment(t, dir)
	rewrite(t, path, func(b []byte) []byte { return bytes.Replace(b, []byte(`"b"`), []byte(`"X"`), 1) })
	damaged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the copy is made once
		w, found := open(t, dir, 0)
		_ = w.Close()
		copied, err := os.ReadFile(found.Damaged)
		if err != nil || !bytes.Equal(copied, damaged) || found.Last != 3 || found.Torn != 0 {
			t.Errorf("%+v, %v", found, err)
		}
	}
	r := NewReader(dir, 0)
	defer r.Close()
	events, err := r.Next()
	if err == nil {
		var more []Event
		more, err = r.Next() // what lies behind the damage, once it was looked at twice
		events = append(events, more...)
	}
	if diff := cmp.Diff([]string{"a", "c"}, texts(events)); err != nil || diff != "" || r.Damaged() != 1 {
		t.Errorf("%d damaged, %v, %s", r.Damaged(), err, diff)
	}
}

func TestX8_AppendKilledAnywhereIsWholeOrAbsent(t *testing.T) {
	for point, there := range map[string]bool{"journal.append": false, "journal.appended": true, "journal.synced": true} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			appendKilled(t, dir, point)
			_, found := open(t, dir, 0)
			want := []string(nil)
			if there {
				want = []string{"a", "b"}
			}
			if diff := cmp.Diff(want, texts(readAll(t, dir, 0))); diff != "" || int(found.Last) != len(want) || found.Torn != 0 {
				t.Errorf("%+v %s", found, diff)
			}
		})
	}
}

// big is an append of about a MiB.
func big(i int) Event { return event(fmt.Sprintf("%d%s", i, strings.Repeat(".", 1<<20))) }

func TestX8_RollKilledGoesOn(t *testing.T) {
	dir := memory(t)
	w, _ := open(t, dir, 0)
	for i := range 16 {
		add(t, w, big(i))
	}
	_ = w.Close()
	appendKilled(t, dir, "journal.rolled")
	w, found := open(t, dir, 0)
	if last := add(t, w, event("next")); found.Last != 16 || last != 17 {
		t.Errorf("%+v, next %d", found, last)
	}
	if got := texts(readAll(t, dir, 15)); len(got) != 2 || got[1] != "next" {
		t.Errorf("%d events behind 15", len(got))
	}
}

func TestReader_FollowsAWriterAcrossSegments(t *testing.T) {
	dir := memory(t)
	const total = 18
	r := NewReader(dir, 0) // before there is anything
	defer r.Close()
	if events, err := r.Next(); err != nil || len(events) > 0 {
		t.Fatalf("of nothing: %v, %v", events, err)
	}
	w, _ := open(t, dir, 0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range total {
			if _, err := w.Append([]Event{big(2 * i), event("small")}, Commit{}, i%7 == 0); err != nil {
				t.Error(err)
			}
		}
	})
	var got []Event
	for len(got) < 2*total && !t.Failed() {
		events, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(events)%2 != 0 {
			t.Fatalf("%d events: a part of an append", len(events))
		}
		got = append(got, events...)
	}
	wg.Wait()
	for i, e := range got {
		if e.Seq != uint64(i+1) {
			t.Fatalf("sequence %d at %d", e.Seq, i)
		}
	}
	if firsts, err := segments(dir); err != nil || len(firsts) != 2 {
		t.Errorf("segments %v, %v; want 2", firsts, err)
	}
	if r.Damaged() > 0 {
		t.Errorf("%d lines damaged", r.Damaged())
	}
	for _, after := range []uint64{31, 32, 33, 2 * total} {
		events := readAll(t, dir, after)
		if len(events) != 2*total-int(after) || len(events) > 0 && events[0].Seq != after+1 {
			t.Errorf("behind %d: %d events", after, len(events))
		}
	}
}

func TestOpen_AfterARebootNothingToldIsNumberedAgain(t *testing.T) {
	const skip = 1_000_000
	for name, kept := range map[string]int{"nothing": 0, "one": 1, "all": 3} {
		t.Run("kept "+name, func(t *testing.T) {
			dir := t.TempDir()
			w, _ := open(t, dir, 0)
			for range 3 {
				add(t, w, event("told"))
			}
			_ = w.Close()
			rewrite(t, segment(t, dir), func(b []byte) []byte {
				return bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:kept], nil)
			})
			w, _ = open(t, dir, skip)
			if last := add(t, w, event("lost too")); last != uint64(kept+1+skip) {
				t.Errorf("the next is %d, want %d", last, kept+1+skip)
			}
			_ = w.Close()
			if err := os.Truncate(w.file.Name(), 0); err != nil { // another cut before it was synced
				t.Fatal(err)
			}
			w, found := open(t, dir, skip)
			if last := add(t, w, event("new")); last != uint64(kept+1+2*skip) || int(found.Last) != kept {
				t.Errorf("%+v, the next is %d, want %d", found, last, kept+1+2*skip)
			}
			if got := readAll(t, dir, 3); len(got) != 1 {
				t.Errorf("behind the last that was told: %v", texts(got))
			}
		})
	}
}

func TestWriter_ManyGoroutinesGetSequencesOfTheirOwn(t *testing.T) {
	dir := memory(t)
	w, _ := open(t, dir, 0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				last, err := w.Append([]Event{event("a"), event(fmt.Sprint(g, i))}, Commit{}, i%5 == 0)
				if err != nil {
					t.Error(err)
				}
				if got, err := ReadAll(dir, last-2); err != nil || len(got) < 2 || got[1].Seq != last {
					t.Errorf("told and not to be read: %d, %v", last, err)
				}
			}
		})
	}
	wg.Wait()
	for i, e := range readAll(t, dir, 0) {
		if e.Seq != uint64(i+1) {
			t.Fatalf("sequence %d at %d", e.Seq, i)
		}
	}
}

func TestWriter_Closed(t *testing.T) {
	w, _ := open(t, t.TempDir(), 0)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Append([]Event{event("a")}, Commit{}, true); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if err := w.Sync(); err != nil {
		t.Error(err)
	}
}

func TestReader_PassesOverATailThatIsCutMeanwhile(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	add(t, w, event("a"))
	_ = w.Close()
	rewrite(t, segment(t, dir), func(b []byte) []byte { return append(b, `{"seq":2,"time":"torn`...) })
	r := NewReader(dir, 0)
	defer r.Close()
	var got []Event
	for range 2 {
		events, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, events...)
	}
	w, _ = open(t, dir, 0)
	add(t, w, event("b"))
	events, err := r.Next()
	if diff := cmp.Diff([]string{"a", "b"}, texts(append(got, events...))); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// The writer is killed in an append, and its successor cuts the tail and writes in its place, all between two
// reads of one Next: what is put together from both is no damage.
func TestCase19_ReaderSeesTheTailReplaced(t *testing.T) {
	dir := t.TempDir()
	w, _ := open(t, dir, 0)
	add(t, w, event("a"))
	_ = w.Close()
	rewrite(t, segment(t, dir), func(b []byte) []byte { return append(b, `{"seq":2,"time":"20`...) })
	r := NewReader(dir, 0)
	defer r.Close()
	if more, err := r.fill(); !more || err != nil {
		t.Fatalf("%v, %v", more, err)
	}
	w, _ = open(t, dir, 0)
	add(t, w, event("b"))
	add(t, w, event("c"))
	var got []Event
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
	if diff := cmp.Diff([]string{"a", "b", "c"}, texts(got)); diff != "" || r.Damaged() != 0 {
		t.Errorf("%d damaged; %s", r.Damaged(), diff)
	}
}
