package testscripts

import (
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// A death between a message's place and its order, which nobody repeats, leaves a place without an order. It is nobody's turn:
// what comes in the place of a turn ends that one, and no two run at once; and an archive leaves no place.
func TestF2_APlaceWithoutAnOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		t.Fatal(err)
	}
	dead := func() {
		t.Helper()
		err := state.Update(t.Context(), d, record.SessionFile(sess.ID), func(r *record.Session) error {
			r.Queue = append(r.Queue, record.Turn{Folder: "00000000000000000000000000000000", At: time.Now().UTC()})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	dead()
	a.post(sess.ID, "hold never")
	s.until("it runs", func() bool { return s.lines("prompts") == 1 })
	next := call[api.Sent](a, api.MethodSessSend, api.Send{Operation: operation(), Session: sess.ID, Text: "say two", When: "interrupt"})
	a.over(next.Execution)
	if got, want := a.kinds(sess.ID), "user_message_chunk turn_ended "+aTurn; got != want {
		t.Errorf("the history has %s", got)
	}
	dead()
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	s.verb("archive", next.Execution)
	r, err := state.Read[record.Session](d, record.SessionFile(sess.ID))
	if err != nil || len(r.Queue) > 0 {
		t.Errorf("%+v, %v", r.Queue, err)
	}
	if code, said := s.stopped(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.nothing()
}
