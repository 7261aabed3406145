package testscripts

import (
	"strings"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// An idle agent that is killed is replaced at once, by one process, in the same conversation. The next message is one turn
// of it.
func TestR1_TheIdleAgentIsKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	made := a.open()
	_, e := a.send(made.ID, "say one")
	was := a.get(made.ID)
	pid := a.pid(made.ID)
	s.slay(pid)
	now := a.replaced(made.ID, pid)
	if now.Fence <= was.Fence || now.Conversation != e.Conversation || now.State != "ready" || len(now.Leases) != 1 {
		t.Errorf("before %+v, afterwards %+v", was, now)
	}
	if s.lines("launches") != 2 || s.requested("thread/resume", `"threadId":"T1"`) != 1 || s.lines("threads") != 1 {
		t.Errorf("%d processes; it was resumed %d times, there are %d threads", s.lines("launches"), s.requested("thread/resume", "T1"), s.lines("threads"))
	}
	if got := a.kinds(made.ID); got != aTurn {
		t.Errorf("the history has %s", got)
	}
	sent, e := a.send(made.ID, "say two")
	if e.Outcome != "completed" || e.Conversation != "T1" || sent.Fence < now.Fence || s.lines("prompts-T1") != 2 || s.lines("launches") != 2 {
		t.Errorf("sent %+v, ended as %+v", sent, e)
	}
	if got := a.kinds(made.ID); got != aTurn+" "+aTurn {
		t.Errorf("the history has %s", got)
	}
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: made.ID})
	s.quiet()
}

// Fences only grow, over several deaths in a row, each of which is one restart.
func TestR1_EachDeathRaisesTheFence(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	fence := sess.Fence
	for i := range 3 {
		pid := a.pid(sess.ID)
		s.slay(pid)
		now := a.replaced(sess.ID, pid)
		if now.Fence != fence+2 { // one for the exit, one for the reservation
			t.Errorf("death %d: fence %d, it was %d", i, now.Fence, fence)
		}
		fence = now.Fence
	}
	if s.lines("launches") != 4 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	s.quiet()
}

// The lease of an execution restarts nothing, a client's does.
func TestR1_AnExecutionsLeaseRestartsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	s.verb("run", "-d", "--id", "k", "-a", "codex", "say one; hold go")
	var e api.Execution
	s.until("its turn is known to run", func() bool {
		e = call[api.Execution](a, api.MethodGet, api.Target{ID: "k"})
		return e.Runtime != nil && e.Delivery != nil && e.Delivery.ConfirmedAt != nil
	})
	s.slay(e.Runtime.PID)
	if e = a.wait("k"); e.Outcome != "agent_died" {
		t.Fatalf("ended as %+v", e)
	}
	a.again()
	s.ticks()
	sess := a.owned(e.Session, "free")
	if s.lines("launches") != 1 || sess.Restart != nil && sess.Restart.NextAt != nil {
		t.Errorf("%d processes, %+v", s.lines("launches"), sess.Restart)
	}
	s.quiet()
}

// An answer with another conversation than was asked for is a failure, and counts as one.
func TestR1_AnotherConversationIsAFailure(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("other")
	s.slay(a.pid(sess.ID))
	now := a.comes(sess.ID, "it is parked", func(s api.Session) bool { return s.State == "parked" })
	if !strings.Contains(now.Restart.Parked, "crash_looping") || now.Conversation != "T1" || s.journalled(sess.ID, "conversation_replaced") != 0 {
		t.Errorf("it is %+v", now)
	}
	s.without("other")
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	a.replaced(sess.ID, 0)
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	s.quiet()
}

// A conversation in which no turn was, and which the agent did not keep, is replaced by a fresh one, and that is on record.
func TestR1_AConversationThatWasNotKeptIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	s.touch("lost")
	pid := a.pid(sess.ID)
	s.slay(pid)
	a.replaced(sess.ID, pid)
	if got := s.journalled(sess.ID, "conversation_replaced"); got != 1 {
		t.Errorf("the journal says %d times that it was replaced", got)
	}
	s.without("lost")
	if _, e := a.send(sess.ID, "say one"); e.Conversation != "T2" || e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	if now := a.get(sess.ID); now.Conversation != "T2" {
		t.Errorf("it is %+v", now)
	}
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	s.quiet()
}

// One session's death is no other's business.
func TestR1_OneOfSeveralSessionsDies(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	one, two := a.open(), a.open()
	a.send(one.ID, "say one")
	sent := a.post(two.ID, "say two; hold go")
	pid, other := a.pid(one.ID), a.pid(two.ID)
	before := a.get(two.ID)
	s.slay(pid)
	a.replaced(one.ID, pid)
	if now := a.get(two.ID); now.Fence != before.Fence || now.Ownership.Runtime.PID != other || now.Ownership.State != "live" {
		t.Errorf("the other one was %+v, and is %+v", before, now)
	}
	s.touch("go")
	if e := a.wait(sent.Execution); e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	for _, id := range []string{one.ID, two.ID} {
		call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: id})
	}
	s.quiet()
}

// Where nobody knows the agent's environment any more, since all who did are dead, nothing is started with half of it, and
// nothing stands in the way of the message that brings it.
func TestR2_TheEnvironmentIsNotKnownAnyMore(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	c := s.creation()
	c.Environment["GADGET"] = "g"
	sess := call[api.Session](a, api.MethodSessCreate, c)
	a.send(sess.ID, "env GADGET")
	shim := s.shimOf(sess.ID)
	s.slay(s.supervising(t).PID)
	s.slay(shim)
	a.back()
	now := a.owned(sess.ID, "free")
	a.comes(sess.ID, "nothing is queued", func(s api.Session) bool { return len(s.Queue) == 0 })
	s.ticks()
	if now = a.get(sess.ID); now.State != "ready" || now.Restart != nil && now.Restart.NextAt != nil || len(now.Queue) != 0 || s.lines("launches") != 1 {
		t.Errorf("it is %+v, %+v", now, now.Restart)
	}
	waits := a.post(sess.ID, "say two")
	s.until("it waits for its environment", func() bool {
		e := call[api.Execution](a, api.MethodGet, api.Target{ID: waits.Execution})
		return e.WaitingFor != nil && e.WaitingFor.Kind == "needs_env"
	})
	call[api.Controlled](a, api.MethodStop, api.Control{ID: waits.Execution})
	m := api.Send{Operation: operation(), Session: sess.ID, Text: "env GADGET", Environment: c.Environment}
	sent := call[api.Sent](a, api.MethodSessSend, m)
	if e := a.over(sent.Execution); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	pid := a.pid(sess.ID)
	s.slay(pid) // it is known again
	a.replaced(sess.ID, pid)
	if _, e := a.send(sess.ID, "env GADGET"); e.Outcome != "completed" || s.lines("launches") != 3 {
		t.Errorf("ended as %+v; %d processes", e, s.lines("launches"))
	}
	a.detach(sess.ID)
	s.quiet()
}
