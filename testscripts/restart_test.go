package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// recovering sets how long after a failure the next process is started.
func (s *stage) recovering(delay string) {
	s.t.Helper()
	config := fmt.Sprintf("[deadlines]\nstop_term = \"2s\"\n[recovery]\ndelay = %q\n", delay)
	if err := os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// openAs creates a session whose agent is restarted by a policy.
func (d *driver) openAs(policy string) api.Session {
	d.s.t.Helper()
	c := d.s.creation()
	c.Restart = policy
	return call[api.Session](d, api.MethodSessCreate, c)
}

// parked waits until nothing starts a session's agent any more.
func (d *driver) parked(id string) api.Session {
	d.s.t.Helper()
	return d.comes(id, "it is parked", func(s api.Session) bool { return s.State == "parked" })
}

// The first restart comes at once, the second as long after the failure as is configured, whatever the supervisor does
// meanwhile.
func TestR2_TheFirstAtOnceTheNextLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.recovering("1h")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.slay(pid)
	pid = a.replaced(sess.ID, pid).Ownership.Runtime.PID
	s.slay(pid)
	now := a.comes(sess.ID, "the next restart is scheduled", func(s api.Session) bool { return s.Restart != nil && s.Restart.NextAt != nil })
	if r := now.Restart; r.Policy != "on-crash" || r.Count != 2 || r.NextAt.Sub(*r.FailedAt) != time.Hour {
		t.Errorf("it is to be restarted %+v", r)
	}
	now = a.owned(sess.ID, "free")
	a.again()
	s.ticks()
	after := a.get(sess.ID)
	if after.Fence != now.Fence || !after.Restart.NextAt.Equal(*now.Restart.NextAt) || s.lines("launches") != 2 {
		t.Errorf("it was %+v and is %+v; %d processes", now.Restart, after.Restart, s.lines("launches"))
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" { // what is asked for needs no restart
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// Of the fourth failure in a row none follows: the session says why, and what leads out; a message is refused.
func TestR2_ThreeInARowAndThenItIsParked(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	for range 3 {
		pid := a.pid(sess.ID)
		s.slay(pid)
		a.replaced(sess.ID, pid)
	}
	s.slay(a.pid(sess.ID))
	now := a.parked(sess.ID)
	if r := now.Restart; !strings.HasPrefix(r.Parked, "crash_looping: ") || r.NextAt != nil || now.Next != "pintle recover "+sess.ID || len(now.Leases) != 1 {
		t.Errorf("it is %+v, %+v", now, r)
	}
	e := a.refused(api.CodeCrashLooping, api.MethodSessSend, api.Send{Operation: operation(), Session: sess.ID, Text: "say two"})
	if e.Code.Exit() != 14 || e.Next != now.Next {
		t.Errorf("refused with %+v", e)
	}
	a.again()
	s.ticks()
	if got := a.get(sess.ID); got.State != "parked" || s.lines("launches") != 4 || s.lines("prompts") != 1 {
		t.Errorf("it is %+v; %d processes", got, s.lines("launches"))
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	pid := a.replaced(sess.ID, 0).Ownership.Runtime.PID
	s.slay(pid) // it is counted from the beginning
	if now := a.replaced(sess.ID, pid); now.Restart == nil || now.Restart.Count != 1 {
		t.Errorf("it is %+v", now.Restart)
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// What has run for ten minutes is stable: the count begins anew. The record's clock is set instead of waited for.
func TestR2_StableRunningSetsTheCountBack(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]int{9 * time.Minute: 2, 10 * time.Minute: 1} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.open()
			pid := a.pid(sess.ID)
			s.slay(pid)
			pid = a.replaced(sess.ID, pid).Ownership.Runtime.PID
			s.damage(record.SessionFile(sess.ID), func(text string) string { return runsFor(t, text, age) })
			s.slay(pid)
			if now := a.replaced(sess.ID, pid); now.Restart.Count != want {
				t.Errorf("it is %+v, want %d", now.Restart, want)
			}
			a.detach(sess.ID)
			s.quiet()
		})
	}
}

// runsFor has a session's runtime have run for so long.
func runsFor(t *testing.T, text string, age time.Duration) string {
	t.Helper()
	var sess record.Session
	if err := json.Unmarshal([]byte(text), &sess); err != nil || sess.Restart.RunsFrom == nil {
		t.Fatalf("%v: %s", err, text)
	}
	from := time.Now().UTC().Add(-age)
	sess.Restart.RunsFrom = &from
	return string(must(json.Marshal(sess)))
}

// What was stored before a session was parked waits as long as that is so, says for what, and is given once afterwards.
func TestR2_WhatIsStoredWaitsWhileItIsParked(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	first := a.post(sess.ID, "hold go; die")
	for i := range 3 {
		a.post(sess.ID, fmt.Sprintf("say %d; die", i))
	}
	last := a.post(sess.ID, "say last")
	s.touch("go")
	a.over(first.Execution)
	now := a.parked(sess.ID)
	var e api.Execution
	s.until("the last one waits for the session", func() bool {
		e = call[api.Execution](a, api.MethodGet, api.Target{ID: last.Execution})
		return e.WaitingFor != nil && e.WaitingFor.Kind == "crash_looping"
	})
	if e.Next != "pintle recover "+sess.ID || len(now.Queue) != 1 || e.Delivery.HandedOverAt != nil {
		t.Errorf("it is %+v, the message %+v", now, e)
	}
	a.again()
	s.ticks()
	if s.lines("launches") != 4 || s.lines("prompts") != 5 {
		t.Errorf("%d processes, %d prompts", s.lines("launches"), s.lines("prompts"))
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	if e := a.over(last.Execution); e.Outcome != "completed" || s.lines("launches") != 5 || s.lines("prompts") != 6 {
		t.Errorf("ended as %+v; %d processes, %d prompts", e, s.lines("launches"), s.lines("prompts"))
	}
	a.detach(sess.ID)
	s.quiet()
}

// With never, nothing starts it but recover.
func TestR2_Never(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.openAs("never")
	a.send(sess.ID, "say one")
	s.slay(a.pid(sess.ID))
	now := a.parked(sess.ID)
	if now.Restart.Policy != "never" || !strings.HasPrefix(now.Restart.Parked, "restart_never") || now.Next != "pintle recover "+sess.ID {
		t.Errorf("it is %+v", now.Restart)
	}
	a.refused(api.CodeCrashLooping, api.MethodSessSend, api.Send{Operation: operation(), Session: sess.ID, Text: "say two"})
	s.ticks()
	if s.lines("launches") != 1 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || s.lines("launches") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// On demand, the next message starts it, and is the one turn there.
func TestR2_OnDemand(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.openAs("on-demand")
	a.send(sess.ID, "say one")
	s.slay(a.pid(sess.ID))
	now := a.owned(sess.ID, "free")
	s.ticks()
	if s.lines("launches") != 1 || now.State != "ready" || now.Restart == nil || now.Restart.FailedAt == nil {
		t.Errorf("%d processes; it is %+v", s.lines("launches"), now)
	}
	sent, e := a.send(sess.ID, "say two")
	if e.Outcome != "completed" || e.Conversation != "T1" || s.lines("launches") != 2 || s.lines("prompts") != 2 || e.Fence != now.Fence+1 {
		t.Errorf("sent %+v, ended as %+v", sent, e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// An agent that cannot be started any more is one that fails again and again.
func TestR2_WhatCannotBeStartedIsParked(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	program := filepath.Join(s.dir, "bin", "codex")
	if err := os.Rename(program, program+"~"); err != nil {
		t.Fatal(err)
	}
	s.slay(a.pid(sess.ID))
	now := a.parked(sess.ID)
	if !strings.Contains(now.Restart.Parked, "crash_looping: ") || !strings.Contains(now.Restart.Parked, "no such file") {
		t.Errorf("it is %+v", now.Restart)
	}
	if err := os.Rename(program+"~", program); err != nil {
		t.Fatal(err)
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// What was handed over is not given again by a restart, whether it was confirmed or not; what was only stored goes once to
// the next runtime.
func TestR2_ARestartResendsNothing(t *testing.T) {
	for name, c := range map[string]struct{ prompt, file, outcome, delivery string }{
		"confirmed":   {"say one; die", "", "agent_died", "accepted"},
		"unconfirmed": {"say one", "deaf", "unknown", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.open()
			a.send(sess.ID, "say zero")
			pid := a.pid(sess.ID)
			first := a.post(sess.ID, "hold go")
			second, third := a.post(sess.ID, c.prompt), a.post(sess.ID, "say last")
			if c.file != "" {
				s.touch(c.file)
			}
			s.touch("go")
			a.wait(first.Execution)
			e, last := a.wait(second.Execution), a.wait(third.Execution)
			if e.Outcome != c.outcome || e.Delivery.State != c.delivery || e.Delivery.HandedOverAt == nil {
				t.Errorf("ended as %+v, %+v", e, e.Delivery)
			}
			if last.Outcome != "completed" || last.Fence <= e.Fence {
				t.Errorf("the last one ended as %+v", last)
			}
			a.replaced(sess.ID, pid)
			if got := s.prompted(); strings.Join(got, "|") != "say zero|hold go|"+c.prompt+"|say last" || s.lines("launches") != 2 {
				t.Errorf("it was prompted %q by %d processes", got, s.lines("launches"))
			}
			a.detach(sess.ID)
			s.quiet()
		})
	}
}

// A shim that dies before it has started anything is a failure too: the next one comes when that is due.
func TestR2_TheShimIsKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.crash = "kill:shim.began@" + filepath.Join(s.dir, "flag")
	a.again()
	s.crash = ""
	a.pid(sess.ID)
	s.slay(pid)
	now := a.replaced(sess.ID, pid)
	if now.Restart.Count != 2 || s.lines("launches") != 2 {
		t.Errorf("it is %+v; %d processes", now.Restart, s.lines("launches"))
	}
	a.detach(sess.ID)
	s.quiet()
}

// The restart comes once, whenever its supervisor is killed.
func TestR2_TheSupervisorIsKilledWhileItRestarts(t *testing.T) {
	for _, point := range []string{
		"supervisor.exited", "supervisor.reopening", "supervisor.prepared", "supervisor.turn", "supervisor.launched", "supervisor.started",
		"supervisor.said", "supervisor.rested", "supervisor.ended",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.open()
			a.send(sess.ID, "say one")
			pid := a.pid(sess.ID)
			flag := filepath.Join(s.dir, "flag")
			s.crash = "kill:" + point + "@" + flag
			a.again()
			s.crash = ""
			a.pid(sess.ID) // it was taken over
			s.slay(pid)
			s.until("the supervisor was killed", func() bool {
				data, _ := os.ReadFile(flag)
				return strings.Contains(string(data), "supervise")
			})
			a.back()
			now := a.replaced(sess.ID, pid)
			if got := s.journalled(sess.ID, "runtime_exited"); got != 1 {
				t.Errorf("the journal has %d exits", got)
			}
			if s.requested("thread/resume", "T1") != 1 || now.Restart.Count != 1 || now.Fence < sess.Fence+2 {
				t.Errorf("it was resumed %d times; it is %+v, %+v, it was at %d", s.requested("thread/resume", "T1"), now, now.Restart, sess.Fence)
			}
			if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || s.lines("prompts") != 2 {
				t.Errorf("ended as %+v", e)
			}
			a.detach(sess.ID)
			s.quiet()
		})
	}
}
