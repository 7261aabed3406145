package testscripts

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/rpc/api"
)

// stopped runs supervise stop and returns its exit code and what it said.
func (s *stage) stopped() (code int, said string) {
	s.t.Helper()
	c := s.command("supervise", "stop")
	out, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(out)
}

// nothing waits until no process of the state directory is left.
func (s *stage) nothing() {
	s.t.Helper()
	s.until("nothing is left", func() bool { return len(s.tagged()) == 0 })
}

// A stop waits for a recovery that is under way and ends it. Nothing is started behind it, not by the next supervisor either,
// though its client still holds the session.
func TestR5_StopWhileARecoveryOpens(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("slow")
	s.slay(a.pid(sess.ID))
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	if code, said := s.stopped(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.nothing()
	s.without("slow")
	a.back()
	s.ticks()
	now := a.get(sess.ID)
	if now.Ownership.State != "free" || len(now.Leases) != 1 || s.lines("launches") != 2 || now.Restart != nil && now.Restart.NextAt != nil {
		t.Errorf("it is %+v, %+v; %d processes", now, now.Restart, s.lines("launches"))
	}
	if got := a.kinds(sess.ID); got != aTurn {
		t.Errorf("the history has %s", got)
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// A restart that is due later is not due behind a stop.
func TestR5_StopWhileARestartIsDue(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.recovering("1500ms")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.slay(pid)
	s.slay(a.replaced(sess.ID, pid).Ownership.Runtime.PID)
	a.comes(sess.ID, "a restart is due", func(s api.Session) bool { return s.Restart != nil && s.Restart.NextAt != nil })
	if code, said := s.stopped(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.nothing()
	a.back()
	s.ticks()
	if now := a.get(sess.ID); now.Restart != nil && now.Restart.NextAt != nil || s.lines("launches") != 2 {
		t.Errorf("it is %+v; %d processes", now.Restart, s.lines("launches"))
	}
	a.detach(sess.ID)
	s.quiet()
}

// All else that ends a supervisor leaves runtimes to their shims: the same process, under the same fence, goes on.
func TestR5_WhatLeavesRuntimes(t *testing.T) {
	for name, end := range map[string]func(s *stage){
		"restart": func(*stage) {},
		"SIGTERM": func(s *stage) { s.dismiss(syscall.SIGTERM) },
		"SIGKILL": func(s *stage) { s.dismiss(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			idle, busy := a.open(), a.open()
			a.send(idle.ID, "say one")
			sent := a.post(busy.ID, "say two; hold go")
			pid, other := a.pid(idle.ID), a.pid(busy.ID)
			was := a.get(idle.ID)
			end(s)
			a.back()
			if a.pid(idle.ID) != pid || a.pid(busy.ID) != other || a.get(idle.ID).Fence != was.Fence {
				t.Errorf("it was %+v and is %+v", was, a.get(idle.ID))
			}
			s.touch("go")
			if e := a.wait(sent.Execution); e.Outcome != "completed" {
				t.Errorf("ended as %+v", e)
			}
			if _, e := a.send(idle.ID, "say three"); e.Outcome != "completed" || s.lines("launches") != 2 {
				t.Errorf("ended as %+v; %d processes", e, s.lines("launches"))
			}
			a.detach(idle.ID)
			a.detach(busy.ID)
			s.quiet()
		})
	}
}

// dismiss signals the supervisor and waits until it is gone.
func (s *stage) dismiss(sig syscall.Signal) {
	s.t.Helper()
	id := s.supervising(s.t).Identity
	if err := proc.Signal(id, sig); err != nil {
		s.t.Fatal(err)
	}
	s.until("the supervisor is gone", func() bool { return id.Liveness() == proc.Dead })
}

// A stop ends idle sessions and turns alike, and says so.
func TestR5_StopEndsAll(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	idle, busy := a.open(), a.open()
	a.send(idle.ID, "say one")
	sent, behind := a.post(busy.ID, "say two; hold go"), a.post(busy.ID, "say three")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 2 })
	if code, said := s.stopped(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.nothing()
	a.back()
	for _, key := range []string{sent.Execution, behind.Execution} {
		if e := a.wait(key); e.Outcome != "host_died" || e.Cause == nil || e.Cause.Code != "stopped" {
			t.Errorf("ended as %+v, %+v", e, e.Cause)
		}
	}
	s.ticks()
	if got := s.lines("launches"); got != 2 || s.lines("prompts") != 2 {
		t.Errorf("%d processes, %d prompts", got, s.lines("prompts"))
	}
	for _, id := range []string{idle.ID, busy.ID} {
		a.owned(id, "free")
		a.detach(id)
	}
	s.quiet()
}

// A message that is stopped while the session opens again ends as that, and the opening goes on; who gives the session up
// meanwhile leaves nothing behind.
func TestR5_StopOfAMessageWhileARecoveryOpens(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("slow")
	pid := a.pid(sess.ID)
	s.slay(pid)
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	op := operation()
	sent := make(chan error, 1)
	go func() {
		_, err := try[api.Sent](a, api.MethodSessSend, api.Send{Operation: op, Session: sess.ID, Text: "say two"})
		sent <- err
	}()
	s.until("it is stored", func() bool { return s.journalled(sess.ID, "message_stored") == 2 })
	call[api.Controlled](b, api.MethodStop, api.Control{ID: op.OperationID})
	if e := b.wait(op.OperationID); e.Outcome != "cancelled" || e.Delivery.State != "rejected" {
		t.Errorf("ended as %+v, %+v", e, e.Delivery)
	}
	if err := <-sent; err != nil {
		t.Errorf("the send: %v", err)
	}
	if now := a.get(sess.ID); now.Ownership.State == "free" {
		t.Errorf("the opening was stopped too: %+v", now)
	}
	s.without("slow")
	a.replaced(sess.ID, pid)
	if s.lines("prompts") != 1 || s.lines("launches") != 2 {
		t.Errorf("%d prompts, %d processes", s.lines("prompts"), s.lines("launches"))
	}
	a.detach(sess.ID)
	s.quiet()
}

func TestR5_DetachWhileARecoveryOpens(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("slow")
	s.slay(a.pid(sess.ID))
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	a.detach(sess.ID)
	now := a.owned(sess.ID, "free")
	if len(now.Queue) != 0 || now.Restart != nil && (now.Restart.NextAt != nil || now.Restart.Parked != "") || now.Conversation != "T1" {
		t.Errorf("it is %+v, %+v", now, now.Restart)
	}
	s.quiet()
	if s.lines("launches") != 2 {
		t.Errorf("%d processes", s.lines("launches"))
	}
}

// A close that cannot be proven is ended by force, and reported: the supervisor stays, serves what is on record and takes no
// work, until a stop that really tries again succeeds.
func TestR6_ACloseThatCannotBeProven(t *testing.T) {
	for name, prompt := range map[string]string{"idle": "", "in a turn": "say two; hold go"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			frozen, other := a.open(), a.open()
			a.send(frozen.ID, "say one")
			rows := aTurn
			if prompt != "" {
				a.post(frozen.ID, prompt)
				s.until("its turn runs", func() bool { return s.lines("prompts") == 2 })
				a.comes(frozen.ID, "it has said it", func(api.Session) bool { return strings.Count(a.kinds(frozen.ID), "agent_message_chunk") == 2 })
				rows += " " + aTurn
			}
			pid := a.pid(frozen.ID)
			s.freeze(s.shimOf(frozen.ID))
			code, said := s.stopped()
			if code == 0 || !strings.Contains(said, "by force") {
				t.Errorf("exit code %d: %s", code, said)
			}
			if id, err := proc.Identify(pid); err == nil && id.Liveness() == proc.Alive {
				t.Error("its agent lives")
			}
			before := s.supervising(t)
			for _, id := range []string{frozen.ID, other.ID} {
				a.owned(id, "free")
			}
			if got := a.kinds(frozen.ID); got != rows {
				t.Errorf("the history has %s", got)
			}
			a.refused(api.CodeStopping, api.MethodSessSend, api.Send{Operation: operation(), Session: other.ID, Text: "say three"})
			a.refused(api.CodeStopping, api.MethodSessCreate, s.creation())
			a.refused(api.CodeStopping, api.MethodSessAttach, api.Attach{Operation: operation(), Session: other.ID})
			a.refused(api.CodeStopping, api.MethodSessRecover, api.RecoverSession{Session: other.ID})
			s.ticks()
			if got := a.kinds(frozen.ID); got != rows || s.lines("launches") != 2 {
				t.Errorf("later the history has %s; %d processes", got, s.lines("launches"))
			}
			if after := s.supervising(t); after.Identity != before.Identity {
				t.Errorf("another supervisor: %+v, was %+v", after, before)
			}
			if code, said := s.stopped(); code != 0 {
				t.Errorf("the next stop: exit code %d: %s", code, said)
			}
			s.nothing()
		})
	}
}

// A supervisor that dies while it stops is followed by one that is stopped too: what was opening and what was idle ends, and
// nothing is started behind that.
func TestR5_TheSupervisorDiesWhileItStops(t *testing.T) {
	for _, point := range []string{"supervisor.cancel", "supervisor.closing", "supervisor.exited"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			opening, idle := a.open(), a.open()
			a.send(opening.ID, "say one")
			a.send(idle.ID, "say two")
			pid := a.pid(opening.ID)
			s.touch("slow")
			s.slay(pid)
			s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
			s.crash = "kill:" + point + "@" + filepath.Join(s.dir, "flag")
			a.again()
			s.crash = ""
			a.owned(opening.ID, "reserved")
			if code, said := s.stopped(); code != 0 {
				t.Errorf("exit code %d: %s", code, said)
			}
			s.nothing()
			data, _ := os.ReadFile(filepath.Join(s.dir, "flag"))
			if !strings.Contains(string(data), "supervise") {
				t.Error("the supervisor was not killed")
			}
			s.without("slow")
			a.back()
			s.ticks()
			for _, id := range []string{opening.ID, idle.ID} {
				if now := a.get(id); now.Ownership.State != "free" || len(now.Leases) != 1 || a.kinds(id) != aTurn {
					t.Errorf("it is %+v with %s", now, a.kinds(id))
				}
				a.detach(id)
			}
			if s.lines("launches") != 3 {
				t.Errorf("%d processes", s.lines("launches"))
			}
			s.quiet()
		})
	}
}

// A runtime that is being opened and stands still is ended by force too, and reported.
func TestR6_AnOpeningThatStandsStill(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("slow")
	s.slay(a.pid(sess.ID))
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	s.freeze(s.shimOf(sess.ID))
	if code, said := s.stopped(); code == 0 || !strings.Contains(said, "by force") {
		t.Errorf("exit code %d: %s", code, said)
	}
	now := a.owned(sess.ID, "free")
	if got := a.kinds(sess.ID); got != aTurn || now.Restart != nil && now.Restart.NextAt != nil {
		t.Errorf("it is %+v; the history has %s", now.Restart, got)
	}
	s.ticks()
	if s.lines("launches") != 2 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	if code, said := s.stopped(); code != 0 {
		t.Errorf("the next stop: exit code %d: %s", code, said)
	}
	s.nothing()
}
