package testscripts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// left is a session whose agent's process we closed: nobody's, and the conversation is known. Nothing starts, and nothing is
// in its history but what was said, now, later and with another supervisor.
func (d *driver) left(id, history string) {
	d.s.t.Helper()
	look := func(when string) {
		d.s.t.Helper()
		now := d.owned(id, "free")
		if now.Conversation != "T1" || now.Ownership.Runtime != nil || now.Restart != nil && (now.Restart.NextAt != nil || now.Restart.Parked != "") {
			d.s.t.Errorf("%s it is %+v, %+v, %+v", when, now, now.Ownership, now.Restart)
		}
		if got := d.kinds(id); got != history {
			d.s.t.Errorf("%s the history has %s", when, got)
		}
		if d.s.lines("launches") != 1 {
			d.s.t.Errorf("%s there were %d processes", when, d.s.lines("launches"))
		}
	}
	look("at once")
	d.s.ticks()
	look("later")
	d.again()
	d.s.ticks()
	look("with another supervisor")
}

// An exit that we asked for starts nothing, also not later, also with a lease held, and is no row of the history.
func TestR3_ExitsThatWeAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(d *driver, id, key string)
		held int
	}{
		"detach of the last client": {func(d *driver, id, _ string) { d.detach(id) }, 0},
		"supervise stop":            {func(d *driver, _, _ string) { d.s.verb("supervise", "stop"); d.back() }, 1},
		"execution/stop": {func(d *driver, _, key string) {
			call[api.Controlled](d, api.MethodStop, api.Control{ID: key})
		}, 1},
		"goodbye": {func(d *driver, _, _ string) {
			_, _ = try[struct{}](d, api.MethodGoodbye, nil) // it is answered by the end of the connection
			d.c.Close()
			if err := d.connect(); err != nil {
				d.s.t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.open()
			sent, _ := a.send(sess.ID, "say one")
			c.ends(a, sess.ID, sent.Execution)
			a.left(sess.ID, aTurn)
			if now := a.get(sess.ID); len(now.Leases) != c.held {
				t.Errorf("it is held by %+v", now.Leases)
			}
			s.quiet()
		})
	}
}

// A turn that is stopped ends its process, and that is all.
func TestR3_AStoppedTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent := a.post(sess.ID, "say one; hold go")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 1 })
	call[api.Controlled](a, api.MethodStop, api.Control{ID: sent.Execution})
	if e := a.wait(sent.Execution); e.Outcome != "cancelled" {
		t.Errorf("ended as %+v", e)
	}
	a.left(sess.ID, aTurn)
	s.quiet()
}

// What is archived goes, and does not come back by itself.
func TestR3_Archive(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent, _ := a.send(sess.ID, "say one")
	s.verb("archive", sent.Execution)
	a.left(sess.ID, aTurn)
	if now := a.get(sess.ID); now.State != "archived" {
		t.Errorf("it is %+v", now)
	}
	a.refused(api.CodeArchived, api.MethodSessSend, api.Send{Operation: operation(), Session: sess.ID, Text: "say two"})
	s.quiet()
}

// A process that is kept for a while when nobody holds it is closed when that is over.
func TestR3_IdleTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	c := s.creation()
	c.WarmMs = 200
	sess := call[api.Session](a, api.MethodSessCreate, c)
	a.send(sess.ID, "say one")
	a.detach(sess.ID)
	a.left(sess.ID, aTurn)
	s.quiet()
}

// The exit of an idle process that nobody asked for is no row either, whatever follows from it.
func TestR3_AnIdleProcessLeavesByItself(t *testing.T) {
	for _, policy := range []string{"never", "on-demand", "on-crash"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a := s.join("a")
			sess := a.openAs(policy)
			a.send(sess.ID, "say one")
			pid := a.pid(sess.ID)
			s.slay(pid)
			s.until("its exit is known", func() bool { return s.journalled(sess.ID, "runtime_exited") == 1 })
			if policy == "on-crash" {
				a.replaced(sess.ID, pid)
			}
			a.detach(sess.ID)
			a.owned(sess.ID, "free")
			if got := a.kinds(sess.ID); got != aTurn {
				t.Errorf("the history has %s", got)
			}
			s.quiet()
		})
	}
}

// An agent that dies while we close it has left as we wanted: its shim stands still so that it can.
func TestR3_ExitWithinOurOwnClose(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent, _ := a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	thaw := s.freeze(s.shimOf(sess.ID))
	b := s.join("b")
	stopped := make(chan error, 1)
	go func() {
		_, err := try[api.Controlled](b, api.MethodStop, api.Control{ID: sent.Execution})
		stopped <- err
	}()
	a.owned(sess.ID, "draining")
	s.slay(pid)
	if now := a.get(sess.ID); now.Ownership.State != "draining" || s.journalled(sess.ID, "runtime_closing") != 1 {
		t.Errorf("it is %+v", now.Ownership)
	}
	thaw()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	a.left(sess.ID, aTurn)
	s.quiet()
}

// The intent to close is on record before the close: who comes after a supervisor that died behind it takes the exit for
// asked.
func TestR3_TheSupervisorIsKilledWhileItCloses(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent, _ := a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.crash = "kill:supervisor.closing@" + filepath.Join(s.dir, "flag")
	a.again()
	s.crash = ""
	a.pid(sess.ID)
	if _, err := try[api.Controlled](a, api.MethodStop, api.Control{ID: sent.Execution}); err == nil {
		t.Error("the supervisor was not killed")
	}
	s.slay(pid)
	a.back()
	a.left(sess.ID, aTurn)
	if now := a.get(sess.ID); len(now.Leases) != 1 {
		t.Errorf("it is held by %+v", now.Leases)
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || !strings.HasPrefix(e.Conversation, "T1") {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}
