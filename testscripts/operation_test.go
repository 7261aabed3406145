package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

// fences are those of a session's events, which must not fall, and each event must have one.
func (s *stage) fences(id string) {
	s.t.Helper()
	last := int64(0)
	for _, e := range s.whole(id) {
		if e.Fence < last || e.Fence < 1 {
			s.t.Errorf("event %d %s has the fence %d behind %d", e.Seq, e.Type, e.Fence, last)
		}
		last = max(last, e.Fence)
	}
	if last > s.sessionRecord(id).Fence {
		s.t.Errorf("the record's fence is %d, the journal's %d", s.sessionRecord(id).Fence, last)
	}
}

func TestF1_TheFenceOnlyGrows(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	made := a.open()
	id, at := made.ID, made.Fence
	grows := func(what string, by int64) {
		t.Helper()
		if got := a.get(id).Fence; got != at+by {
			t.Errorf("%s: the fence is %d, it was %d", what, got, at)
		}
		at = a.get(id).Fence
	}
	if sent, e := a.send(id, "say hello"); sent.Fence != at || e.Fence != at {
		t.Errorf("sent at %d, carried out at %d", sent.Fence, e.Fence)
	}
	grows("a turn", 0)
	pid := a.pid(id)
	a.again() // SIGKILL of the supervisor
	b.reconnect()
	a.owned(id, "live")
	grows("an adoption", 0)
	if a.pid(id) != pid {
		t.Error("it is another process")
	}
	b.takeOver(id)
	grows("a take-over", 1)
	s.slay(pid)
	b.replaced(id, pid)
	grows("an exit and a new runtime", 2)
	if _, e := b.send(id, "say again"); e.Fence != at {
		t.Errorf("carried out at %d, want %d", e.Fence, at)
	}
	b.detach(id)
	b.owned(id, "free")
	grows("an exit", 1)
	b.attach(id, "exclusive")
	grows("an attach", 0)
	if sent, e := b.send(id, "say more"); sent.Fence != at+1 || e.Fence != at+1 {
		t.Errorf("sent at %d, carried out at %d, want %d", sent.Fence, e.Fence, at+1)
	}
	grows("a new runtime", 1)
	b.detach(id)
	s.quiet()
	s.fences(id)
}

// The fingerprint of the demand is the one that goes over the wire.
func TestF2_Fingerprint(t *testing.T) {
	t.Parallel()
	got, err := session.Fingerprint(api.MethodSessSend, "s1", json.RawMessage(`{"text":"continue","session":"s1","expectedFence":3}`))
	if err != nil || got != "77f0b1b372b562dda4db480443fe1fd4251e81412b8153a8d977a5327e5d419b" {
		t.Errorf("%s, %v", got, err)
	}
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	sum, _ := session.Fingerprint(api.MethodSessSend, id, json.RawMessage(`{"text":"say one"}`))
	op := operation()
	good := map[string]any{"session": id, "text": "say one", "operationId": op.OperationID, "fingerprint": sum}
	bad := map[string]any{"session": id, "text": "say one", "operationId": op.OperationID, "fingerprint": strings.Repeat("0", 64)}
	a.refused(api.CodeOperationInvalid, api.MethodSessSend, bad)
	first := call[json.RawMessage](a, api.MethodSessSend, good)
	a.refused(api.CodeOperationInvalid, api.MethodSessSend, bad) // though there is a receipt
	if second := call[json.RawMessage](a, api.MethodSessSend, good); string(second) != string(first) {
		t.Errorf("answered %s and %s", first, second)
	}
	a.wait(op.OperationID)
	if s.lines("prompts") != 1 {
		t.Errorf("%d prompts", s.lines("prompts"))
	}
	a.detach(id)
	s.quiet()
}

// Each check comes before the next: what two of them stand against is refused by the first.
func TestF2_OrderOfTheChecks(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	id := a.open().ID
	fence := a.get(id).Fence
	stale, wrong := json.RawMessage(fmt.Sprint(fence+7)), strings.Repeat("0", 64)
	done := api.Send{Operation: operation(), Session: id, Text: "say done"}
	answer := call[json.RawMessage](a, api.MethodSessSend, done)
	a.wait(done.OperationID)
	before := len(s.tales(id, "receipt"))
	other := func(fingerprint string, fence json.RawMessage) api.Operation {
		return api.Operation{OperationID: done.OperationID, ExpectedFence: fence, Fingerprint: fingerprint}
	}
	fresh := func(fingerprint string, fence json.RawMessage) api.Operation {
		return api.Operation{OperationID: operation().OperationID, ExpectedFence: fence, Fingerprint: fingerprint}
	}
	send := func(o api.Operation, text string) api.Send { return api.Send{Operation: o, Session: id, Text: text} }
	// Fingerprint before receipts, before the lease, before the fence.
	b.refused(api.CodeOperationInvalid, api.MethodSessSend, send(other(wrong, stale), "say done"))
	b.refused(api.CodeOperationInvalid, api.MethodSessSend, send(other(wrong, nil), "say else"))
	b.refused(api.CodeOperationInvalid, api.MethodSessSend, send(fresh(wrong, stale), "say no"))
	a.refused(api.CodeOperationInvalid, api.MethodSessSend, send(fresh(wrong, stale), "say no"))
	// Receipts before the lease and the fence: by who does not hold it, with a fence that is stale.
	b.refused(api.CodeOperationConflict, api.MethodSessSend, send(other("", stale), "say else"))
	if got := call[json.RawMessage](b, api.MethodSessSend, send(other("", stale), "say done")); string(got) != string(answer) {
		t.Errorf("answered %s, want %s", got, answer)
	}
	b.refused(api.CodeOperationExpired, api.MethodSessSend, send(api.Operation{OperationID: aged(25 * time.Hour), ExpectedFence: stale}, "say no"))
	// The lease before the fence.
	for method, params := range map[string]any{
		api.MethodSessSend:      send(fresh("", stale), "say no"),
		api.MethodSessInterrupt: api.Interrupt{Operation: fresh("", stale), Session: id},
		api.MethodSessAttach:    api.Attach{Operation: fresh("", stale), Session: id},
	} {
		b.refused(api.CodeOwned, method, params)
	}
	for method, params := range map[string]any{
		api.MethodSessSend:      send(fresh("", stale), "say no"),
		api.MethodSessInterrupt: api.Interrupt{Operation: fresh("", stale), Session: id},
		api.MethodSessDetach:    api.Detach{Operation: fresh("", stale), Session: id},
		api.MethodSessAttach:    api.Attach{Operation: fresh("", stale), Session: id, TakeOver: true},
	} {
		e := a.refused(api.CodeStaleFence, method, params)
		if e.Data["currentFence"] != float64(fence) {
			t.Errorf("%s: %+v", method, e)
		}
	}
	if after := len(s.tales(id, "receipt")); after != before {
		t.Errorf("refusals left %d receipts", after-before)
	}
	// A refusal by lease or fence leaves none: the same operation is carried out once nothing stands against it.
	op := operation()
	b.refused(api.CodeOwned, api.MethodSessSend, send(op, "say later"))
	op.ExpectedFence = stale
	a.refused(api.CodeStaleFence, api.MethodSessSend, send(op, "say later"))
	a.detach(id)
	op.ExpectedFence = nil
	call[api.Sent](b, api.MethodSessSend, send(op, "say later"))
	if e := b.wait(op.OperationID); e.Outcome != "completed" || s.lines("prompts") != 2 {
		t.Errorf("%+v, %d prompts", e, s.lines("prompts"))
	}
	s.quiet()
}

