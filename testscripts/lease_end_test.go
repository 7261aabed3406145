package testscripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

func TestL6_GoodbyeAndTheEndOfGraceFree(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	other, short, none := s.join("o"), int64(1), int64(0)
	for i, end := range []func(*driver){
		func(d *driver) { _, _ = try[any](d, api.MethodGoodbye, nil) },
		func(d *driver) { d.c.Close() }, // its grace is a millisecond
		func(d *driver) { d.c.Close() }, // it has none
	} {
		a := s.joinFor(fmt.Sprint("a", i), "", []*int64{nil, &short, &none}[i])
		one, two := a.open().ID, a.open().ID
		end(a)
		for _, id := range []string{one, two} {
			other.owned(id, "free") // its agent's process ends with its lease
			other.comes(id, "it is free", func(s api.Session) bool { return len(s.Leases) == 0 })
			s.changed(id, "taken "+a.id+" exclusive", "given_back "+a.id+" exclusive")
			other.attach(id, "exclusive")
			other.detach(id)
		}
		late := s.join(a.id) // a new client under the old id ends its handle: quietly
		for _, id := range []string{one, two} {
			before, events := s.bytes("sessions/"+id), s.leaseChanges(id)
			call[api.Detached](late, api.MethodSessDetach, api.Detach{Session: id})
			if after := s.bytes("sessions/" + id); after != before {
				t.Errorf("ending a handle left\n%s\nbefore:\n%s", after, before)
			}
			late.detach(id) // with an operation there is its receipt
			if after := s.leaseChanges(id); !slices.Equal(after, events) {
				t.Errorf("ending a handle changed %q into %q", events, after)
			}
		}
		_, _ = try[any](late, api.MethodGoodbye, nil)
	}
	if s.lines("prompts") != 0 || s.lines("launches") != 6 {
		t.Errorf("%d prompts, %d processes", s.lines("prompts"), s.lines("launches"))
	}
	s.quiet()
}

// switchTo is how a client switches: first the new session, then the old one (L7).
func (d *driver) switchTo(from, to string) error {
	if _, err := try[api.Attached](d, api.MethodSessAttach, api.Attach{Operation: operation(), Session: to, Mode: "exclusive"}); err != nil {
		return err
	}
	if busy := d.get(from).Queue; len(busy) > 0 {
		d.detach(to)
		return errors.New(busy[0].Execution + " runs in the old one")
	}
	_, err := try[api.Detached](d, api.MethodSessDetach, api.Detach{Operation: operation(), Session: from})
	return err
}

func TestL7_SwitchingAttachesFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	from, to := a.open().ID, b.open().ID
	before := s.traces(from)
	if err := a.switchTo(from, to); api.CodeOf(err) != api.CodeOwned {
		t.Errorf("to one that is owned: %v", err)
	}
	if after := s.traces(from); after != before {
		t.Errorf("a failed switch left\n%s\nbefore:\n%s", after, before)
	}
	b.detach(to)
	running := a.post(from, "hold go")
	if err := a.switchTo(from, to); err == nil || !strings.Contains(err.Error(), running.Execution) {
		t.Errorf("from one that became active: %v", err)
	}
	if got, other := a.get(from), a.get(to); len(got.Leases) != 1 || got.Leases[0].Client != "a" || len(other.Leases) != 0 {
		t.Errorf("it holds %+v and %+v", got.Leases, other.Leases)
	}
	s.touch("go")
	if e := a.wait(running.Execution); e.Outcome != "completed" {
		t.Errorf("%+v", e)
	}
	if err := a.switchTo(from, to); err != nil {
		t.Error(err)
	}
	if got, other := a.get(from), a.get(to); len(got.Leases) != 0 || len(other.Leases) != 1 {
		t.Errorf("it holds %+v and %+v", got.Leases, other.Leases)
	}
	s.changed(from, "taken a exclusive", "given_back a exclusive")
	s.changed(to, "taken b exclusive", "given_back b exclusive", "taken a exclusive", "given_back a exclusive", "taken a exclusive")
	a.detach(to)
	s.quiet()
}

