package testscripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// An idle runtime whose shim lives and does not answer is neither live nor dead. Nothing is started or ended for it until it
// answers again, or the user says that it is dead.
func TestR8_AFrozenShimIsUncertain(t *testing.T) {
	for name, ends := range map[string]bool{"it answers again": false, "it is said to be dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.open()
			a.send(sess.ID, "say one")
			pid, was := a.pid(sess.ID), a.get(sess.ID)
			thaw := s.freeze(s.shimOf(sess.ID))
			a.again()
			now := a.owned(sess.ID, "uncertain")
			if now.Ownership.Reason != "shim_silent" || now.Ownership.Next != "pintle recover "+sess.ID+" --probe" || now.Fence != was.Fence || len(now.Leases) != 1 {
				t.Errorf("it is %+v, %+v", now, now.Ownership)
			}
			if got := call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID}); got.Ownership.State != "uncertain" {
				t.Errorf("after a probe it is %+v", got.Ownership)
			}
			if id, err := proc.Identify(pid); err != nil || id.Liveness() != proc.Alive || s.lines("launches") != 1 {
				t.Errorf("its agent: %v; %d processes", err, s.lines("launches"))
			}
			processes := 1
			if ends {
				call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID, AssertDead: true})
				if id, err := proc.Identify(pid); err == nil && id.Liveness() == proc.Alive {
					t.Error("its agent lives")
				}
				processes = 2
			} else {
				thaw()
				if now := a.owned(sess.ID, "live"); now.Fence != was.Fence || a.pid(sess.ID) != pid {
					t.Errorf("it is %+v", now)
				}
			}
			_, e := a.send(sess.ID, "say two")
			if e.Outcome != "completed" || e.Conversation != "T1" || s.lines("launches") != processes || ends != (e.Fence > was.Fence) {
				t.Errorf("ended as %+v; %d processes", e, s.lines("launches"))
			}
			a.detach(sess.ID)
			s.quiet()
		})
	}
}

// The same in a turn: it goes on when its shim answers again, and is never begun anew.
func TestR8_AFrozenShimInATurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent := a.post(sess.ID, "say one; hold go")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 1 })
	thaw := s.freeze(s.shimOf(sess.ID))
	a.again()
	a.owned(sess.ID, "uncertain")
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	thaw()
	a.owned(sess.ID, "live")
	s.touch("go")
	if e := a.over(sent.Execution); e.Outcome != "completed" || s.lines("prompts") != 1 || s.lines("launches") != 1 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// A runtime whose records cannot be read is uncertain, though its shim answers: nobody can go on with it. Only the user's word
// ends it; what lies there is kept, and the session goes on.
func TestR8_AnUnreadableRuntimeIsUncertain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid, runtime := a.pid(sess.ID), a.get(sess.ID).Ownership.Runtime.ID
	s.slay(s.supervising(t).PID)
	s.damage("runtimes/"+runtime+"/fold.json", func(string) string { return `{"version":1,` })
	a.back()
	now := a.owned(sess.ID, "uncertain")
	if now.Ownership.Reason != "runtime_unreadable" || now.Ownership.Next != "pintle recover "+sess.ID+" --probe" {
		t.Errorf("it is %+v", now.Ownership)
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID})
	s.ticks()
	if id, err := proc.Identify(pid); err != nil || id.Liveness() != proc.Alive || a.get(sess.ID).Ownership.State != "uncertain" {
		t.Errorf("its agent: %v", err)
	}
	call[api.Session](a, api.MethodSessRecover, api.RecoverSession{Session: sess.ID, AssertDead: true})
	if id, err := proc.Identify(pid); err == nil && id.Liveness() == proc.Alive {
		t.Error("its agent lives")
	}
	a.owned(sess.ID, "free")
	if !exists(filepath.Join(s.home, "quarantine", runtime, "fold.json")) {
		t.Error("what could not be read is gone")
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" || e.Fence <= sess.Fence {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// A shim that was killed, and that nobody reaps, is dead.
func TestR8_AZombieIsDead(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid, shim := a.pid(sess.ID), s.shimOf(sess.ID)
	thaw := s.freeze(s.supervising(t).PID) // its parent
	s.slay(shim)
	s.until("it is a zombie", func() bool {
		data, err := os.ReadFile(filepath.Join("/proc", itoa(shim), "stat"))
		return err == nil && strings.Contains(string(data), ") Z ")
	})
	thaw()
	now := a.replaced(sess.ID, pid)
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" || now.Fence != sess.Fence+2 {
		t.Errorf("ended as %+v; it is %+v", e, now)
	}
	if id, err := proc.Identify(pid); err == nil && id.Liveness() == proc.Alive {
		t.Error("the agent of the dead one lives")
	}
	a.detach(sess.ID)
	s.quiet()
}

// What carries the home's token and is on no record is ended when a supervisor starts. A session's process is on record.
func TestR9_AStrayBesideASession(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	home := s.records().HomeID()
	stray, theirs := s.carrying(home+".x-0123456789abcdef"), s.carrying("0"+home+".x-0123456789abcdef")
	a.again()
	s.until("the stray is gone", func() bool { return stray.Liveness() == proc.Dead })
	if theirs.Liveness() != proc.Alive || a.pid(sess.ID) != pid {
		t.Errorf("another home's is %v; the session's is %d, was %d", theirs.Liveness(), a.pid(sess.ID), pid)
	}
	if log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log")); !strings.Contains(string(log), "carries the token") {
		t.Errorf("it was not reported: %s", log)
	}
	a.detach(sess.ID)
	s.quiet()
}

