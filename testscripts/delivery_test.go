package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

func TestF6_IdleAndBusy(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	first := a.post(id, "hold one")
	if d := first.Delivery; d.State != "pending" || d.StoredAt == nil || d.HandedOverAt == nil || d.ConfirmedAt != nil || first.When != "queue" {
		t.Errorf("to an idle session: %+v", first)
	}
	s.until("one turn is requested", func() bool { return s.requested("turn/start", "") == 1 })
	second := a.post(id, "hold two")
	if d := second.Delivery; d.State != "pending" || d.StoredAt == nil || d.HandedOverAt != nil || d.ConfirmedAt != nil {
		t.Errorf("to a busy session: %+v", second)
	}
	confirmed := a.waitUntil(first.Execution, "confirmed").Delivery
	if confirmed.State != "accepted" || confirmed.ConfirmedAt == nil || confirmed.HandedOverAt == nil {
		t.Errorf("confirmed: %+v", confirmed)
	}
	stored := a.waitUntil(second.Execution, "stored").Delivery // it is, and the first one runs
	if stored.State != "pending" || stored.HandedOverAt != nil || !stored.StoredAt.Equal(*second.Delivery.StoredAt) || s.requested("turn/start", "") != 1 {
		t.Errorf("stored: %+v", stored)
	}
	b := s.join("b") // anybody may wait
	over := ask[api.Execution](b, api.MethodWait, api.Wait{ID: second.Execution, Until: "handed_over"})
	sure := ask[api.Execution](b, api.MethodWait, api.Wait{ID: second.Execution, Until: "confirmed"})
	s.touch("one")
	if got := <-over; got.err != nil || got.answer.Delivery.HandedOverAt == nil {
		t.Errorf("handed over: %+v, %v", got.answer.Delivery, got.err)
	}
	if got := <-sure; got.err != nil || got.answer.Delivery.State != "accepted" || got.answer.Phase == "ended" {
		t.Errorf("confirmed: %+v, %v", got.answer.Delivery, got.err)
	}
	s.touch("two")
	for _, e := range []api.Execution{a.wait(first.Execution), a.wait(second.Execution)} {
		d := e.Delivery
		if e.Outcome != "completed" || d.State != "accepted" || d.StoredAt.After(*d.HandedOverAt) {
			t.Errorf("ended as %+v, %+v", e, d)
		}
	}
	for _, kind := range []string{"message_stored", "message_handed_over", "message_confirmed", "turn_started", "turn_ended"} {
		if got := s.journalled(id, kind); got != 2 {
			t.Errorf("%d %s", got, kind)
		}
	}
	a.refused(api.CodeParams, api.MethodWait, api.Wait{ID: first.Execution, Until: "read"})
	a.detach(id)
	s.quiet()
}

// Waiting makes nothing unknown; that the agent dies before it named the turn does. It is not sent again under its id.
func TestF6_UnknownOnlyByAnEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	thaw := s.freeze(a.pid(id))
	slow := a.post(id, "say slow")
	s.ticks()
	if d := call[api.Execution](a, api.MethodGet, api.Target{ID: slow.Execution}).Delivery; d.State != "pending" || d.HandedOverAt == nil {
		t.Errorf("while nothing happens: %+v", d)
	}
	thaw()
	if e := a.wait(slow.Execution); e.Outcome != "completed" || e.Delivery.State != "accepted" {
		t.Errorf("%+v", e)
	}
	s.touch("deaf")
	m := api.Send{Operation: operation(), Session: id, Text: "say lost"}
	first := call[json.RawMessage](a, api.MethodSessSend, m)
	e := a.wait(m.OperationID)
	if e.Outcome != "unknown" || e.Delivery.State != "unknown" || e.Delivery.HandedOverAt == nil || e.Delivery.ConfirmedAt != nil {
		t.Errorf("%+v, %+v", e, e.Delivery)
	}
	repeat := func() {
		t.Helper()
		if again := call[json.RawMessage](a, api.MethodSessSend, m); string(again) != string(first) {
			t.Errorf("answered %s, first %s", again, first)
		}
		if e := a.wait(m.OperationID); e.Outcome != "unknown" || e.Attempt != 1 {
			t.Errorf("%+v", e)
		}
	}
	repeat()
	a.again()
	repeat()
	if _, e := a.send(id, "say next"); e.Outcome != "completed" { // which goes to the next runtime, alone
		t.Errorf("%+v", e)
	}
	repeat()
	if got := s.launched("say lost"); got != 1 {
		t.Errorf("sent %d times", got)
	}
	a.detach(id)
	s.quiet()
	s.fences(id)
}

// launched is how often a prompt reached an agent.
func (s *stage) launched(prompt string) (n int) {
	for _, p := range s.prompted() {
		if p == prompt {
			n++
		}
	}
	return n
}

// What is stored and not handed over goes once to the next runtime, whoever dies.
func TestF6_StoredGoesToTheNextRuntime(t *testing.T) {
	t.Parallel()
	for name, both := range map[string]bool{"agent": false, "agent and supervisor": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			id := a.open().ID
			pid := a.pid(id)
			first := a.post(id, "hold never")
			a.waitUntil(first.Execution, "confirmed")
			queued := []api.Sent{a.post(id, "say second"), a.post(id, "say third")}
			if both {
				supervisor := s.supervising(t).PID
				thaw := s.freeze(supervisor)
				s.slay(pid)
				s.slay(supervisor)
				thaw()
				a.back()
			} else {
				s.slay(pid)
			}
			if e := a.wait(first.Execution); e.Outcome != "agent_died" || e.Delivery.State != "accepted" {
				t.Errorf("what ran: %+v, %+v", e, e.Delivery)
			}
			for _, sent := range queued {
				e := a.wait(sent.Execution)
				if e.Outcome != "completed" || e.Delivery.State != "accepted" || e.Fence <= first.Fence {
					t.Errorf("what was stored: %+v, %+v", e, e.Delivery)
				}
			}
			for _, prompt := range []string{"hold never", "say second", "say third"} {
				if got := s.launched(prompt); got != 1 {
					t.Errorf("%q was sent %d times", prompt, got)
				}
			}
			a.detach(id)
			s.quiet()
			s.fences(id)
		})
	}
}

