package testscripts

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// ends are the turns' ends that a session's history has.
func (d *driver) ends(id string) (all []record.Verdict) {
	d.s.t.Helper()
	for _, row := range d.rows(id) {
		var v record.Verdict
		if row.Type == "turn_ended" && json.Unmarshal(row.Data, &v) == nil {
			all = append(all, v)
		}
	}
	return all
}

// A message that an agent may have, and has not confirmed, is unknown when that is gone; it is not given to the next one.
func TestR7_HandedOverAndUnconfirmedIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.freeze(pid) // it does not read what it is given
	sent := a.post(sess.ID, "say two")
	if sent.Delivery.HandedOverAt == nil || sent.Delivery.State != "pending" {
		t.Errorf("sent %+v", sent)
	}
	s.slay(pid)
	e := a.wait(sent.Execution)
	if e.Outcome != "unknown" || e.Delivery.State != "unknown" || e.Delivery.ConfirmedAt != nil {
		t.Errorf("ended as %+v, %+v", e, e.Delivery)
	}
	a.replaced(sess.ID, pid)
	if got := a.ends(sess.ID); len(got) != 2 || got[1].Outcome != "unknown" {
		t.Errorf("the history has the ends %+v", got)
	}
	if s.lines("prompts") != 1 || s.lines("launches") != 2 {
		t.Errorf("%d prompts, %d processes", s.lines("prompts"), s.lines("launches"))
	}
	repeat := api.Send{Operation: api.Operation{OperationID: sent.Execution}, Session: sess.ID, Text: "say two"}
	if again, err := try[api.Sent](a, api.MethodSessSend, repeat); err != nil || again.Execution != sent.Execution || s.lines("prompts") != 1 {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	a.detach(sess.ID)
	s.quiet()
}

// What does not go into the agent's input as a whole was not given: the agent dies with a part of the line in its pipe, and
// the next one gets it, once.
func TestR7_TheAgentDiesWhileItsInputIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.send(sess.ID, "say one")
	pid := a.pid(sess.ID)
	s.freeze(pid)
	text := "say " + strings.Repeat("0123456789abcdef", 1<<13) // more than a pipe holds
	op := operation()
	sent := make(chan error, 1)
	go func() {
		_, err := try[api.Sent](a, api.MethodSessSend, api.Send{Operation: op, Session: sess.ID, Text: text})
		sent <- err
	}()
	b := s.join("b")
	s.until("it is being written", s.writing)
	s.slay(pid)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	e := b.wait(op.OperationID)
	if e.Outcome != "completed" || e.Delivery.State != "accepted" {
		t.Errorf("ended as %+v, %+v", e, e.Delivery)
	}
	if got := s.prompted(); len(got) != 2 || got[1] != text {
		t.Errorf("%d prompts", len(got))
	}
	a.detach(sess.ID)
	s.quiet()
}

// writing reports whether a shim has it on record that it writes something of that size.
func (s *stage) writing() bool {
	found, _ := filepath.Glob(filepath.Join(s.home, "runtimes", "x-*", "stdin.jsonl"))
	for _, file := range found {
		if info, err := os.Stat(file); err == nil && info.Size() > 1<<17 {
			return true
		}
	}
	return false
}

// What an agent asks for lapses when it is gone.
func TestR7_APendingPermissionLapses(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent := a.post(sess.ID, "say one; ask ls")
	var asked string
	s.until("it asks", func() bool {
		e := call[api.Execution](a, api.MethodGet, api.Target{ID: sent.Execution})
		if len(e.Permissions) == 1 {
			asked = e.Permissions[0].ID
		}
		return asked != ""
	})
	pid := a.pid(sess.ID)
	s.slay(pid)
	if e := a.over(sent.Execution); e.Outcome != "agent_died" || len(e.Permissions) != 0 {
		t.Errorf("ended as %+v", e)
	}
	e := a.refused(api.CodeResolved, api.MethodAnswer, api.Answer{ID: asked, Decision: "allow"})
	if !strings.Contains(e.Message, "lapsed") || s.journalled(sess.ID, "permission_resolved") != 1 || s.lines("answers") != 0 {
		t.Errorf("refused with %+v", e)
	}
	a.replaced(sess.ID, pid)
	a.detach(sess.ID)
	s.quiet()
}

