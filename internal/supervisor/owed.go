package supervisor

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// A change of the leases is in the session's record before it is in its journal, and the record says what it was. So what a
// death or a full disk has left untold is told once, by whoever comes to the desk next.

const (
	leaseTaken     = "taken"
	leaseGivenBack = "given_back"
)

// givenBack are the changes by which leases went.
func givenBack(leases session.Leases) (changes []record.LeaseChange) {
	for _, l := range leases {
		changes = append(changes, record.LeaseChange{Change: leaseGivenBack, Lease: l, At: time.Now().UTC()})
	}
	return changes
}

// changed puts changes on record, if there are any. What was owed before stays there with them.
func (d *desk) changed(r *record.Session, changes []record.LeaseChange) {
	if len(changes) > 0 {
		r.Changed = append(slices.Clone(d.owed), changes...)
	}
}

// recall finds what the record has and the journal has not. A lease is known by its client and its time.
func (d *desk) recall() error {
	sess, err := d.read()
	if err != nil || len(sess.Changed) == 0 {
		return err
	}
	events, err := journal.Scan(d.s.dir.Path(record.JournalDir(d.id)), sess.Changed[0].At, leaseEvent)
	if err != nil {
		return err
	}
	for _, c := range sess.Changed {
		told := slices.ContainsFunc(events, func(e journal.Event) bool { return tells(e, c) })
		known := slices.ContainsFunc(d.owed, func(o record.LeaseChange) bool {
			return o.Change == c.Change && o.Lease.Client == c.Lease.Client && o.Lease.Since.Equal(c.Lease.Since)
		})
		if !told && !known {
			d.owed = append(d.owed, c)
		}
	}
	return nil
}

// leaseEvent is the type of a change of the leases in the journal.
const leaseEvent = "lease_changed"

func tells(e journal.Event, c record.LeaseChange) bool {
	var t struct {
		Change, Client string
		Since          time.Time
	}
	err := json.Unmarshal(e.Data, &t)
	return err == nil && t.Change == c.Change && t.Client == c.Lease.Client && t.Since.Equal(c.Lease.Since)
}

// events are those that are owed.
func (d *desk) events(fence int64) (events []journal.Event) {
	for _, c := range d.owed {
		data := map[string]any{"change": c.Change, "client": c.Lease.Client, "mode": c.Lease.Mode, "since": c.Lease.Since, "fence": fence}
		if len(c.Evicted) > 0 {
			data["evicted"] = c.Evicted
		}
		events = append(events, event(leaseEvent, data))
	}
	return events
}

// settle is the end of what was owed: it is in the journal, in the first of these events.
func (d *desk) settle(events []journal.Event) {
	for i, c := range d.owed {
		d.s.tellEvicted(events[i], c.Evicted)
	}
	d.owed = nil
}

// tellEvicted tells those whose leases were taken over and who have not subscribed (L9).
func (s *Supervisor) tellEvicted(e journal.Event, evicted []session.Lease) {
	e.Commit = nil
	for _, l := range evicted {
		for _, p := range s.clients.peersOf(l.Client) {
			if !slices.Contains(s.feeds.sessions(p), e.Session) {
				_ = p.Notify(api.NotifyEvent, e) // who does not read is told by the refusal of what he sends
			}
		}
	}
}