// A record that somebody keeps locked: whoever waits for it is told in time, and none of it is half done.
func TestL8_EveryWaitHasADeadline(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.limitOperations("3s")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	prompts := s.lines("prompts")
	unlock := s.lockRecord("sessions/" + id + "/session.json")
	sending := ask[api.Sent](a, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: "say no"})
	if got := <-sending; got.err == nil {
		t.Errorf("sent %+v", got.answer)
	}
	detaching := ask[api.Detached](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
	if got := <-detaching; got.err == nil {
		t.Errorf("detached %+v", got.answer)
	}
	taking := ask[api.Attached](b, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, TakeOver: true})
	if got := <-taking; got.err == nil {
		t.Errorf("attached %+v", got.answer)
	}
	unlock()
	b.attach(id, "exclusive") // what could not be given back in time was taken back
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken b exclusive")
	if s.lines("prompts") != prompts || len(b.get(id).Queue) != 0 {
		t.Errorf("a message that was refused is there: %+v", b.get(id).Queue)
	}
	b.detach(id)
	s.quiet()
}

// limitOperations sets how long an operation may wait for a record.
func (s *stage) limitOperations(limit string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "config.toml")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), "[deadlines]\n", "[deadlines]\noperation = \""+limit+"\"\n", 1)), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestL9_TakeOver(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	running, queued := a.post(id, "hold go; say first"), a.post(id, "say second")
	was := a.get(id).Fence
	b.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: "exclusive"})
	got := b.takeOver(id)
	if got.Fence != was+1 || got.Lease.Client != "b" || got.Lease.Mode != "exclusive" || a.get(id).Fence != was+1 {
		t.Errorf("taken over %+v, the fence was %d", got, was)
	}
	told := a.saw("lease_changed", nil) // it has not subscribed
	var data struct {
		Change, Client string
		Fence          int64
		Evicted        []session.Lease
	}
	if err := json.Unmarshal(told.Data, &data); err != nil || told.Session != id || data.Change != "taken" || data.Client != "b" || data.Fence != was+1 ||
		len(data.Evicted) != 1 || data.Evicted[0].Client != "a" {
		t.Errorf("told %+v %s", told, told.Data)
	}
	for _, m := range []string{api.MethodSessSend, api.MethodSessInterrupt, api.MethodSessAttach} {
		params := map[string]any{"session": id, "operationId": operation().OperationID}
		if m == api.MethodSessSend {
			params["text"] = "say no"
		}
		if o := owner(t, a.refused(api.CodeOwned, m, params)); o.Client != "b" {
			t.Errorf("%s: the owner is %+v", m, o)
		}
	}
	a.detach(id)
	s.touch("go")
	if e := b.wait(running.Execution); e.Outcome != "completed" { // executions go on
		t.Errorf("what ran: %+v", e)
	}
	e := b.wait(queued.Execution)
	if e.Cause == nil || e.Cause.Code != string(api.CodeOwned) || e.Delivery == nil || e.Delivery.State != "rejected" || e.Delivery.HandedOverAt != nil {
		t.Errorf("his message in the queue: %+v, %+v", e.Cause, e.Delivery)
	}
	if _, e := b.send(id, "say third"); e.Outcome != "completed" || s.lines("prompts") != 2 || s.lines("launches") != 1 {
		t.Errorf("%+v; %d prompts, %d processes", e, s.lines("prompts"), s.lines("launches"))
	}
	again := b.takeOver(id) // of his own lease
	if again.Fence != was+2 {
		t.Errorf("taken over %+v", again)
	}
	b.detach(id)
	s.changed(id, "taken a exclusive", "taken b exclusive", "taken b exclusive", "given_back b exclusive")
	s.quiet()
}

func TestL10_ReadersNeedNoLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	zero := uint64(0)
	b.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Session: id})
	sub := call[api.Subscribed](b, api.MethodSessSubscribe, api.Subscribe{Session: id, After: &zero})
	_, e := a.send(id, "say read me")
	b.saw("turn_ended", func(ev journal.Event) bool { return ev.Execution == e.ID && ev.Seq > sub.LastSeq })
	before := s.traces(id)
	if got := b.kinds(id); got != aTurn {
		t.Errorf("history: %s", got)
	}
	if got := b.get(id); got.ID != id || len(got.Leases) != 1 {
		t.Errorf("get: %+v", got)
	}
	if got := call[[]api.Session](b, api.MethodSessList, api.List{}); len(got) != 1 || got[0].ID != id {
		t.Errorf("list: %+v", got)
	}
	if got := call[api.Execution](b, api.MethodGet, api.Target{ID: e.ID}); got.Session != id {
		t.Errorf("the execution: %+v", got)
	}
	if out, errs := s.quietly("logs", e.ID); out != "read me" && strings.TrimSpace(out) != "read me" {
		t.Errorf("logs: %q %q", out, errs)
	}
	if after := s.traces(id); after != before {
		t.Errorf("readers left\n%s\nbefore:\n%s", after, before)
	}
	a.detach(id)
	s.quiet()
}