// aged is an operation id that is so old; a negative age is ahead.
func aged(age time.Duration) string {
	return session.NewOperation(time.Now().Add(-age), [16]byte{byte(time.Now().Nanosecond())})
}

func TestF3_Codes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	op := operation()
	call[any](a, api.MethodSessDetach, api.Detach{Operation: op, Session: id})
	for method, params := range map[string]any{ // the same operation id for something else
		api.MethodSessSend:   api.Send{Operation: op, Session: id, Text: "say no"},
		api.MethodSessAttach: api.Attach{Operation: op, Session: id},
	} {
		a.refused(api.CodeOperationConflict, method, params)
	}
	for method, params := range map[string]any{
		api.MethodSessSend:   api.Send{Operation: operation(), Session: "s-0123456789abcdef", Text: "say no"},
		api.MethodSessAttach: api.Attach{Operation: operation(), Session: "s-0123456789abcdef"},
		api.MethodSessDetach: api.Detach{Operation: operation(), Session: "nobody"},
		api.MethodSessGet:    api.SessionTarget{Session: "s-0123456789abcdef"},
	} {
		a.refused(api.CodeNotFound, method, params)
	}
	// null: it must not exist yet.
	e := a.refused(api.CodeStaleFence, api.MethodSessAttach, api.Attach{Operation: api.Operation{ExpectedFence: json.RawMessage("null")}, Session: id})
	if e.Data["currentFence"] == nil {
		t.Errorf("%+v", e)
	}
	a.refused(api.CodeParams, api.MethodSessAttach, api.Attach{Operation: api.Operation{ExpectedFence: json.RawMessage(`"1"`)}, Session: id})
	a.owned(id, "free")
	again := a.open() // with "null", as all creates
	if again.ID == id {
		t.Errorf("made %s twice", id)
	}
	file := filepath.Join(s.home, "sessions", id, "session.json")
	good, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(`{"version":1,"id":"`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for method, params := range map[string]any{
		api.MethodSessSend:   api.Send{Operation: operation(), Session: id, Text: "say no"},
		api.MethodSessAttach: api.Attach{Operation: operation(), Session: id},
		api.MethodSessDetach: api.Detach{Operation: operation(), Session: id},
		api.MethodSessGet:    api.SessionTarget{Session: id},
	} {
		a.refused(api.CodeCorrupt, method, params)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	a.attach(id, "exclusive")
	a.detach(id)
	a.detach(again.ID)
	s.quiet()
}

func TestF4_OperationIDs(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	for op, code := range map[string]api.Code{
		"op-1": api.CodeOperationInvalid, operation().OperationID + "0": api.CodeOperationInvalid,
		strings.ToUpper(strings.Replace(operation().OperationID, "-", "-a", 1))[:46]: api.CodeOperationInvalid,
		aged(-6 * time.Minute): api.CodeOperationInvalid, aged(24*time.Hour + time.Minute): api.CodeOperationExpired,
	} {
		a.refused(code, api.MethodSessAttach, api.Attach{Operation: api.Operation{OperationID: op}, Session: id})
		a.refused(code, api.MethodSessSend, api.Send{Operation: api.Operation{OperationID: op}, Session: id, Text: "say no"})
	}
	for _, age := range []time.Duration{-4 * time.Minute, 23*time.Hour + 59*time.Minute} {
		op := api.Operation{OperationID: aged(age)}
		call[api.Sent](a, api.MethodSessSend, api.Send{Operation: op, Session: id, Text: "say yes"})
		call[api.Sent](a, api.MethodSessSend, api.Send{Operation: op, Session: id, Text: "say yes"})
		a.wait(op.OperationID)
	}
	if s.lines("prompts") != 2 {
		t.Errorf("%d prompts", s.lines("prompts"))
	}
	a.detach(id)
	s.quiet()
}
