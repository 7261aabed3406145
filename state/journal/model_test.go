package journal

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is what a journal must hold: the appends that are whole, and what was ever told.
type model struct {
	dir     string
	w       *Writer
	appends []appended
	synced  int // appends that are on disk for certain
	told    map[uint64]bool
}

type appended struct {
	events []Event
	commit Commit
	path   string // of its segment
	end    int64  // of its bytes there
}

func (m *model) append(t *rapid.T) {
	a := appended{commit: Commit{
		Runtime: rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "runtime"), Out: rapid.Int64Range(0, 1<<40).Draw(t, "out"),
	}}
	for range rapid.IntRange(1, 5).Draw(t, "events") {
		a.events = append(a.events, event(rapid.String().Draw(t, "text")))
	}
	durable := rapid.Bool().Draw(t, "durable")
	last, err := m.w.Append(a.events, a.commit, durable)
	if err != nil || last != a.events[len(a.events)-1].Seq {
		t.Fatalf("%d, %v", last, err)
	}
	for _, e := range a.events {
		if m.told[e.Seq] {
			t.Fatalf("sequence %d is given again", e.Seq)
		}
		m.told[e.Seq] = true
	}
	a.path, a.end = m.w.file.Name(), m.w.size
	m.appends = append(m.appends, a)
	if durable {
		m.synced = len(m.appends)
	}
}

func (m *model) sync(t *rapid.T) {
	if err := m.w.Sync(); err != nil {
		t.Fatal(err)
	}
	m.synced = len(m.appends)
}

// die ends the writer. With a power cut what was not synced goes up to any byte; else a part of another
// append may stand behind the last.
func (m *model) die(t *rapid.T) {
	if err := m.w.Close(); err != nil {
		t.Fatal(err)
	}
	path := m.w.file.Name()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size, skip := len(data), uint64(0)
	if rapid.Bool().Draw(t, "power cut") {
		skip = 1_000_000
		least := 0
		if m.synced > 0 && m.appends[m.synced-1].path == path {
			least = int(m.appends[m.synced-1].end)
		}
		size = rapid.IntRange(least, size).Draw(t, "size")
		m.appends = slices.DeleteFunc(m.appends, func(a appended) bool { return a.path == path && a.end > int64(size) })
		m.synced = min(m.synced, len(m.appends))
		data = append(data[:size:size], bytes.Repeat([]byte{0}, rapid.IntRange(0, 100).Draw(t, "zeroes"))...)
	} else {
		e := event("torn")
		e.Seq = 1 << 50
		line := appendLine(nil, &e) // whole, but no commit
		data = append(data, append(line, line...)[:rapid.IntRange(0, 2*len(line)).Draw(t, "torn")]...)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m.reopen(t, skip, path, int64(len(data)))
}

func (m *model) reopen(t *rapid.T, skip uint64, path string, size int64) {
	var found Recovered
	var err error
	if m.w, found, err = Open(m.dir, skip, clock); err != nil {
		t.Fatal(err)
	}
	want := Recovered{Commits: map[string]Commit{}, Torn: size}
	for _, a := range m.appends {
		if a.commit.Runtime != "" {
			want.Commits[a.commit.Runtime] = a.commit
		}
		want.Last = a.events[len(a.events)-1].Seq
		if a.path == path {
			want.Torn = size - a.end
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Fatalf("recovered (-want +got)\n%s", diff)
	}
	m.synced = len(m.appends) // opening cuts and syncs, or the file was closed
}

func (m *model) check(t *rapid.T) {
	after := rapid.SampledFrom(append([]uint64{0}, m.last()...)).Draw(t, "after")
	var want []Event
	for _, a := range m.appends {
		for _, e := range a.events {
			if e.Seq > after {
				want = append(want, e)
			}
		}
	}
	got, err := ReadAll(m.dir, after)
	if err != nil || !reflect.DeepEqual(want, got) { // cmp takes minutes for all the checks
		t.Fatalf("%v (-want +got)\n%s", err, cmp.Diff(want, got))
	}
	for i := 1; i < len(got); i++ {
		if got[i].Seq <= got[i-1].Seq {
			t.Fatalf("sequence %d behind %d", got[i].Seq, got[i-1].Seq)
		}
	}
	m.checkBack(t, after)
}

// checkBack compares what else reads with the model.
func (m *model) checkBack(t *rapid.T, before uint64) {
	var all, want, got []Event
	for _, a := range m.appends {
		all = append(all, a.events...)
	}
	for _, e := range slices.Backward(all) {
		if before == 0 || e.Seq < before {
			want = append(want, e)
		}
	}
	for e, err := range Back(m.dir, before) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("before %d (-want +got)\n%s", before, cmp.Diff(want, got))
	}
	if found, err := Scan(m.dir, clock(), event("").Type); err != nil || !reflect.DeepEqual(all, found) {
		t.Fatalf("scanned: %v (-want +got)\n%s", err, cmp.Diff(all, found))
	}
}

func (m *model) last() (seqs []uint64) {
	for _, a := range m.appends {
		seqs = append(seqs, a.events[0].Seq)
	}
	return seqs
}

func TestJournal_Model(t *testing.T) {
	home := memory(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(home, "")
		if err != nil {
			rt.Fatal(err)
		}
		m := &model{dir: dir, told: map[uint64]bool{}}
		if m.w, _, err = Open(dir, 0, clock); err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = m.w.Close() }()
		rt.Repeat(map[string]func(*rapid.T){"append": m.append, "sync": m.sync, "die": m.die, "": m.check})
	})
}
