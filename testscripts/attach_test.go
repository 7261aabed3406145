package testscripts

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// sitDown attaches at a terminal to the session of a run that has said one.
func (s *stage) sitDown(args ...string) *seat {
	s.t.Helper()
	s.verb("run", "--id", "k", "-a", "codex", "say one")
	p := seated(s, s.command(append([]string{"attach", "k"}, args...)...))
	p.shows("pintle: attached to s-", 1)
	return p
}

// id is that of the session of a run.
func (s *stage) sessionOf(key string) string {
	s.t.Helper()
	out, _ := s.quietly("show", "--field", "session", key)
	return strings.TrimSpace(out)
}

// touch makes a file for which the agent waits.
func (s *stage) there(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// What was said last is shown, a line that is typed is a message, and Ctrl-D leaves: the lease is gone, the session goes on.
func TestAttach_TypedLinesAreMessages(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.shows("> say one\none\n", 1)
	p.types("say two; tool ls -l; say three\r")
	p.shows("\ntwo\n", 1)
	p.shows("* ls -l\n", 1)
	p.shows("\nthree\n", 1)
	p.shows("-- completed\n", 2)
	p.types("//no command\r")
	p.shows("said 3\n", 1)
	p.types("/help\r")
	p.shows("Ctrl-C interrupts the turn, Ctrl-D leaves", 1)
	p.types("/nothing\r")
	p.shows("pintle: /nothing is no command", 1)
	p.types("\x04")
	p.leaves(0)
	if got := s.join("a"); len(call[api.Session](got, api.MethodSessGet, api.SessionTarget{Session: "k"}).Leases) != 0 {
		t.Error("the lease is still there")
	}
	if data, _ := os.ReadFile(filepath.Join(s.work, "prompts")); !strings.HasSuffix(string(data), "\"/no command\"\n") {
		t.Errorf("prompts: %s", data)
	}
	s.quiet()
}

// What comes is written above the line that is being typed, which stays as it is.
func TestAttach_WhatComesDoesNotGarbleTheLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.types("hold go; say two\r")
	s.until("the turn runs", func() bool { return exists(filepath.Join(s.work, "busy")) })
	p.types("say th")
	p.shows("say th", 1)
	s.there("go")
	p.shows("two\n-- completed\n> say th", 1)
	p.types("ree\r")
	p.shows("\nthree\n", 1)
	p.types("\x04")
	p.leaves(0)
	s.quiet()
}

// The first Ctrl-C interrupts the turn that runs, a second one at once leaves.
func TestAttach_CtrlCInterruptsTheTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.types("hold never\r")
	s.until("the turn runs", func() bool { return exists(filepath.Join(s.work, "busy")) })
	p.types("\x03")
	p.shows("-- cancelled", 1)
	p.types("say two\r")
	p.shows("\ntwo\n", 1)
	p.types("\x03\x03")
	p.leaves(130)
	s.quiet()
}

// What is asked is answered there, and a message goes into the turn that runs.
func TestAttach_AnswersAndSteers(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.types("ask ls; steer\r")
	p.shows("-- codex asks to run ls (it must): /allow p-", 1)
	_, after, _ := strings.Cut(p.screen(), ": /allow ")
	id, _, _ := strings.Cut(after, ",")
	p.types("/allow " + id + "\r")
	p.shows("ran ls\n", 1)
	p.types("/steer turn left\r")
	p.shows("steered turn left\n", 1)
	p.shows("-- completed", 2)
	p.types("\x04")
	p.leaves(0)
	s.quiet()
}

// The supervisor is killed in the middle of a turn: who is attached comes back as the same client, with the same lease, and
// misses nothing and sees nothing twice.
func TestC1_AttachComesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown("--exclusive")
	p.types("say two; hold go; say three\r")
	p.shows("\ntwo\n", 1)
	s.killSupervisor()
	p.shows("pintle: back again", 1)
	s.there("go")
	p.shows("\nthree\n", 1)
	p.types("say four\r")
	p.shows("\nfour\n", 1)
	p.shows("\ntwo\n", 1)
	leases := call[api.Session](s.join("a"), api.MethodSessGet, api.SessionTarget{Session: "k"}).Leases
	if len(leases) != 1 || leases[0].Mode != "exclusive" || !leases[0].Connected {
		t.Errorf("leases %+v", leases)
	}
	p.types("\x04")
	p.leaves(0)
	if got := s.launches("k"); s.lines("prompts") != 3 {
		t.Errorf("%d prompts, %d", s.lines("prompts"), got)
	}
	s.quiet()
}

// Who was away for so long that nobody knows him any more comes back as a new client, and attaches once more.
func TestC1_AttachComesBackAsANewClient(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.types("say two\r")
	p.shows("\ntwo\n", 1)
	signals := func(sig os.Signal) {
		if err := p.verb.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signals(syscall.SIGSTOP)
	s.killSupervisor()
	records, _ := filepath.Glob(filepath.Join(s.home, "clients", "*.json"))
	for _, path := range records {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	signals(syscall.SIGCONT)
	p.shows("pintle: back again", 1)
	p.types("say three\r")
	p.shows("\nthree\n", 1)
	leases := call[api.Session](s.join("a"), api.MethodSessGet, api.SessionTarget{Session: "k"}).Leases
	if len(records) != 1 || len(leases) != 1 || !leases[0].Connected {
		t.Errorf("%d records, leases %+v", len(records), leases)
	}
	p.types("\x04")
	p.leaves(0)
	s.quiet()
}

// Whose lease is taken over is told by whom, and only looks on.
func TestL9_AttachIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown("--exclusive")
	b := s.join("bob")
	b.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Session: "k"})
	call[api.Attached](b, api.MethodSessAttach, api.Attach{Operation: operation(), Session: "k", TakeOver: true})
	p.shows("pintle: client bob has taken session "+s.sessionOf("k")+" over, exclusive; read-only from here on", 1)
	p.types("say no\r")
	p.shows("over, exclusive\n", 1+1)
	b.send("k", "say bobs")
	p.shows("> say bobs\n-- the agent's process was started\nbobs\n", 1)
	p.types("\x04")
	p.leaves(0)
	if data, _ := os.ReadFile(filepath.Join(s.work, "prompts")); strings.Contains(string(data), "say no") {
		t.Errorf("prompts: %s", data)
	}
	call[api.Detached](b, api.MethodSessDetach, api.Detach{Session: "k"})
	s.quiet()
}

