package testscripts

import (
	"encoding/json"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

func TestL1_SharedIsRefusedWhileExclusive(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	made := a.open()
	id := made.ID
	before := s.traces(id)
	refuse := func(d *driver, mode string) *api.Error {
		t.Helper()
		e := d.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: mode})
		d.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Session: id, Mode: mode}) // and without an operation
		return e
	}
	for _, mode := range []string{"shared", "exclusive", ""} {
		for _, d := range []*driver{a, b} { // one of the same client, too
			o := owner(t, refuse(d, mode))
			if o.Client != "a" || o.Execution != "" || o.Mode != "exclusive" || !o.Since.Equal(made.Lease.Since) || o.Connected == nil || !*o.Connected || o.GraceUntil != nil {
				t.Errorf("%s asks for %q: the owner is %+v", d.id, mode, o)
			}
		}
	}
	if after := s.traces(id); after != before {
		t.Errorf("refusals left\n%s\nbefore:\n%s", after, before)
	}
	a.lose(b, id)
	o := owner(t, refuse(b, "shared"))
	if o.Client != "a" || *o.Connected || o.GraceUntil == nil || !o.GraceUntil.After(made.Lease.Since) {
		t.Errorf("while it is away the owner is %+v", o)
	}
	a.reconnect()
	if got := a.get(id).Leases; len(got) != 1 || got[0] != *made.Lease {
		t.Errorf("its lease is %+v, it was %+v", got, made.Lease)
	}
	a.detach(id)
	a.detach(id)
	s.changed(id, "taken a exclusive", "given_back a exclusive")
	s.quiet()
}

func TestL1_ExclusiveIsRefusedWhileAnyIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b, c := s.join("a"), s.join("b"), s.join("c")
	id := a.open().ID
	a.detach(id)
	a.owned(id, "free")
	first := a.attach(id, "shared")
	if first.Lease.Mode != "shared" || first.Lease.Client != "a" || first.State != "ready" || first.Session != id {
		t.Errorf("attached %+v", first)
	}
	b.attach(id, "")
	before := s.traces(id)
	for _, d := range []*driver{a, b, c} {
		e := d.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: "exclusive"})
		if o := owner(t, e); o.Client != "a" || o.Mode != "shared" || !o.Since.Equal(first.Lease.Since) {
			t.Errorf("the owner is %+v", o)
		}
	}
	if after := s.traces(id); after != before {
		t.Errorf("refusals left\n%s\nbefore:\n%s", after, before)
	}
	a.detach(id)
	c.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Session: id, Mode: "exclusive"})
	b.detach(id)
	c.attach(id, "exclusive")
	c.detach(id)
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken a shared", "taken b shared", "given_back a shared", "given_back b shared",
		"taken c exclusive", "given_back c exclusive")
	a.refused(api.CodeParams, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: "both"})
	s.quiet()
}

func TestL2_ExecutionsHoldTheirSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	a.detach(id)
	first, second := b.post(id, "hold one"), b.post(id, "hold two") // a client without a lease
	for _, running := range []api.Sent{first, second} {
		e := a.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: "exclusive"})
		o := owner(t, e)
		if o.Execution != running.Execution || o.Client != "" || o.Mode != "shared" || !o.Since.Equal(*running.Delivery.StoredAt) || o.Connected != nil {
			t.Errorf("the owner is %+v, want %s", o, running.Execution)
		}
		a.attach(id, "shared") // which stands beside it
		a.detach(id)
		if running == first {
			s.touch("one")
		} else {
			s.touch("two")
		}
		if e := b.wait(running.Execution); e.Outcome != "completed" {
			t.Errorf("%+v", e)
		}
	}
	got := a.attach(id, "exclusive")
	before := s.traces(id)
	for _, m := range []api.Send{{Session: id, Text: "say no"}, {Session: id, Text: "say no", Operation: operation()}} {
		if o := owner(t, b.refused(api.CodeOwned, api.MethodSessSend, m)); o.Client != "a" || !o.Since.Equal(got.Lease.Since) {
			t.Errorf("the owner is %+v", o)
		}
	}
	b.refused(api.CodeOwned, api.MethodSessInterrupt, api.Interrupt{Operation: operation(), Session: id})
	if after := s.traces(id); after != before {
		t.Errorf("refusals left\n%s\nbefore:\n%s", after, before)
	}
	if _, e := a.send(id, "say yes"); e.Outcome != "completed" {
		t.Errorf("the holder's: %+v", e)
	}
	if s.lines("prompts") != 3 {
		t.Errorf("%d prompts", s.lines("prompts"))
	}
	a.detach(id)
	s.quiet()
}