func TestF6_RejectedNeverReachedIt(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	first, second := a.post(id, "hold go"), a.post(id, "say no")
	call[api.Controlled](a, api.MethodStop, api.Control{Operation: operation(), ID: second.Execution})
	if e := a.wait(second.Execution); e.Outcome != "cancelled" || e.Delivery.State != "rejected" || e.Delivery.HandedOverAt != nil {
		t.Errorf("%+v, %+v", e, e.Delivery)
	}
	s.touch("go")
	a.wait(first.Execution)
	if s.launched("say no") != 0 {
		t.Error("it was sent")
	}
	a.detach(id)
	s.quiet()
}

// starting has the agent wait before it is one, until go is called.
func (s *stage) starting() (release func()) {
	s.t.Helper()
	path := filepath.Join(s.dir, "bin", "codex")
	was, err := os.ReadFile(path)
	if err == nil {
		slow := fmt.Sprintf("#!/bin/sh\nuntil [ -e %s/begin ]; do sleep 0.01; done\nexec %s/standin\n", s.work, filepath.Dir(binary))
		err = replaceFile(path, []byte(slow))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.touch("begin")
		_ = replaceFile(path, was)
	}
}

// replaceFile puts another program in the place of one, which may be started in this instant.
func replaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o700); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// A send that names the new fence waits for the runtime that is coming; one that names the old one is stale.
func TestF7_ASendWaitsForTheRuntimeThatComes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	a.detach(id)
	a.owned(id, "free")
	a.attach(id, "shared")
	b.attach(id, "shared")
	if _, e := a.send(id, "say one"); e.Outcome != "completed" {
		t.Fatalf("%+v", e)
	}
	was, pid := a.get(id), a.pid(id)
	release := s.starting()
	s.slay(pid)
	now := a.comes(id, "a runtime is reserved", func(v api.Session) bool { return v.Fence == was.Fence+2 && v.Ownership.State == "reserved" })
	fenced := func(fence int64) api.Operation {
		op := operation()
		op.ExpectedFence = json.RawMessage(fmt.Sprint(fence))
		return op
	}
	for old := was.Fence; old < now.Fence; old++ {
		e := b.refused(api.CodeStaleFence, api.MethodSessSend, api.Send{Operation: fenced(old), Session: id, Text: "say old"})
		if e.Data["currentFence"] != float64(now.Fence) {
			t.Errorf("%+v", e)
		}
	}
	op := fenced(now.Fence)
	sending := ask[api.Sent](b, api.MethodSessSend, api.Send{Operation: op, Session: id, Text: "say two"})
	a.comes(id, "it is stored", func(v api.Session) bool {
		return slices.ContainsFunc(v.Queue, func(q api.Queued) bool { return q.Execution == op.OperationID })
	})
	if d := call[api.Execution](a, api.MethodGet, api.Target{ID: op.OperationID}).Delivery; d != nil && d.HandedOverAt != nil {
		t.Errorf("handed over to nobody: %+v", d)
	}
	release()
	got := <-sending
	if got.err != nil || got.answer.Fence != now.Fence || got.answer.Delivery.HandedOverAt == nil {
		t.Errorf("sent %+v, %v", got.answer, got.err)
	}
	if e := b.wait(op.OperationID); e.Outcome != "completed" || e.Fence != now.Fence {
		t.Errorf("%+v", e)
	}
	if s.launched("say two") != 1 || s.launched("say old") != 0 || s.lines("launches") != 3 {
		t.Errorf("prompts %q, %d processes", s.prompted(), s.lines("launches"))
	}
	a.detach(id)
	b.detach(id)
	s.quiet()
	s.fences(id)
}

// An interrupt overtakes a send that has not been answered; nothing else does (L11).
func TestL11_AnInterruptOvertakesASend(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	a.detach(id)
	a.owned(id, "free")
	release := s.starting()
	op := operation()
	sending := ask[api.Sent](a, api.MethodSessSend, api.Send{Operation: op, Session: id, Text: "say no"})
	a.comes(id, "the send is pending", func(v api.Session) bool { return len(v.Queue) == 1 })
	for method, params := range map[string]any{
		api.MethodSessSend: api.Send{Operation: operation(), Session: id, Text: "say later"}, api.MethodSessAttach: api.Attach{Session: id},
		api.MethodSessDetach: api.Detach{Session: id},
	} {
		e := a.refused(api.CodeBusy, method, params)
		if pending, _ := e.Data["pending"].(map[string]any); pending["operationId"] != op.OperationID || pending["method"] != api.MethodSessSend {
			t.Errorf("%s: %+v", method, e)
		}
	}
	did := call[api.Controlled](a, api.MethodSessInterrupt, api.Interrupt{Operation: operation(), Session: id})
	if did.ExecutionID != op.OperationID || !did.Success {
		t.Errorf("interrupted %+v", did)
	}
	got := <-sending
	e := a.wait(op.OperationID)
	if e.Outcome != "cancelled" || e.Delivery.State != "rejected" || s.lines("prompts") != 0 {
		t.Errorf("sent %+v (%v), ended as %+v, %+v", got.answer, got.err, e, e.Delivery)
	}
	release()
	s.quiet()
}
