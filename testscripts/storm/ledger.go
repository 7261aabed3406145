package main

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// ledger goes through a session's journal.
type ledger struct {
	id    string
	last  journal.Event
	once  map[string]int
	held  map[string]bool // leases, by client
	exits int
	fault func(string, ...any)
}

// events are a session's, in order.
func events(d *state.Dir, id string) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		var all []journal.Event
		for e, err := range journal.Back(d.Path(record.JournalDir(id)), 0) {
			if err != nil {
				yield(e, err)
				return
			}
			all = append(all, e)
		}
		for _, e := range slices.Backward(all) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// take checks the next event: sequences rise, fences never fall, nothing is told twice.
func (l *ledger) take(e journal.Event) {
	if e.Seq <= l.last.Seq {
		l.fault("session %s: event %d comes behind %d", l.id, e.Seq, l.last.Seq)
	}
	if e.Fence < l.last.Fence {
		l.fault("session %s: the fence of event %d (%s) is %d, behind %d of %s", l.id, e.Seq, e.Type, e.Fence, l.last.Fence, l.last.Type)
	}
	l.last = e
	if slices.Contains(onceEach, e.Type) {
		l.count(e, e.Execution)
	}
	var data struct {
		Operation, Runtime string
		Change, Client     string
		Since              time.Time
		Evicted            []struct{ Client string }
	}
	_ = json.Unmarshal(e.Data, &data)
	switch e.Type {
	case "runtime_started", "runtime_reused", "runtime_joined": // of a try whose agent was not started there is another
		l.count(e, data.Runtime+" "+e.Execution)
	case "receipt":
		l.count(e, data.Operation)
	case "runtime_exited":
		l.exits++
		l.count(e, data.Runtime+" "+e.Execution)
	case "lease_changed":
		l.count(e, data.Change+" "+data.Client+" "+data.Since.String())
		l.lease(e, data.Change, data.Client)
		for _, evicted := range data.Evicted {
			l.lease(e, "evicted", evicted.Client)
		}
	}
}

func (l *ledger) count(e journal.Event, what string) {
	if l.once[e.Type+" "+what]++; l.once[e.Type+" "+what] == 2 {
		l.fault("session %s: %s of %s is told twice, again as event %d", l.id, e.Type, what, e.Seq)
	}
}

// lease keeps account: a lease is given back, or taken by another, once it was taken. Who takes a session over may have had one.
func (l *ledger) lease(e journal.Event, change, client string) {
	if change != "taken" && !l.held[client] {
		l.fault("session %s: %s has no lease that could be %s (event %d)", l.id, client, change, e.Seq)
	}
	l.held[client] = change == "taken"
}
