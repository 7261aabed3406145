package supervisor

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// slots bounds how many runs go on at once (X39). The others have theirs in the order in which they were given, whoever
// comes first to ask. It is bookkeeping alone: each supervisor makes it anew from the records.
//
// A run is in one of these at most: it holds a slot; it stands in line; it is coming, so that nobody who was ordered later
// may go before it; it is behind another run, and comes when that leaves. What waits for somebody else is in none.
type slots struct {
	limit int // 0: none, and then nothing is counted

	mu     sync.Mutex
	opened bool // nothing is given out before: older orders may not have been seen
	held   map[string]bool
	line   []waiter // in their order
	coming map[string]record.Turn
	behind map[string]waiter
}

// waiter is a run that is told when its turn comes.
type waiter struct {
	record.Turn
	ahead string // behind whom it is
	wake  func() // does not block
}

func newSlots(limit int) *slots {
	return &slots{limit: limit, held: map[string]bool{}, coming: map[string]record.Turn{}, behind: map[string]waiter{}}
}

// compareTurns is the order in which slots are given out.
func compareTurns(a, b record.Turn) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	switch {
	case a.Folder < b.Folder:
		return -1
	case a.Folder > b.Folder:
		return 1
	}
	return 0
}

// open begins to give slots out.
func (q *slots) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.opened = true
	q.grant()
}

// announce has a run expected whose order was not read yet. Once all older orders were seen, the next is none of them.
func (q *slots) announce(folder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit > 0 && !q.opened {
		q.coming[folder] = record.Turn{Folder: folder} // before all others
	}
}

// expect says that a run will ask, or pass.
func (q *slots) expect(t record.Turn) {
	if q.limit == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.held[t.Folder] {
		q.coming[t.Folder] = t
		q.grant()
	}
}

// pass says that a run asks for nothing now.
func (q *slots) pass(folder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.coming, folder)
	q.grant()
}

// hold gives a slot to a run that has begun, also beyond the limit.
func (q *slots) hold(folder string) {
	if q.limit == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(folder)
	q.held[folder] = true
	q.grant()
}

// take reports whether the run holds a slot. If not it stands in line, and is woken when it has one.
func (q *slots) take(t record.Turn, wake func()) bool {
	if q.limit == 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[t.Folder] {
		return true
	}
	q.drop(t.Folder)
	i, _ := slices.BinarySearchFunc(q.line, t, func(w waiter, t record.Turn) int { return compareTurns(w.Turn, t) })
	q.line = slices.Insert(q.line, i, waiter{Turn: t, wake: wake})
	q.grant()
	return q.held[t.Folder]
}

// holds reports whether the run has a slot.
func (q *slots) holds(folder string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held[folder]
}

// standBehind has a run give up what it holds, and come once the one ahead has left: of two that wait for each other, one
// for its turn and one for a slot, neither would go on.
func (q *slots) standBehind(t record.Turn, ahead string, wake func()) {
	if q.limit == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(t.Folder)
	q.behind[t.Folder] = waiter{t, ahead, wake}
	q.grant()
}

// withdraw gives back what a run holds or waits for, until it asks anew.
func (q *slots) withdraw(folder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(folder)
	q.grant()
}

// leave is withdraw for a run that has ended, or was given up: those behind it come.
func (q *slots) leave(folder string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(folder)
	for name, w := range q.behind {
		if w.ahead == folder {
			delete(q.behind, name)
			q.coming[name] = w.Turn
			w.wake()
		}
	}
	q.grant()
}

func (q *slots) drop(folder string) {
	delete(q.held, folder)
	delete(q.coming, folder)
	delete(q.behind, folder)
	q.line = slices.DeleteFunc(q.line, func(w waiter) bool { return w.Folder == folder })
}

// grant gives out what is free, to the first in line, unless somebody may come who goes before.
func (q *slots) grant() {
	for q.opened && len(q.line) > 0 && len(q.held) < q.limit && !q.awaits(q.line[0].Turn) {
		first := q.line[0]
		q.line = slices.Delete(q.line, 0, 1)
		q.held[first.Folder] = true
		first.wake()
	}
}

// awaits reports whether somebody is coming who goes before t.
func (q *slots) awaits(t record.Turn) bool {
	for _, c := range q.coming {
		if compareTurns(c, t) < 0 {
			return true
		}
	}
	return false
}

// full says for what a run would wait that asked now; nil if a slot is free for it.
func (q *slots) full(t record.Turn) *api.WaitingFor {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := 0
	for before < len(q.line) && compareTurns(q.line[before].Turn, t) < 0 {
		before++
	}
	if q.limit == 0 || len(q.held)+before < q.limit {
		return nil
	}
	return q.waiting(before)
}

// standing says for what a run in the line waits, nil for one that is not in it.
func (q *slots) standing(folder string) *api.WaitingFor {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.line, func(w waiter) bool { return w.Folder == folder })
	if i < 0 {
		return nil
	}
	return q.waiting(i)
}

func (q *slots) waiting(before int) *api.WaitingFor {
	return &api.WaitingFor{Kind: "limit", Detail: fmt.Sprintf("%d of %d run, %d before it", len(q.held), q.limit, before)}
}
