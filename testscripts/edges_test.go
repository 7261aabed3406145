package testscripts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
)

// A supervisor that stands still is ended by force. A session that is held, and a turn that runs, are where they were: nothing
// is started, given again or lost.
func TestOwnership_AFrozenSupervisorIsEndedByForce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	idle, busy := a.open(), a.open()
	a.send(idle.ID, "say one")
	sent := a.post(busy.ID, "say two; hold go; say three")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 2 })
	pid, other, was := a.pid(idle.ID), a.pid(busy.ID), a.get(busy.ID)
	old := s.supervising(t).Identity
	s.freeze(old.PID)
	s.touch("go") // nobody hears the rest
	c := s.command("supervise", "restart", "--force")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if old.Liveness() != proc.Dead {
		t.Error("the frozen one lives")
	}
	a.c.Close()
	if err := a.connect(); err != nil {
		t.Fatal(err)
	}
	if e := a.wait(sent.Execution); e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	now := a.get(busy.ID)
	if a.pid(idle.ID) != pid || a.pid(busy.ID) != other || now.Fence != was.Fence || len(now.Leases) != 1 || !now.Leases[0].Connected {
		t.Errorf("it was %+v and is %+v", was, now)
	}
	if got := a.kinds(busy.ID); got != "user_message_chunk agent_message_chunk agent_message_chunk turn_ended" || s.lines("prompts") != 2 || s.lines("launches") != 2 {
		t.Errorf("the history has %s; %d prompts, %d processes", got, s.lines("prompts"), s.lines("launches"))
	}
	a.detach(idle.ID)
	a.detach(busy.ID)
	s.quiet()
}

// A client that vanishes with an exclusive lease holds it as long as it may come back, also under another supervisor. Then
// its runtime goes, and another client has the session.
func TestOwnership_AClientVanishesWithItsLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	grace := int64(4000)
	a.grace = &grace
	a.c.Close()
	if err := a.connect(); err != nil {
		t.Fatal(err)
	}
	sess := a.open()
	a.send(sess.ID, "say one")
	a.c.Close() // and nothing more is heard of it
	b.comes(sess.ID, "it is away", func(s api.Session) bool { return len(s.Leases) == 1 && !s.Leases[0].Connected })
	b.again()
	e := b.refused(api.CodeOwned, api.MethodSessAttach, api.Attach{Operation: operation(), Session: sess.ID})
	owner, _ := e.Data["owner"].(map[string]any)
	if owner["client"] != "a" || owner["connected"] != false || owner["graceUntil"] == nil || owner["mode"] != "exclusive" {
		t.Errorf("refused with %+v", e)
	}
	if now := b.get(sess.ID); now.Ownership.State != "live" {
		t.Errorf("it is %+v", now)
	}
	now := b.owned(sess.ID, "free")
	if len(now.Leases) != 0 || now.Restart != nil && now.Restart.NextAt != nil {
		t.Errorf("it is %+v", now)
	}
	call[api.Attached](b, api.MethodSessAttach, api.Attach{Operation: operation(), Session: sess.ID, Mode: "exclusive"})
	if _, e := b.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" || s.lines("launches") != 2 {
		t.Errorf("ended as %+v", e)
	}
	b.detach(sess.ID)
	s.quiet()
}

