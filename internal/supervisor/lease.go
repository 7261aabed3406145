package supervisor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// A lease is on record in session.json before it counts, and the client's own record names the session before that, so that
// whoever dies, no lease is left that nobody would ever take back. Who it is that leaves (a detach, a goodbye, a grace that is
// over) is removed in the same way.

// modeOf is the mode that an attach asks for.
func modeOf(a api.Attach) (session.Mode, error) {
	mode := session.Mode(a.Mode)
	if mode == "" {
		mode = session.Shared
		if a.TakeOver {
			mode = session.Exclusive
		}
	}
	if mode != session.Shared && mode != session.Exclusive {
		return mode, api.E(api.CodeParams, "the mode %q is none: shared or exclusive", a.Mode)
	}
	return mode, nil
}

// mayAttach refuses an attach that the leases stand against, before anything is written for it (L1).
func (d *desk) mayAttach(sess record.Session, client string, a api.Attach) error {
	mode, err := modeOf(a)
	if err != nil {
		return err
	}
	busy, err := d.busy()
	if err != nil {
		return err
	}
	ask := session.Ask{Client: client, Mode: mode, TakeOver: a.TakeOver, Operation: a.OperationID}
	if _, refusal := without(sess.Leases, d.voided()).Attach(ask, busy(sess)); refusal != nil {
		return d.owned(refusal)
	}
	return nil
}

// attach gives a client a lease (L1, L2, L9). What an earlier detach could not clean up is cleaned up in the same write (L4).
func (s *Supervisor) attach(ctx context.Context, d *desk, client string, a api.Attach) (effect, error) {
	mode, err := modeOf(a)
	if err != nil {
		return effect{}, err
	}
	if err := s.clients.note(ctx, client, d.id); err != nil {
		return effect{}, err
	}
	crash.At("supervisor.client_noted")
	ask := session.Ask{Client: client, Mode: mode, TakeOver: a.TakeOver, At: time.Now().UTC(), Operation: a.OperationID}
	got, sess, err := s.lease(ctx, d, ask)
	if err != nil {
		return effect{}, err
	}
	crash.At("supervisor.leased")
	d.mirror(sess.Leases)
	answer := api.Attached{Session: d.id, Lease: s.leaseOf(got.Lease), Fence: sess.Fence, State: stateOf(sess), LastSeq: s.lastSequence(d.id)}
	return effect{answer: answer}, nil
}

// lease writes a lease, and takes out those that are void, which were freed by that.
func (s *Supervisor) lease(ctx context.Context, d *desk, ask session.Ask) (got session.Attachment, sess record.Session, err error) {
	busy, err := d.busy()
	if err != nil {
		return got, sess, err
	}
	void := d.voided()
	var changes []record.LeaseChange
	err = d.change(ctx, func(r *record.Session) error {
		if r.ArchivedAt != nil {
			return archivedSession(*r)
		}
		if connected, _, live := s.clients.state(ask.Client); !live && !connected {
			return api.E(api.CodeClientGone, "client %s has gone", ask.Client)
		}
		var refusal *session.Refusal
		if got, refusal = without(r.Leases, void).Attach(ask, busy(*r)); refusal != nil {
			return d.owned(refusal)
		}
		changes = givenBack(only(r.Leases, void))
		if got.Changed {
			changes = append(changes, record.LeaseChange{Change: leaseTaken, Lease: got.Lease, Evicted: got.Evicted, At: ask.At})
		}
		d.changed(r, changes)
		if r.Leases = got.Leases; got.Bumps {
			r.Fence++
		}
		sess = *r
		return nil
	})
	if err == nil {
		d.owed = append(d.owed, changes...)
		d.clean(void)
	}
	return got, sess, err
}

// detach gives a client's lease back. If that cannot be recorded the client has none any more all the same, and whoever comes
// next finishes it (L4).
func (s *Supervisor) detach(ctx context.Context, d *desk, client string) (effect, error) {
	sess, err := s.dropLeases(ctx, d, client)
	if err != nil {
		return effect{}, err
	}
	return effect{answer: api.Detached{Session: d.id, Fence: sess.Fence}}, nil
}

