package testscripts

import (
	"strings"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// A message that is put into a turn is a row of the history, and its end is none: there was one turn.
func TestF6_ASteeredMessageIsNoTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	host := a.post(sess.ID, "hold go; say over")
	a.waitUntil(host.Execution, "confirmed")
	steered := call[api.Sent](a, api.MethodSessSend, api.Send{Operation: operation(), Session: sess.ID, Text: "say more", When: "steer"})
	a.waitUntil(steered.Execution, "handed_over")
	s.touch("go")
	h, e := a.wait(host.Execution), a.wait(steered.Execution)
	if h.Outcome != "completed" || e.Outcome != "completed" || e.Delivery.State != "accepted" {
		t.Errorf("it ended as %+v, %+v; its host as %+v", e, e.Cause, h)
	}
	if got := a.kinds(sess.ID); strings.Count(got, "user_message_chunk") != 2 || strings.Count(got, "turn_ended") != 1 {
		t.Errorf("the history has %s", got)
	}
	if s.journalled(sess.ID, "message_ended") != 1 {
		t.Error("the journal does not tell its end")
	}
	a.again() // which reads it from there
	if e := a.wait(steered.Execution); e.Outcome != "completed" {
		t.Errorf("it ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}