func TestL3_TwoDetachesAreOne(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	want := []string{"taken a exclusive", "given_back a exclusive"}
	for round := range 5 {
		if round > 0 {
			a.attach(id, "exclusive")
			want = append(want, "taken a exclusive", "given_back a exclusive")
		}
		unlock := s.lockRecord("sessions/" + id + "/session.json")
		first := ask[json.RawMessage](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
		second := ask[json.RawMessage](a, api.MethodSessDetach, api.Detach{Session: id})
		third := ask[json.RawMessage](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
		unlock()
		one, two, three := <-first, <-second, <-third
		if one.err != nil || two.err != nil || three.err != nil || string(one.answer) != string(two.answer) || string(one.answer) != string(three.answer) {
			t.Errorf("answered %s, %s and %s (%v, %v, %v)", one.answer, two.answer, three.answer, one.err, two.err, three.err)
		}
		if left := s.sessionRecord(id).Leases; len(left) != 0 { // when it is answered the lease is gone
			t.Errorf("left is %+v", left)
		}
	}
	s.changed(id, want...)
	call[any](a, api.MethodPing, nil) // the connection stays open
	s.quiet()
}

// The record cannot be written: the detach fails and says so, and the client owns nothing all the same.
func TestL4_AFailedDetachIsFinishedByTheNextAttach(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b, c := s.join("a"), s.join("b"), s.join("c")
	id := a.open().ID
	let := s.holdFile("sessions/" + id + "/session.json")
	if _, err := try[any](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id}); err == nil {
		t.Error("the failed detach was reported as done")
	}
	if leases := a.get(id).Leases; len(leases) != 0 {
		t.Errorf("it still owns it: %+v", leases)
	}
	let()
	got := b.attach(id, "exclusive") // an immediate reopen
	if got.Lease.Client != "b" {
		t.Errorf("attached %+v", got)
	}
	a.refused(api.CodeOwned, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: "say no"})
	c.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id})
	a.detach(id) // again, quietly
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken b exclusive")
	b.detach(id)
	s.quiet()
}

// The same client comes back at once; and, another time, nobody does, and it is written when it can be.
func TestL4_AFailedDetachAndItsOwnReopen(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	let := s.holdFile("sessions/" + id + "/session.json")
	if _, err := try[any](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id}); err == nil {
		t.Error("the failed detach was reported as done")
	}
	let()
	a.attach(id, "exclusive")
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken a exclusive")
	let = s.holdFile("sessions/" + id + "/session.json")
	if _, err := try[any](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id}); err == nil {
		t.Error("the failed detach was reported as done")
	}
	let()
	a.detach(id)
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken a exclusive", "given_back a exclusive")
	s.quiet()
}

func TestL5_OneConnectionLeasesSeveralSessions(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	one, two := a.open().ID, a.open().ID
	if one == two || s.lines("launches") != 2 {
		t.Errorf("%s and %s in %d processes", one, two, s.lines("launches"))
	}
	before := s.bytes("sessions/" + two)
	a.detach(one)
	if after := s.bytes("sessions/" + two); after != before {
		t.Errorf("the other one was touched:\n%s\nbefore:\n%s", after, before)
	}
	b.attach(one, "exclusive")
	b.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: two})
	if got := a.get(two); got.Ownership.State != "live" || len(got.Leases) != 1 {
		t.Errorf("the other one is %+v", got)
	}
	if _, e := a.send(two, "say on"); e.Outcome != "completed" || s.lines("launches") != 2 {
		t.Errorf("it goes on as %+v, in %d processes", e, s.lines("launches"))
	}
	b.detach(one)
	a.detach(two)
	s.quiet()
}