// dropLeases removes the leases of clients. The desk's turn is held.
func (s *Supervisor) dropLeases(ctx context.Context, d *desk, clients ...string) (sess record.Session, err error) {
	gone := map[string]bool{}
	for _, c := range clients {
		gone[c] = true
	}
	void := d.voided()
	maps.Copy(void, gone)
	var changes []record.LeaseChange
	err = d.change(ctx, func(r *record.Session) error {
		changes = givenBack(only(r.Leases, void))
		d.changed(r, changes)
		if r.Leases = without(r.Leases, void); len(r.Leases) == 0 {
			r.Restart = r.Restart.Released()
		}
		sess = *r
		return nil
	})
	if err != nil {
		d.disown(clients)
		return sess, err
	}
	crash.At("supervisor.unleased")
	d.owed = append(d.owed, changes...)
	d.mirror(sess.Leases)
	d.clean(void)
	for client := range gone {
		if err := s.clients.forget(ctx, client, d.id); err != nil {
			s.log.Printf("client %s: %v", client, err) // it is looked for in vain at its end
		}
	}
	s.letGo(d.id)
	return sess, nil
}

// only is the leases of some clients.
func only(leases session.Leases, clients map[string]bool) session.Leases {
	return slices.DeleteFunc(slices.Clone(leases), func(l session.Lease) bool { return !clients[l.Client] })
}

// without is the leases but for those of some clients.
func without(leases session.Leases, clients map[string]bool) session.Leases {
	return slices.DeleteFunc(slices.Clone(leases), func(l session.Lease) bool { return clients[l.Client] })
}

// clientGone frees what a client that has ended holds (L6). Sessions are those on which it may hold leases. It may be called
// again for the same client, after an error or a crash.
func (s *Supervisor) clientGone(ctx context.Context, client string, sessions []string) error {
	for _, id := range sessions {
		if err := s.freeSession(ctx, client, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Supervisor) freeSession(ctx context.Context, client, id string) error {
	d, done := s.desk(id)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, s.operationLimit())
	defer cancel()
	ctx, _, left, err := d.come(ctx, session.Pending{Client: client, Method: session.Gone})
	if err != nil {
		return err
	}
	defer left(nil)
	release, err := d.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := d.read(); api.CodeOf(err) == api.CodeNotFound {
		return nil // it was not made
	}
	if err := d.open(); err != nil {
		return err
	}
	if _, err := s.dropLeases(ctx, d, client); err != nil {
		return err
	}
	return d.tellEvents(nil)
}

// busy tells which executions hold the session: those in its queue, from the first on that has not ended. Who waits behind
// that one is not looked at, since there may be many.
func (d *desk) busy() (func(record.Session) []session.Busy, error) {
	sess, err := d.read()
	if err != nil {
		return nil, err
	}
	over := map[string]bool{}
	names := map[string]string{}
	for _, t := range sess.Queue {
		over[t.Folder] = d.s.vacant(t.Folder)
		if spec, err := record.SpecOf(d.s.dir, t.Folder); err == nil {
			names[t.Folder] = spec.ID
			over[t.Folder] = over[t.Folder] || spec.Opening != nil
		}
		if !over[t.Folder] {
			break
		}
	}
	return func(r record.Session) (busy []session.Busy) {
		for _, t := range r.Queue {
			if !over[t.Folder] {
				busy = append(busy, session.Busy{Execution: cmp.Or(names[t.Folder], t.Folder), Since: t.At})
			}
		}
		return busy
	}, nil
}

// mayWrite refuses a client that may not drive the session.
func (d *desk) mayWrite(sess record.Session, client string) error {
	if refusal := without(sess.Leases, d.voided()).MayWrite(client); refusal != nil {
		return d.owned(refusal)
	}
	return nil
}

// owned is a refusal with who has the session.
func (d *desk) owned(refusal *session.Refusal) error {
	if refusal.Client != "" {
		return Held(d.id, d.s.leaseOf(session.Lease{Client: refusal.Client, Mode: refusal.Mode, Since: refusal.Since}))
	}
	e := heldBy(d.id, "run "+record.Quote(refusal.Execution), string(refusal.Mode), refusal.Since)
	e.Data = map[string]any{"owner": map[string]any{"mode": refusal.Mode, "since": refusal.Since, "execution": refusal.Execution}}
	return e.WithNext("pintle wait " + record.Quote(refusal.Execution))
}

// Held is the refusal of what another client's lease stands against.
func Held(id string, by api.Lease) *api.Error {
	owner := map[string]any{"mode": by.Mode, "since": by.Since, "client": by.Client, "connected": by.Connected}
	who := "client " + record.Quote(by.Client)
	switch {
	case by.Connected:
		who += " (connected)"
	case by.GraceUntil != nil:
		owner["graceUntil"] = *by.GraceUntil
		who += " (away, in grace until " + by.GraceUntil.UTC().Format(time.RFC3339) + ")"
	}
	e := heldBy(id, who, by.Mode, by.Since)
	e.Data = map[string]any{"owner": owner}
	return e.WithNext("pintle attach " + id + " --take-over")
}

func heldBy(id, who, mode string, since time.Time) *api.Error {
	return api.E(api.CodeOwned, "session %s is held by %s, %s, since %s", id, who, mode, since.UTC().Format(time.RFC3339))
}

func archivedSession(sess record.Session) error {
	return api.E(api.CodeArchived, "session %s is archived", sess.ID).WithNext("pintle workspace restore " + sess.Workspace)
}

// leaseOf is a lease as everybody sees it.
func (s *Supervisor) leaseOf(l session.Lease) api.Lease {
	connected, until, _ := s.clients.state(l.Client)
	lease := api.Lease{Client: l.Client, Mode: string(l.Mode), Since: l.Since, Connected: connected}
	if !connected && !until.IsZero() {
		at := until.UTC()
		lease.GraceUntil = &at
	}
	return lease
}

// mirror has the session's leases known without a look at its record.
func (d *desk) mirror(leases session.Leases) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if len(leases) == 0 {
		delete(d.s.leases, d.id)
		return
	}
	d.s.leases[d.id] = leases
}