// A turn ends when its agent died, however much later that is taken in; and all that it said is taken in before: nothing
// that lay in the spool is lost.
func TestR7_SettledAtTheTimeOfTheExit(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent := a.post(sess.ID, "hold go; flood 3000; tool ls; hold never")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 1 })
	pid := a.pid(sess.ID)
	runtime := a.get(sess.ID).Ownership.Runtime.ID
	old := s.supervising(t)
	s.freeze(old.PID)
	s.touch("go")
	spool := filepath.Join(s.home, "runtimes", runtime, "spool")
	s.until("it is in the spool", func() bool {
		out, _ := exec.Command("grep", "-rc", "out of ls", spool).Output()
		return strings.Contains(string(out), ":1")
	})
	s.slay(pid)
	s.until("its exit is on record", func() bool { return exists(filepath.Join(s.home, "runtimes", runtime, "exit.json")) })
	died := time.Now()
	s.until("a while has passed", func() bool { return time.Since(died) > 1200*time.Millisecond })
	s.slay(old.PID)
	a.back()
	e := a.wait(sent.Execution)
	if e.Outcome != "agent_died" || e.EndedAt == nil || e.EndedAt.After(died) {
		t.Errorf("ended as %+v at %v, its agent died before %v", e, e.EndedAt, died)
	}
	ends := a.ends(sess.ID)
	if len(ends) != 1 || ends[0].Outcome != "agent_died" || ends[0].EndedAt == nil || !ends[0].EndedAt.Equal(*e.EndedAt) {
		t.Errorf("the history has the ends %+v", ends)
	}
	text, tools := "", 0
	for _, row := range a.rows(sess.ID) {
		var data struct{ Content struct{ Text string } }
		_ = json.Unmarshal(row.Data, &data)
		switch row.Type {
		case "agent_message_chunk":
			text += data.Content.Text
		case "tool_call":
			tools++
		}
	}
	if strings.Count(text, " ") != 3000 || !strings.HasSuffix(text, "2999 ") || tools != 1 {
		t.Errorf("%d pieces were taken in, %d tools", strings.Count(text, " "), tools)
	}
	a.replaced(sess.ID, pid)
	if got := s.journalled(sess.ID, "turn_ended"); got != 1 {
		t.Errorf("it ended %d times", got)
	}
	a.detach(sess.ID)
	s.quiet()
}

// With no space left nothing can be settled. The process is gone all the same and who held the session is free to leave;
// once there is space it is settled, once.
func TestR7_SettledOnAFullDisk(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.mount("8m")
	s.serving()
	a := s.join("a")
	sess, busy := a.open(), a.open()
	a.send(sess.ID, "say one")
	sent := a.post(busy.ID, "say two; hold go")
	s.until("its turn runs", func() bool { return s.lines("prompts") == 2 })
	pid, other := a.pid(sess.ID), a.pid(busy.ID)
	free := s.fill()
	s.slay(pid)
	s.slay(other)
	for _, id := range []string{sess.ID, busy.ID} {
		a.comes(id, "its runtime is not live", func(s api.Session) bool { return s.Ownership.State != "live" })
	}
	_, err := try[api.Detached](a, api.MethodSessDetach, api.Detach{Session: sess.ID})
	if got := a.get(sess.ID); len(got.Leases) != 0 && err == nil {
		t.Errorf("given up, %v: %+v", err, got)
	}
	free()
	if e := a.wait(sent.Execution); e.Outcome != "agent_died" {
		t.Errorf("ended as %+v", e)
	}
	a.owned(sess.ID, "free")
	a.replaced(busy.ID, other)
	for _, id := range []string{sess.ID, busy.ID} {
		if s.journalled(id, "runtime_exited") != 1 || s.journalled(id, "turn_ended") != 1 {
			t.Errorf("%d exits, %d ends", s.journalled(id, "runtime_exited"), s.journalled(id, "turn_ended"))
		}
	}
	b := s.join("b")
	call[api.Attached](b, api.MethodSessAttach, api.Attach{Operation: operation(), Session: sess.ID, Mode: "exclusive"})
	if _, e := b.send(sess.ID, "say three"); e.Outcome != "completed" || e.Conversation == "" {
		t.Errorf("ended as %+v", e)
	}
	b.detach(sess.ID)
	a.detach(busy.ID)
	s.quiet()
}

// mount has the state directory be a file system of that size.
func (s *stage) mount(size string) {
	s.t.Helper()
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0700,size="+size, "pintle", s.home).Run(); err != nil {
		s.t.Skip("needs the right to mount a tmpfs")
	}
	s.t.Cleanup(func() {
		_ = killAll(s.home)
		if exec.Command("umount", s.home).Run() != nil {
			_ = exec.Command("umount", "-l", s.home).Run()
		}
	})
}

// fill leaves no space in the state directory, until free is called.
func (s *stage) fill() (free func()) {
	s.t.Helper()
	name := filepath.Join(s.home, "filler")
	f, err := os.Create(name)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 4096); err == nil; {
		_, err = f.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			s.t.Fatal(err)
		}
	}
}
