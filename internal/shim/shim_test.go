package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

func TestShim_RunsToItsEnd(t *testing.T) {
	r := launch(t, `printf out; printf err >&2; exit 7`, func(c *Config) { c.Stdin = false })
	agent := r.next(t, "start", started).Started
	if agent.State != Running || agent.Agent == nil || agent.PGID != agent.Agent.PID {
		t.Errorf("%+v", agent)
	}
	exit := r.next(t, "exit", ended).Exit
	if exit.Code != 7 || exit.Signal != "" || exit.Out != 3 || exit.Err != 3 || len(exit.Left) > 0 {
		t.Errorf("%+v", exit)
	}
	if out, err := r.spool(t, Out), r.spool(t, Err); out != "out" || err != "err" {
		t.Errorf("%q, %q", out, err)
	}
	for range r.Events() { // until the shim has left
	}
	recorded, err := state.Read[Exit](r.dir, ExitFile("x"))
	if err != nil || recorded.Code != 7 || recorded.Out != 3 {
		t.Errorf("%+v, %v", recorded, err)
	}
	if agent.Agent.Liveness() != proc.Dead {
		t.Error("the agent lives")
	}
}

func TestShim_WhatCannotStartIsAnEnd(t *testing.T) {
	r := launch(t, "", func(c *Config) { c.Path = "/none" })
	if exit := r.next(t, "exit", ended).Exit; exit.Error == "" || exit.Code != -1 {
		t.Errorf("%+v", exit)
	}
	if a, err := state.Read[Agent](r.dir, AgentFile("x")); err != nil || a.State != Refused || a.Agent != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestCase9_GrandchildrenAreGoneAtTheEnd(t *testing.T) {
	r := launch(t, `trap "" TERM HUP; setsid sleep 1000 & (env -i setsid sleep 1000 &) ; exit 0`, func(c *Config) { c.Stdin = false })
	r.next(t, "start", started)
	if exit := r.next(t, "exit", ended).Exit; exit.Code != 0 || len(exit.Left) > 0 {
		t.Errorf("%+v", exit)
	}
	if found, err := proc.WithToken(TokenVariable, func(v string) bool { return v == r.cfg.Token }); err != nil || len(found) > 0 {
		t.Errorf("left %+v, %v", found, err)
	}
}

func TestShim_SignalEndsTheGroup(t *testing.T) {
	r := launch(t, `sleep 1000 & wait`, nil)
	r.next(t, "start", started)
	if err := r.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := r.next(t, "exit", ended).Exit; exit.Signal != "KILL" {
		t.Errorf("%+v", exit)
	}
}

func TestShim_DeadlineWithoutAController(t *testing.T) {
	r := launch(t, `exec sleep 1000`, func(c *Config) { c.Deadline = int64(proc.BootClock()) })
	agent := r.next(t, "start", started).Started
	r.Close()
	if err := proc.Await(t.Context(), agent.Shim); err != nil {
		t.Fatal(err)
	}
	if exit, err := state.Read[Exit](r.dir, ExitFile("x")); err != nil || !exit.Deadline || exit.Signal != "KILL" {
		t.Errorf("%+v, %v", exit, err)
	}
	unlock, err := Dead(r.dir, "x")
	if err != nil {
		t.Fatalf("the lock of a dead shim: %v", err)
	}
	unlock()
}

// While a shim lives its lock is held, whatever becomes of its controller.
func TestShim_HoldsItsLock(t *testing.T) {
	r := launch(t, `exec cat`, nil)
	r.next(t, "start", started)
	if _, err := Dead(r.dir, "x"); !errors.Is(err, state.ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
	if err := r.End(); err != nil {
		t.Fatal(err)
	}
	if exit := r.next(t, "exit", ended).Exit; exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

func TestShim_GivesTheEnvironmentToAnAdopter(t *testing.T) {
	r := launch(t, `exec cat`, nil)
	r.next(t, "start", started)
	second, err := r.adopt(t, 2)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range r.Events() {
		}
	}()
	env, err := second.Environment(make(chan time.Time))
	if err != nil || len(env) != 2 || env[1] != TokenVariable+"="+r.cfg.Token {
		t.Errorf("%q, %v", env, err)
	}
	_ = second.End()
	second.next(t, "exit", ended)
}

// The demand that gives this project its point: a supervisor that was superseded cannot reach the agent.
func TestFence_NotOneByteOfAnOlderController(t *testing.T) {
	r := launch(t, `exec cat > "$1"`, nil)
	r.next(t, "start", started)
	if err := r.Write("1", 0, []byte("first\n")); err != nil {
		t.Fatal(err)
	}
	if w := r.next(t, "answer", written).Written; w.Error != "" || w.Op != "1" {
		t.Fatalf("%+v", w)
	}
	second, err := r.adopt(t, 3)
	if err != nil {
		t.Fatal(err)
	}
	if second.Hello.Started == nil || second.Hello.Started.Agent == nil {
		t.Errorf("hello %+v", second.Hello)
	}
	_ = r.Write("2", 0, []byte("stale\n")) // it may find the connection cut
	for range r.Events() {                 // it is
	}
	if _, err := r.adopt(t, 2); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a lower epoch: %v, want ErrSuperseded", err)
	}
	// The same operation again is answered and not carried out.
	for _, op := range []string{"1", "3", "3"} {
		data := map[string]string{"1": "first\n", "3": "third\n"}[op]
		if err := second.Write(op, 0, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if w := second.next(t, "answer", written).Written; w.Op != op || w.Error != "" {
			t.Errorf("%+v", w)
		}
	}
	if err := second.Write("3", 0, []byte("other\n")); err != nil {
		t.Fatal(err)
	}
	if w := second.next(t, "answer", written).Written; w.Error != errConflict.Error() {
		t.Errorf("%+v, want a conflict", w)
	}
	_ = second.End()
	second.next(t, "exit", ended)
	got, err := os.ReadFile(r.dir.Path("written"))
	if err != nil || string(got) != "first\nthird\n" {
		t.Errorf("the agent read %q, %v", got, err)
	}
	inputs, err := ReadInputs(r.dir.Path(StdinFile("x")))
	if err != nil || len(inputs) != 2 || !inputs[0].Written || inputs[0].Op != "1" || !inputs[1].Written || inputs[1].Op != "3" {
		t.Errorf("recorded %+v, %v", inputs, err)
	}
}

// What an older controller has sent and the shim has taken from its socket, or has not yet, and what stands behind a write that
// the agent does not read: none of it is carried out once another controller has come.
func TestFence_NotWhatWaitedInTheSocketOrBehindAWrite(t *testing.T) {
	r := launch(t, `until test -e "$1.go"; do sleep 0.01; done; exec cat > "$1"`, nil)
	r.next(t, "start", started)
	first := bytes.Repeat([]byte("0123456789abcde\n"), 1<<14) // more than a pipe holds
	if err := r.Write("1", 0, first); err != nil {
		t.Fatal(err)
	}
	for inputs := []Input(nil); len(inputs) == 0; { // until the first is begun
		inputs, _ = ReadInputs(r.dir.Path(StdinFile("x")))
	}
	for i := range 200 {
		if err := r.Write(fmt.Sprint("stale", i), 0, bytes.Repeat([]byte("stale\n"), 100)); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.End()
	second, err := r.adopt(t, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Write("2", 0, []byte("second\n")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.dir.Path("written.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := second.next(t, "answer", written).Written; w.Op != "2" || w.Error != "" {
		t.Errorf("%+v", w)
	}
	_ = second.End()
	second.next(t, "exit", ended)
	got, err := os.ReadFile(r.dir.Path("written"))
	if want := string(first) + "second\n"; err != nil || string(got) != want {
		t.Errorf("the agent read %d bytes, want %d; it ends with %q, %v", len(got), len(want), got[max(0, len(got)-100):], err)
	}
	inputs, err := ReadInputs(r.dir.Path(StdinFile("x")))
	if err != nil || len(inputs) != 2 || inputs[0].Op != "1" || inputs[1].Op != "2" {
		t.Errorf("recorded %d inputs, %v", len(inputs), err)
	}
}

// SIGKILL of the shim: the lock is free, the agent is on record and nothing is said of its end.
func TestShim_KilledLeavesProof(t *testing.T) {
	r := launch(t, `exec cat`, nil)
	agent := r.next(t, "start", started).Started
	if err := proc.Signal(agent.Shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := proc.Await(t.Context(), agent.Shim); err != nil {
		t.Fatal(err)
	}
	unlock, err := Dead(r.dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	a, err := state.Read[Agent](r.dir, AgentFile("x"))
	if err != nil || a.Agent == nil || *a.Agent != *agent.Agent {
		t.Errorf("%+v, %v", a, err)
	}
	if err := proc.Await(t.Context(), *agent.Agent); err != nil { // its input has ended
		t.Error(err)
	}
}

// A shim that is killed before it knows its agent's pid has said by which pipes the agent's processes are found.
func TestCase9_PipesAreOnRecordBeforeTheFork(t *testing.T) {
	t.Setenv(crash.Variable, "kill:shim.forked@"+t.TempDir()+"/passes")
	r := launch(t, `exec env -i sleep 1000`, func(c *Config) { c.Stdin = false })
	for range r.Events() { // until the shim is dead
	}
	a, err := state.Read[Agent](r.dir, AgentFile("x"))
	if err != nil || a.State != Starting || len(a.Pipes) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	left, err := proc.KillAll(t.Context(), func() ([]proc.Identity, error) { return proc.WithPipe(a.Pipes...) })
	if err != nil || len(left) > 0 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// E5: the values of secrets are known to the shim alone when its supervisor has died. So the end waits for an
// adopter, who is told it with the hello, and leaves when that one has taken it in.
func TestE5_AnEndWaitsForAnAdopter(t *testing.T) {
	r := launch(t, `until test -e "$1"; do sleep 0.01; done; echo out`, func(c *Config) { c.Hold = true })
	self := r.next(t, "start", started).Started.Shim
	r.Close()
	for range r.Events() {
	}
	if err := os.WriteFile(r.dir.Path("written"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := state.Read[Exit](r.dir, ExitFile("x")); err == nil {
			break
		}
	}
	second, err := r.adopt(t, 2)
	if err != nil {
		t.Fatal(err)
	}
	if exit := second.Hello.Exit; exit == nil || exit.Out != 4 {
		second.next(t, "exit", ended) // it was between its record and its word
	}
	if _, err := second.Environment(make(chan time.Time)); err != nil {
		t.Error(err)
	}
	if err := second.Ack(4, 0); err != nil {
		t.Error(err)
	}
	if err := proc.Await(t.Context(), self); err != nil {
		t.Error(err)
	}
}

// E5: who is answered after an ack knows that no byte of what he has taken in is left.
func TestE5_AnAnswerAfterAnAckProvesIt(t *testing.T) {
	r := launch(t, `echo out; echo err >&2; exec cat`, nil)
	r.next(t, "all that it says", said(4, 4))
	if err := r.Ack(4, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Environment(make(chan time.Time)); err != nil {
		t.Fatal(err)
	}
	dir := r.dir.Path(SpoolDir("x"))
	if diff := cmp.Diff(map[string]string{segmentFile(Out, 4): "", segmentFile(Err, 4): ""}, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := r.Write("1", 4, []byte("more\n")); err != nil {
		t.Fatal(err)
	}
	r.next(t, "what it says then", said(9, 4))
	if got := readSpool(t, dir, Out, 4); string(got) != "more\n" {
		t.Errorf("%q", got)
	}
	_ = r.End()
	r.next(t, "exit", ended)
}

// A shim that is killed while it drops what was acknowledged: what is left tells the length of the stream.
func TestE5_KilledWhileItDrops(t *testing.T) {
	for point, left := range map[string]map[string]string{
		"shim.spool.copied":  {segmentFile(Out, 0): "out\n", "." + Out: "\n"},
		"shim.spool.begun":   {segmentFile(Out, 0): "out\n", segmentFile(Out, 3): "\n"},
		"shim.spool.dropped": {segmentFile(Out, 3): "\n"},
	} {
		t.Run(point, func(t *testing.T) {
			t.Setenv(crash.Variable, "kill:"+point+"@"+t.TempDir()+"/passes")
			r := launch(t, `echo out; exec cat`, nil)
			var agent *Agent // told before what it says, or after
			all := false
			r.next(t, "start, and all that it says", func(e Event) bool {
				if e.Started != nil {
					agent = e.Started
				}
				all = all || said(4, 0)(e)
				return agent != nil && all
			})
			if err := r.Ack(3, 0); err != nil {
				t.Fatal(err)
			}
			for range r.Events() { // until the shim is dead
			}
			dir := r.dir.Path(SpoolDir("x"))
			if diff := cmp.Diff(left, contents(t, dir)); diff != "" {
				t.Error(diff)
			}
			if got := readSpool(t, dir, Out, 3); SpoolEnd(dir, Out) != 4 || string(got) != "\n" {
				t.Errorf("%q, up to %d", got, SpoolEnd(dir, Out))
			}
			if err := proc.Await(t.Context(), *agent.Agent); err != nil { // its input has ended
				t.Error(err)
			}
		})
	}
}

// Whoever has settled the end removes the runtime's directory, and may die before he could say so.
func TestE5_AnEndThatWasTakenInIsNotWaitedFor(t *testing.T) {
	r := launch(t, `exit 0`, func(c *Config) { c.Hold = true })
	self := r.next(t, "start", started).Started.Shim
	r.next(t, "exit", ended)
	r.Close()
	if err := os.Rename(r.dir.Path("runtimes", "x"), r.dir.Path("runtimes", ".x")); err != nil {
		t.Fatal(err)
	}
	if err := proc.Await(t.Context(), self); err != nil {
		t.Error(err)
	}
}

// Two processes have one conversation at no instant, and the next one has it as soon as the end is told.
func TestCase02_ConversationHasOneProcess(t *testing.T) {
	guarded := func(c *Config) { c.Guard = GuardFile("c") }
	first := launch(t, `exec cat`, guarded)
	first.next(t, "start", started)
	second := launchIn(t, first.dir, "y", `exec cat`, guarded)
	if exit := second.next(t, "exit", ended).Exit; !exit.Busy || exit.Error == "" || exit.Code != -1 {
		t.Errorf("%+v", exit)
	}
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	first.next(t, "exit", ended)
	third := launchIn(t, first.dir, "z", `exit 3`, guarded)
	if exit := third.next(t, "exit", ended).Exit; exit.Busy || exit.Code != 3 {
		t.Errorf("%+v", exit)
	}
}