// A parked session is named by ls, and takes no message, also over a supervisor's death; recover leads it out.
func TestR2_RecoverOfAParkedSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	one, _ := a.send(sess.ID, "say one")
	s.touch("other")
	s.slay(a.pid(sess.ID))
	a.comes(sess.ID, "it is parked", func(s api.Session) bool { return s.State == "parked" })
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	s.killSupervisor()
	if out, _ := s.quietly("session", "ls"); !strings.Contains(out, " parked ") {
		t.Errorf("session ls: %s", out)
	}
	for _, args := range [][]string{{"send", "--id", "k", sess.ID, "say two"}, {"send", "--id", "k", "--when", "interrupt", sess.ID, "say two"}} {
		if _, said := s.verb(args...); !strings.Contains(said, "is parked: crash_looping") || !strings.Contains(said, "hint: pintle recover "+sess.ID) {
			t.Errorf("%v: %s", args, said)
		}
	}
	if out, said := s.verb("recover", one.Execution); out != "ended\n" || !strings.Contains(said, "pintle recover "+sess.ID) {
		t.Errorf("recover of a run of it: %s, %s", out, said)
	}
	s.without("other")
	out, said := s.verb("recover", sess.ID)
	if out != "free\n" || !strings.Contains(said, "hint: pintle send "+sess.ID) {
		t.Errorf("recover: %s, %s", out, said)
	}
	if out, _ := s.verb("send", "--id", "k", sess.ID, "say two"); out != "two\n" {
		t.Errorf("send: %s", out)
	}
	s.quiet()
}

// Who is attached and wants nothing starts no supervisor behind one that was stopped; what is typed does.
func TestR5_AttachStartsNothingBehindAStop(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	s.verb("supervise", "stop")
	p.shows("pintle: the supervisor has left", 1)
	s.ticks()
	if out, _ := s.quietly("supervise", "status"); !strings.Contains(out, "not running") {
		t.Errorf("supervise status: %s", out)
	}
	p.types("say two\r")
	p.shows("\ntwo\n", 1)
	p.types("\x04")
	p.leaves(0)
	s.quiet()
}

// What was typed is carried out though who typed it has left: nobody else has the environment that it needs.
func TestAttach_WhatWasTypedGoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	p.types("say idle\r\x04")
	p.leaves(0)
	s.until("it was done", func() bool { return s.lines("prompts") == 2 })
	p = seated(s, s.command("attach", "k"))
	p.shows("pintle: attached to s-", 1)
	p.types("hold go; die\r")
	s.until("the turn runs", func() bool { return exists(filepath.Join(s.work, "busy")) })
	p.types("say behind\r\x04")
	p.leaves(0)
	s.there("go")
	s.until("it was done", func() bool { return s.lines("prompts") == 4 })
	s.verb("wait", s.sessionOf("k"))
	s.quiet()
}

// Who comes while something is asked sees the question, and what others put into a turn.
func TestAttach_ComesLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	first := s.sitDown()
	first.types("ask ls; steer\r")
	first.shows("-- codex asks to run ls (it must): /allow p-", 1)
	p := seated(s, s.command("attach", "k"))
	p.shows("-- codex asks to run ls (it must): /allow p-", 1)
	p.shows("pintle: attached to s-", 1)
	p.types("/allow\r")
	p.shows("pintle: /allow needs something behind it", 1)
	_, after, _ := strings.Cut(p.screen(), ": /allow ")
	id, _, _ := strings.Cut(after, ",")
	p.types("/allow " + id + "\r")
	p.shows("ran ls\n", 1)
	p.types("/steer turn left\r")
	p.shows("steered turn left\n", 1)
	first.shows("> turn left\n", 1)
	if strings.Contains(p.screen(), "> turn left\n") {
		t.Errorf("what was typed here is told, too:\n%s", p.screen())
	}
	for _, seat := range []*seat{p, first} {
		seat.types("\x04")
		seat.leaves(0)
	}
	s.quiet()
}

// What is longer than a line of the wire is told cut, and what comes behind it is told, too.
func TestAttach_LongerThanALine(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	p := s.sitDown()
	if err := os.WriteFile(filepath.Join(s.work, "long"), []byte("say two; "+strings.Repeat("x", 5<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.join("a")
	call[api.Subscribed](a, api.MethodSessSubscribe, api.Subscribe{Session: "k"})
	s.verb("send", "--id", "long", "-f", "long", "k")
	a.saw("user_message_chunk", func(ev journal.Event) bool {
		return ev.Execution == "long" && len(ev.Data) < 300<<10 && strings.Contains(string(ev.Data), `"cut":true`)
	})
	a.saw("turn_ended", func(ev journal.Event) bool { return ev.Execution == "long" })
	p.types("\x04")
	p.leaves(0)
	s.quiet()
}