// carrying is a process with a token, of which nothing else is known.
func (s *stage) carrying(token string) proc.Identity {
	s.t.Helper()
	c := exec.Command("sleep", "1000")
	c.Env, c.SysProcAttr = []string{"PINTLE_RUNTIME=" + token}, &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	id, err := proc.Identify(c.Process.Pid)
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Wait() }()
	s.t.Cleanup(func() { _ = c.Process.Kill(); <-done })
	return id
}

// Each state of ownership is told, with the command that leads on; what that does is done here.
func TestOwnership_SixStates(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	locks := filepath.Join(s.dir, "ch", "thread-writer-locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	c := s.creation()
	c.Environment["CODEX_HOME"], c.Restart = filepath.Join(s.dir, "ch"), "on-demand"
	sess := call[api.Session](a, api.MethodSessCreate, c)
	way := func(state, next string) {
		t.Helper()
		if now := a.owned(sess.ID, state); now.Ownership.Next != "pintle "+strings.ReplaceAll(next, "ID", sess.ID) {
			t.Errorf("%s: %+v", state, now.Ownership)
		}
	}
	sent, _ := a.send(sess.ID, "say one")
	way("live", "attach ID")

	thaw := s.freeze(s.shimOf(sess.ID)) // it is told to end and cannot
	b := s.join("b")
	stopped := make(chan error, 1)
	go func() {
		_, err := try[api.Controlled](b, api.MethodStop, api.Control{ID: sent.Execution})
		stopped <- err
	}()
	way("draining", "stop ID")
	thaw()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	way("free", "send ID PROMPT")

	other := s.locking(filepath.Join(locks, "T1.lock")) // which is not ours
	way("conflicted", "recover ID --probe")
	if now := a.get(sess.ID); !strings.Contains(now.Ownership.Reason, itoa(other.Process.Pid)) {
		t.Errorf("%+v, it is process %d", now.Ownership, other.Process.Pid)
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "failed" || e.Cause == nil || e.Cause.Code != "busy" || *e.ExitCode != 7 {
		t.Errorf("ended as %+v, %+v", e, e.Cause)
	}
	_ = other.Process.Kill()
	way("free", "send ID PROMPT")

	if _, e := a.send(sess.ID, "say three"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}

	thaw = s.freeze(s.shimOf(sess.ID))
	a.again()
	way("uncertain", "recover ID --probe")
	thaw()
	way("live", "attach ID")
	a.detach(sess.ID)
	way("free", "send ID PROMPT")
	s.quiet()
}

// Whoever has not started the agent tells a conflict too, if its environment is known.
func TestOwnership_ConflictedUnderAnotherSupervisor(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	locks := filepath.Join(s.dir, ".codex", "thread-writer-locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	sess := a.openAs("on-demand")
	sent, _ := a.send(sess.ID, "say one")
	call[api.Controlled](a, api.MethodStop, api.Control{ID: sent.Execution})
	other := s.locking(filepath.Join(locks, "T1.lock"))
	a.owned(sess.ID, "conflicted")
	a.again()
	if now := a.owned(sess.ID, "conflicted"); now.Ownership.Next != "pintle recover "+sess.ID+" --probe" {
		t.Errorf("it is %+v", now.Ownership)
	}
	_ = other.Process.Kill()
	a.owned(sess.ID, "free")
	a.detach(sess.ID)
	s.quiet()
}

// locking holds a lock until it is killed.
func (s *stage) locking(file string) *exec.Cmd {
	s.t.Helper()
	unlock, err := state.TryLock(file)
	if err != nil {
		s.t.Fatal(err)
	}
	unlock()
	c := exec.Command("flock", "-n", "-F", file, "sleep", "1000")
	c.Env = []string{"PATH=/usr/bin:/bin"}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Wait() }()
	s.t.Cleanup(func() { _ = c.Process.Kill(); <-done })
	s.until("it is locked", func() bool {
		unlock, err := state.TryLock(file)
		if err == nil {
			unlock()
		}
		return err != nil
	})
	return c
}

// While its runtime is replaced a session is reserved. A send that names its fence waits for the new one, an older one is
// stale (F7).
func TestF7_SendWhileTheReplacementResumes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	sess := a.open()
	a.send(sess.ID, "say one")
	was := a.get(sess.ID)
	s.touch("slow")
	s.slay(a.pid(sess.ID))
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	now := b.owned(sess.ID, "reserved")
	if now.Fence != was.Fence+2 || now.Ownership.Next != "pintle attach "+sess.ID || now.Conversation != "T1" {
		t.Errorf("it is %+v", now)
	}
	message := func(fence int64) api.Send {
		op := operation()
		op.ExpectedFence = must(json.Marshal(fence))
		return api.Send{Operation: op, Session: sess.ID, Text: "say two"}
	}
	e := a.refused(api.CodeStaleFence, api.MethodSessSend, message(was.Fence))
	if got := e.Data["currentFence"]; got != float64(now.Fence) {
		t.Errorf("refused with %+v, the fence is %d", e, now.Fence)
	}
	m := message(now.Fence)
	answered := make(chan error, 1)
	go func() {
		_, err := try[api.Sent](a, api.MethodSessSend, m)
		answered <- err
	}()
	s.until("it is stored", func() bool { return s.journalled(sess.ID, "message_stored") == 2 })
	if s.lines("prompts") != 1 {
		t.Error("it was handed over before the conversation stood")
	}
	s.without("slow")
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if e := a.over(m.OperationID); e.Outcome != "completed" || e.Fence != now.Fence || s.lines("prompts-T1") != 2 || s.lines("launches") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}
