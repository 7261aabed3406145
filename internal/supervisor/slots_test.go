package supervisor

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/record"
)

// turn is a run that was ordered at the given second.
func turn(folder string, second int) record.Turn {
	return record.Turn{Folder: folder, At: time.Unix(int64(second), 0)}
}

// woken counts who was woken.
type woken map[string]int

func (w woken) wake(folder string) func() { return func() { w[folder]++ } }

// Slots are given out in the order of the orders, whoever asks first, and an end wakes the next one.
func TestX39_SlotsGoByOrder(t *testing.T) {
	q, w := newSlots(1), woken{}
	q.open()
	if !q.take(turn("a", 1), w.wake("a")) || q.take(turn("c", 3), w.wake("c")) || q.take(turn("b", 2), w.wake("b")) {
		t.Fatal("not the first alone has a slot")
	}
	if q.take(turn("b2", 2), w.wake("b2")) {
		t.Fatal("two have it")
	}
	for i, next := range []string{"b", "b2", "c"} {
		if got := q.standing(next); got == nil || got.Kind != "limit" || got.Detail != "1 of 1 run, 0 before it" {
			t.Errorf("%s waits for %+v", next, got)
		}
		q.leave([]string{"a", "b", "b2"}[i])
		if !q.holds(next) || w[next] != 1 || q.standing(next) != nil {
			t.Errorf("%s does not have the slot: woken %v", next, w)
		}
	}
}

// Nothing is given out before all older orders were seen, and each of them has asked or passed.
func TestX39_NoSlotBeforeOlderOrdersWereSeen(t *testing.T) {
	q, w := newSlots(1), woken{}
	q.announce("old")
	if q.take(turn("new", 9), w.wake("new")) {
		t.Fatal("it has a slot before they were seen")
	}
	q.open()
	if q.holds("new") {
		t.Fatal("it has a slot before an older one has asked")
	}
	q.expect(turn("old", 1)) // it was read, and is older
	if q.holds("new") {
		t.Fatal("it has a slot before an older one has asked")
	}
	q.pass("old")
	if !q.holds("new") || w["new"] != 1 {
		t.Fatal("the slot is not given out")
	}
	if q.announce("later"); len(q.coming) > 0 {
		t.Error("an order is waited for that can be none of the older ones")
	}
}

// Who had begun has a slot at once, also beyond the limit; nobody else then, until fewer run than the limit says.
func TestX39_HeldBeyondTheLimit(t *testing.T) {
	q, w := newSlots(1), woken{}
	q.open()
	q.hold("a")
	q.hold("b")
	if q.take(turn("c", 1), w.wake("c")) || !q.take(turn("a", 5), w.wake("a")) {
		t.Fatal("not those alone that had begun have a slot")
	}
	if got := q.full(turn("d", 2)); got == nil || got.Detail != "2 of 1 run, 1 before it" {
		t.Errorf("another would wait for %+v", got)
	}
	if q.leave("a"); q.holds("c") {
		t.Error("two run")
	}
	if q.leave("b"); !q.holds("c") {
		t.Error("none runs")
	}
}

// Who waits for its turn in a session gives its slot back, and goes before those that were ordered later once the run
// ahead of it has left.
func TestX39_BehindAnotherRun(t *testing.T) {
	q, w := newSlots(1), woken{}
	q.open()
	q.take(turn("a", 1), w.wake("a"))
	q.standBehind(turn("b", 2), "a", w.wake("b"))
	q.take(turn("c", 3), w.wake("c"))
	if q.leave("a"); q.holds("c") || w["b"] != 1 {
		t.Error("a later order goes first, or the one behind is not woken")
	}
	if !q.take(turn("b", 2), w.wake("b")) {
		t.Error("the one behind does not have the slot")
	}
	if q.standBehind(turn("b", 2), "x", w.wake("b")); !q.holds("c") {
		t.Error("who waits for its turn holds a slot")
	}
}

// Without a limit nothing is counted.
func TestX39_NoLimit(t *testing.T) {
	q := newSlots(0)
	q.announce("a")
	q.expect(turn("a", 1))
	q.hold("b")
	q.standBehind(turn("c", 2), "b", nil)
	if !q.take(turn("z", 9), nil) || q.full(turn("z", 9)) != nil || len(q.held)+len(q.coming)+len(q.line)+len(q.behind) > 0 {
		t.Errorf("counted: %+v", q)
	}
}