// voided are the clients that own nothing here any more, which could not be recorded.
func (d *desk) voided() map[string]bool {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	void := maps.Clone(d.s.void[d.id])
	if void == nil {
		void = map[string]bool{}
	}
	return void
}

// valid are the leases of a session that count.
func (s *Supervisor) valid(sess record.Session) session.Leases {
	s.mu.Lock()
	defer s.mu.Unlock()
	return without(sess.Leases, s.void[sess.ID])
}

// disown notes that clients own nothing here any more.
func (d *desk) disown(clients []string) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.s.void[d.id] == nil {
		d.s.void[d.id] = map[string]bool{}
	}
	for _, client := range clients {
		d.s.void[d.id][client] = true
	}
	d.s.leases[d.id] = without(d.s.leases[d.id], d.s.void[d.id])
}

// clean notes that it is recorded now.
func (d *desk) clean(clients map[string]bool) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	maps.DeleteFunc(d.s.void[d.id], func(client string, _ bool) bool { return clients[client] })
	if len(d.s.void[d.id]) == 0 {
		delete(d.s.void, d.id)
	}
}

// leased reports whether a client holds the session.
func (s *Supervisor) leased(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases[id]) > 0
}

// held reports whether the run's session is held by a client, so that its agent's process is kept for it.
func (r *run) held() bool { return r.s.leased(r.st.Session) }

// letGo has the process of a session closed when its time is over, if nobody holds the session any more.
func (s *Supervisor) letGo(id string) {
	if s.leased(id) {
		return
	}
	awaited := s.awaited(id)
	s.mu.Lock()
	k, r := s.kept[id], s.runs
	if !awaited {
		delete(s.homes, id)
	}
	for _, run := range r {
		run.wake()
	}
	s.mu.Unlock()
	if k != nil {
		k.poke()
	}
}

// knowLeases reads which sessions are held, from those that clients' records name.
func (s *Supervisor) knowLeases() {
	for _, id := range s.clients.held() {
		sess, err := state.Read[record.Session](s.dir, record.SessionFile(id))
		if err != nil {
			continue // who may come for it is refused
		}
		s.mu.Lock()
		if len(sess.Leases) > 0 {
			s.leases[id] = sess.Leases
		}
		s.mu.Unlock()
	}
}