// Case 5: a client gives up waiting for the answer to a send. The message is accepted all the same, and the repeat is told so.
func TestCase05_TheClientGivesUpASend(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	s.touch("slow")
	s.slay(a.pid(sess.ID)) // the send waits for the next process
	s.until("it is being resumed", func() bool { return s.lines("resuming") == 1 })
	m := api.Send{Operation: operation(), Session: sess.ID, Text: "say two"}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- a.c.Call(ctx, api.MethodSessSend, m, &api.Sent{}) }()
	s.until("it is stored", func() bool { return s.journalled(sess.ID, "message_stored") == 2 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("it was answered: %v", err)
	}
	s.without("slow")
	again := call[api.Sent](a, api.MethodSessSend, m)
	if e := a.over(m.OperationID); again.Execution != m.OperationID || e.Outcome != "completed" || s.lines("prompts-T1") != 2 {
		t.Errorf("repeated: %+v; ended as %+v", again, e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// Case 8: supervisor and shim died, and what is on record of the agent is another program by now: pid and start time are
// those of an innocent one. It is the runtime's token that counts: that one is neither taken for the agent nor signalled, and
// the session gets another.
func TestCase08_R1_TheSamePidAndStartTime(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid, host, runtime := a.pid(sess.ID), s.shimOf(sess.ID), a.get(sess.ID).Ownership.Runtime.ID
	innocent := s.carrying("another's")
	s.slay(s.supervising(t).PID)
	s.slay(host)
	if id, err := proc.Identify(pid); err == nil {
		s.until("its agent has left", func() bool { return id.Liveness() == proc.Dead })
	}
	s.damage(shim.AgentFile(runtime), func(text string) string {
		text = regexp.MustCompile(`"pid":\d+`).ReplaceAllString(text, fmt.Sprintf(`"pid":%d`, innocent.PID))
		text = regexp.MustCompile(`"pgid":\d+`).ReplaceAllString(text, fmt.Sprintf(`"pgid":%d`, innocent.PID))
		return regexp.MustCompile(`"startTicks":\d+`).ReplaceAllString(text, fmt.Sprintf(`"startTicks":%d`, innocent.StartTicks))
	})
	a.back()
	now := a.replaced(sess.ID, innocent.PID)
	if now.Ownership.Runtime.ID == runtime || now.Fence != sess.Fence+2 || innocent.Liveness() != proc.Alive {
		t.Errorf("it is %+v; the other program is %v", now, innocent.Liveness())
	}
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" || s.lines("launches") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
	if innocent.Liveness() != proc.Alive {
		t.Error("the other program was ended")
	}
}

// Case 28: an archived session takes nothing, and says what restores it. Then it goes on with its conversation.
func TestCase28_AnArchivedSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent, _ := a.send(sess.ID, "say one")
	m := api.Send{Operation: api.Operation{OperationID: sent.Execution}, Session: sess.ID, Text: "say one"}
	s.verb("archive", sent.Execution)
	now := a.owned(sess.ID, "free")
	if now.State != "archived" || now.ArchivedAt == nil {
		t.Errorf("it is %+v", now)
	}
	for method, params := range map[string]any{
		api.MethodSessSend:   api.Send{Operation: operation(), Session: sess.ID, Text: "say two"},
		api.MethodSessAttach: api.Attach{Operation: operation(), Session: sess.ID, TakeOver: true},
	} {
		if e := a.refused(api.CodeArchived, method, params); e.Next != "pintle workspace restore "+now.Workspace {
			t.Errorf("%s is refused with %+v", method, e)
		}
	}
	if again := call[api.Sent](a, api.MethodSessSend, m); again.Execution != sent.Execution { // the record wins
		t.Errorf("repeated: %+v", again)
	}
	s.verb("workspace", "restore", now.Workspace)
	if _, e := a.send(sess.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T1" || s.lines("prompts") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// Case 29: an agent that ignores the end of its input and SIGTERM. Who detaches does not wait for it; it is ended all the
// same, and a stop proves that.
func TestCase29_AnAgentThatIgnoresItsEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	program := "#!/bin/sh\ntrap '' TERM HUP\n" + filepath.Join(filepath.Dir(binary), "standin") + "\nwhile :; do sleep 1000; done\n"
	if err := os.WriteFile(filepath.Join(s.dir, "bin", "codex"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	s.serving()
	a := s.join("a")
	left, stopped := a.open(), a.open()
	pid, other := a.pid(left.ID), a.pid(stopped.ID)
	sent, _ := a.send(stopped.ID, "say one")
	a.detach(left.ID)
	if now := a.get(left.ID); len(now.Leases) != 0 {
		t.Errorf("it is %+v", now)
	}
	call[api.Controlled](a, api.MethodStop, api.Control{ID: sent.Execution})
	if id, err := proc.Identify(other); err == nil && id.Liveness() == proc.Alive {
		t.Error("it was stopped and lives")
	}
	for _, id := range []string{left.ID, stopped.ID} {
		a.owned(id, "free")
	}
	if id, err := proc.Identify(pid); err == nil && id.Liveness() == proc.Alive {
		t.Error("it was left and lives")
	}
	s.ticks()
	if s.lines("launches") != 2 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	a.detach(stopped.ID)
	s.quiet()
}

// Case 32: another process has the conversation when a session is to go on with it: that is said, with who it is, and nothing
// is parked for it.
func TestCase32_AnotherProcessHasTheConversation(t *testing.T) {
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
	a.send(sess.ID, "say one")
	s.slay(a.pid(sess.ID))
	a.owned(sess.ID, "free")
	other := s.locking(filepath.Join(locks, "T1.lock"))
	_, e := a.send(sess.ID, "say two")
	if *e.ExitCode != 7 || !strings.Contains(e.Cause.Message, fmt.Sprintf("process %d, which is not pintle's", other.Process.Pid)) {
		t.Errorf("ended as %+v, %+v", e, e.Cause)
	}
	if now := a.owned(sess.ID, "conflicted"); now.State != "ready" {
		t.Errorf("it is %+v", now)
	}
	_ = other.Process.Kill()
	a.owned(sess.ID, "free")
	if _, e := a.send(sess.ID, "say three"); e.Outcome != "completed" || e.Conversation != "T1" || s.lines("prompts") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// Case 34: a message comes to the agent byte for byte, whatever is in it.
func TestCase34_MessagesByteForByte(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	want := []string{
		"-x begins with a dash", " spaces around \n", "\"quotes\" 'and' `more` \\ $HOME <&>", "line\u2028separator\u2029\x7f\x00\x1b[0m",
		"\u00e9 e\u0301 \U0001f600", strings.Repeat("0123456789abcdef\u2028\n", 1<<16)[:1<<20],
	}
	for _, text := range want {
		if _, e := a.send(sess.ID, text); e.Outcome != "completed" {
			t.Errorf("ended as %+v", e)
		}
	}
	got := s.prompted()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("message %d is not what was sent: %.100q", i, want[i])
		}
	}
	a.detach(sess.ID)
	s.quiet()
}

// Sessions that share a process lose it together, and each goes on by its own policy: the death is one of each.
func TestR2_SharedProcessDies(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sessions := map[string]api.Session{}
	for _, policy := range []string{"on-crash", "on-demand", "never"} {
		c := s.creation()
		c.Share, c.Restart = true, policy
		sessions[policy] = call[api.Session](a, api.MethodSessCreate, c)
		a.send(sessions[policy].ID, "say "+policy)
	}
	crash, demand, never := sessions["on-crash"].ID, sessions["on-demand"].ID, sessions["never"].ID
	pid := a.pid(crash)
	if a.pid(demand) != pid || a.pid(never) != pid || s.lines("launches") != 1 {
		t.Fatalf("%d processes", s.lines("launches"))
	}
	s.slay(pid)
	a.replaced(crash, pid)
	a.parked(never)
	if now := a.owned(demand, "free"); now.State != "ready" || now.Restart == nil || now.Restart.FailedAt == nil {
		t.Errorf("it is %+v", now)
	}
	s.ticks()
	if s.lines("launches") != 2 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	for id, conversation := range map[string]string{crash: "T1", demand: "T2"} {
		if _, e := a.send(id, "say two"); e.Outcome != "completed" || e.Conversation != conversation {
			t.Errorf("ended as %+v", e)
		}
	}
	for _, id := range []string{crash, demand, never} {
		if want := aTurn + " " + aTurn; id != never && a.kinds(id) != want || id == never && a.kinds(id) != aTurn {
			t.Errorf("the history has %s", a.kinds(id))
		}
		a.detach(id)
	}
	s.quiet()
}
