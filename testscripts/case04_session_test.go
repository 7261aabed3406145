package testscripts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// A message is repeated after 64, 512 and, with PINTLE_MANY, 5,000 other operations on its session: it is answered as it was,
// and was sent once.
func TestCase04_AMessageIsRepeatedAfterManyOperations(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	m := api.Send{Operation: operation(), Session: id, Text: "say once"}
	first := call[json.RawMessage](a, api.MethodSessSend, m)
	a.wait(m.OperationID)
	given := 0
	rounds := []int{64, 512}
	if os.Getenv("PINTLE_MANY") != "" {
		rounds = append(rounds, 5000)
	}
	for _, n := range rounds {
		for ; given < n; given += 2 {
			call[api.Detached](a, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
			call[api.Attached](a, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: "exclusive"})
		}
		for _, restart := range []bool{false, true} {
			if restart {
				a.again()
			}
			if again := call[json.RawMessage](a, api.MethodSessSend, m); string(again) != string(first) {
				t.Errorf("after %d others (restart: %v) answered\n%s, first\n%s", n, restart, again, first)
			}
		}
	}
	if s.launched("say once") != 1 || s.journalled(id, "receipt") != given+2 {
		t.Errorf("sent %d times, %d receipts of %d operations", s.launched("say once"), s.journalled(id, "receipt"), given+2)
	}
	a.detach(id)
	s.quiet()
}

// What is evicted from the receipts is not carried out again: ids that were not seen are expired up to there.
func TestF4_EvictionRaisesAMark(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	old := operation()
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Operation: old, Session: id})
	unseen := operation() // made behind it, and used too late
	a.owned(id, "free")
	s.verb("supervise", "stop")
	last := s.receipts(id, session.MaxReceipts+1)
	a.back()
	a.refused(api.CodeOperationExpired, api.MethodSessDetach, api.Detach{Operation: old, Session: id})
	a.refused(api.CodeOperationExpired, api.MethodSessAttach, api.Attach{Operation: unseen, Session: id})
	a.refused(api.CodeOperationConflict, api.MethodSessAttach, api.Attach{Operation: last, Session: id}) // which is found
	a.attach(id, "exclusive")
	a.detach(id)
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken a exclusive", "given_back a exclusive")
	s.quiet()
}

// receipts puts as many receipts into a session's journal, while there is no supervisor, and returns the last one's operation.
func (s *stage) receipts(id string, n int) (op api.Operation) {
	s.t.Helper()
	w, _, err := journal.Open(filepath.Join(s.home, record.JournalDir(id)), 0, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	events := make([]journal.Event, n)
	for i := range events {
		op = operation()
		data := must(json.Marshal(session.Receipt{
			Operation: op.OperationID, Method: api.MethodSessDetach, Fingerprint: fmt.Sprintf("%064x", i), At: time.Now().UTC(), Answer: json.RawMessage("{}"),
		}))
		events[i] = journal.Event{Session: id, Fence: s.sessionRecord(id).Fence, Type: "receipt", Data: data}
	}
	if _, err := w.Append(events, journal.Commit{}, true); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
	return op
}

// A client stops waiting for the answer of a send, or loses its connection, although the message was accepted: it is pending,
// which can be asked under the operation's id, and the repeat is answered.
func TestCase05_ACallTimesOutAlthoughAccepted(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*driver, context.CancelFunc){
		"time is over":       func(_ *driver, cancel context.CancelFunc) { cancel() },
		"connection is lost": func(d *driver, _ context.CancelFunc) { d.c.Close() },
		"supervisor is gone": func(d *driver, _ context.CancelFunc) { d.s.slay(d.s.supervising(d.s.t).PID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			id := a.open().ID
			a.detach(id)
			a.owned(id, "free")
			release := s.starting()
			m := api.Send{Operation: operation(), Session: id, Text: "say accepted"}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- a.c.Call(ctx, api.MethodSessSend, m, nil) }()
			looker := s.join("looker")
			looker.comes(id, "the message is accepted", func(v api.Session) bool {
				return len(v.Queue) == 1 && v.Queue[0].Execution == m.OperationID
			})
			leave(a, cancel)
			if err := <-ended; err == nil || !errors.Is(err, context.Canceled) && api.CodeOf(err) != api.CodeUnreachable {
				t.Errorf("the call ended with %v", err)
			}
			a.back()
			e := call[api.Execution](a, api.MethodGet, api.Target{ID: m.OperationID})
			if e.Phase == "ended" || e.Delivery == nil || e.Delivery.State != "pending" {
				t.Errorf("asked, it is %+v, %+v", e, e.Delivery)
			}
			repeat := ask[api.Sent](a, api.MethodSessSend, m)
			release()
			got := <-repeat
			if got.err != nil || got.answer.Execution != m.OperationID || got.answer.Delivery.State != "pending" {
				t.Errorf("the repeat is answered %+v, %v", got.answer, got.err)
			}
			if e := a.wait(m.OperationID); e.Outcome != "completed" || s.launched("say accepted") != 1 || s.journalled(id, "message_stored") != 1 {
				t.Errorf("%+v, %q, %d stored", e, s.prompted(), s.journalled(id, "message_stored"))
			}
			again := call[json.RawMessage](a, api.MethodSessSend, m)
			if want := must(json.Marshal(got.answer)); string(again) != string(want) {
				t.Errorf("answered %s, then %s", want, again)
			}
			s.quiet()
		})
	}
}