// place is where a run is in the model.
type place struct {
	where string // coming, line, held, behind
	at    record.Turn
	ahead string
}

// model is slots in the plainest way.
type model struct {
	limit  int
	opened bool
	all    map[string]place
}

func (m *model) count(where string) (n int) {
	for _, p := range m.all {
		if p.where == where {
			n++
		}
	}
	return n
}

// settle gives slots out as the contract says: to the first of all who are in line or coming, if that one is in line.
func (m *model) settle() {
	for m.opened && m.count("held") < m.limit {
		waiting := slices.DeleteFunc(slices.Collect(maps.Values(m.all)), func(p place) bool { return p.where != "line" && p.where != "coming" })
		slices.SortFunc(waiting, func(a, b place) int { return compareTurns(a.at, b.at) })
		if len(waiting) == 0 || waiting[0].where == "coming" {
			return
		}
		first := waiting[0]
		first.where = "held"
		m.all[first.at.Folder] = first
	}
}

// do takes one step in both.
func (m *model) do(q *slots, w woken, op string, t record.Turn, ahead string) {
	switch op {
	case "open":
		q.open()
		m.opened = true
	case "expect":
		q.expect(t)
		if m.all[t.Folder].where == "" {
			m.all[t.Folder] = place{"coming", t, ""}
		}
	case "pass":
		q.pass(t.Folder)
		if m.all[t.Folder].where == "coming" {
			delete(m.all, t.Folder)
		}
	case "hold":
		q.hold(t.Folder)
		m.all[t.Folder] = place{"held", t, ""}
	case "take":
		q.take(t, w.wake(t.Folder))
		if m.all[t.Folder].where != "held" {
			m.all[t.Folder] = place{"line", t, ""}
		}
	case "behind":
		q.standBehind(t, ahead, w.wake(t.Folder))
		m.all[t.Folder] = place{"behind", t, ahead}
	case "withdraw":
		q.withdraw(t.Folder)
		delete(m.all, t.Folder)
	case "leave":
		q.leave(t.Folder)
		delete(m.all, t.Folder)
		for name, p := range m.all {
			if p.where == "behind" && p.ahead == t.Folder {
				m.all[name] = place{"coming", p.at, ""}
			}
		}
	}
	m.settle()
}

// found is where the runs are.
func (q *slots) found() map[string]string {
	all := map[string]string{}
	for name := range q.held {
		all[name] = "held"
	}
	for name := range q.coming {
		all[name] = "coming"
	}
	for name := range q.behind {
		all[name] = "behind"
	}
	for _, w := range q.line {
		all[w.Folder] = "line"
	}
	return all
}

func TestX39_SlotsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(rt, "limit")
		q, w := newSlots(limit), woken{}
		m := &model{limit: limit, all: map[string]place{}}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, 7).Draw(rt, "run")
			at := turn(fmt.Sprint(i), i/2) // pairs that were ordered at once
			op := rapid.SampledFrom([]string{"open", "expect", "pass", "hold", "take", "take", "take", "behind", "withdraw", "leave", "leave"}).Draw(rt, "op")
			ahead := fmt.Sprint(rapid.IntRange(0, 7).Draw(rt, "ahead"))
			if was := m.all[at.Folder].where; op == "expect" && was != "" {
				continue // it is told once, first
			}
			had := q.found()
			m.do(q, w, op, at, ahead)
			want := map[string]string{}
			for name, p := range m.all {
				want[name] = p.where
			}
			if diff := cmp.Diff(want, q.found()); diff != "" {
				rt.Fatalf("%s %s (-want +got):\n%s", op, at.Folder, diff)
			}
			for name, where := range had {
				if where == "line" && q.held[name] && op != "hold" && w[name] == 0 {
					rt.Fatalf("%s %s: %s has a slot and was not woken", op, at.Folder, name)
				}
			}
			if n := q.count(); n > limit && op != "hold" && n > count(had) {
				rt.Fatalf("%s %s: %d run", op, at.Folder, n)
			}
		}
	})
}

func (q *slots) count() int { return len(q.held) }

func count(all map[string]string) (n int) {
	for _, where := range all {
		if where == "held" {
			n++
		}
	}
	return n
}
