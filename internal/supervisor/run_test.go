package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// ended checks how the status on record says that an attempt ended.
func ended(t *testing.T, r *run, outcome session.Outcome, code string) {
	t.Helper()
	st := r.saved(t)
	if st.Phase != string(session.Ended) || st.Outcome != string(outcome) || st.EndedAt == nil ||
		st.Cause == nil || st.Cause.Code != code || st.Runtime != nil {
		t.Errorf("on record: %s %s, cause %+v, want ended %s, %s", st.Phase, st.Outcome, st.Cause, outcome, code)
	}
}

// stepped takes one step that has to work.
func stepped(t *testing.T, r *run) (ended bool) {
	t.Helper()
	ended, err := r.step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// A new attempt has its ids on record before anything bears them, and keeps what there was before (X8).
func TestX8_ClaimFixesTheIds(t *testing.T) {
	r := stand(t).order(t, nil)
	if stepped(t, r) {
		t.Fatal("ended")
	}
	first := r.saved(t)
	if first.Phase != string(session.Claimed) || first.Attempt != 1 || first.Try != 1 || first.Fence != 1 ||
		first.Session == "" || first.Workspace == "" || first.RuntimeID == "" || first.BootID == "" {
		t.Errorf("claimed as %+v", first)
	}
	code := 1
	r.st.Outcome, r.st.ExitCode = string(session.Failed), &code
	if err := r.save(session.Ended); err != nil {
		t.Fatal(err)
	}
	if !stepped(t, r) {
		t.Fatal("an ended attempt was begun again")
	}
	if err := record.Retry(t.Context(), r.s.dir, r.folder, "", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	stepped(t, r)
	second := r.saved(t)
	if second.Attempt != 2 || second.Fence != 2 || second.Session != first.Session || second.Workspace != first.Workspace ||
		second.RuntimeID == first.RuntimeID || second.Outcome != "" || len(second.Attempts) != 1 {
		t.Errorf("claimed again as %+v", second)
	}
}

// A cancel before anything began: nothing starts (K3). A supervisor that is told to stop starts nothing (X10).
func TestK3_NothingStartsThatIsNotWantedAnyMore(t *testing.T) {
	for _, action := range []string{"stop", "interrupt"} {
		r := stand(t).claimed(t, nil)
		r.want(t, action, "changed my mind")
		if !stepped(t, r) {
			t.Errorf("%s: not ended", action)
		}
		ended(t, r, session.Cancelled, "cancelled")
		if c := r.saved(t).Cancel; c == nil || c.Reason != "changed my mind" || c.DispatchedAt != nil || c.ConfirmedAt == nil {
			t.Errorf("%s: on record: %+v", action, c)
		}
	}
	r := stand(t).claimed(t, nil)
	r.s.stopping = true
	if !stepped(t, r) {
		t.Error("not ended")
	}
	ended(t, r, session.HostDied, "stopped")
}

// What began under another boot cannot live here, and nothing of a copy's original can; what had begun nothing is
// given up in a copy alone.
func TestForeign(t *testing.T) {
	tests := []struct {
		moved, begun, otherBoot, want bool
	}{
		{false, false, false, false},
		{false, false, true, false},
		{false, true, false, false},
		{false, true, true, true},
		{true, false, false, true},
		{true, true, false, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			s := stand(t)
			r := s.claimed(t, nil)
			if tt.begun {
				r.intend(t)
			}
			if tt.otherBoot {
				r.st.BootID = "another"
			}
			if tt.moved {
				there := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(there, os.DirFS(s.dir.Path())); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(there, 0o700); err != nil {
					t.Fatal(err)
				}
				r.s = standIn(t, there)
			}
			if got := r.foreign(); got != tt.want {
				t.Errorf("foreign: %v, want %v", got, tt.want)
			}
		})
	}
}

// After a reboot what began is host_died, unless its end was on record before (architecture, "Reboot").
func TestP4_Reboot(t *testing.T) {
	reboot := func(t *testing.T, r *run) {
		t.Helper()
		r.intend(t)
		r.st.BootID = "another"
		if err := r.save(session.Running); err != nil {
			t.Fatal(err)
		}
	}
	r := stand(t).claimed(t, nil)
	reboot(t, r)
	if !stepped(t, r) {
		t.Error("not ended")
	}
	ended(t, r, session.HostDied, "host_died")

	r = stand(t).claimed(t, nil)
	reboot(t, r)
	r.put(t, shim.ExitFile(r.st.RuntimeID), shim.Exit{Version: record.Version, Code: 3})
	if !stepped(t, r) {
		t.Error("not ended")
	}
	ended(t, r, session.Failed, "agent_exited")
}

// A shim that is dead by its lock leaves one of these behind; none of them is begun again but the first two.
func TestSettleDead(t *testing.T) {
	id := &proc.Identity{PID: 1 << 30, StartTicks: 1, BootID: "b"}
	tests := map[string]struct {
		agent   *shim.Agent
		exit    *shim.Exit
		ended   bool
		outcome session.Outcome
		code    string
	}{
		"nothing":   {},
		"abandoned": {agent: &shim.Agent{State: shim.Abandoned}},
		"starting":  {agent: &shim.Agent{State: shim.Starting}, ended: true, outcome: session.Unknown, code: "shim_exited"},
		"running":   {agent: &shim.Agent{State: shim.Running, Agent: id}, ended: true, outcome: session.AgentDied, code: "shim_exited"},
		"refused": {agent: &shim.Agent{State: shim.Refused, Error: "no interpreter"}, ended: true,
			outcome: session.Failed, code: "config"},
		"exited": {agent: &shim.Agent{State: shim.Running, Agent: id}, exit: &shim.Exit{Code: 7}, ended: true,
			outcome: session.Failed, code: "agent_exited"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := stand(t).claimed(t, nil)
			r.intend(t)
			old := r.st.RuntimeID
			if tt.agent != nil {
				tt.agent.Version = record.Version
				r.put(t, shim.AgentFile(old), tt.agent)
			}
			if tt.exit != nil {
				tt.exit.Version = record.Version
				r.put(t, shim.ExitFile(old), tt.exit)
			}
			if got := stepped(t, r); got != tt.ended {
				t.Fatalf("ended: %v", got)
			}
			if tt.ended {
				ended(t, r, tt.outcome, tt.code)
				return
			}
			st := r.saved(t)
			if st.RuntimeID == old || st.Phase != string(session.Claimed) || st.Try != 1 {
				t.Errorf("goes on as %+v, behind %s", st, old)
			}
			if _, err := os.Stat(r.s.dir.Path("runtimes", old)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the runtime that was given up: %v", err)
			}
		})
	}
}

// A record that cannot be read settles nothing and begins nothing (case 18).
func TestCase18_UnreadableRecordsBlock(t *testing.T) {
	for _, file := range []func(string) string{shim.AgentFile, shim.ExitFile} {
		r := stand(t).claimed(t, nil)
		r.intend(t)
		r.put(t, shim.AgentFile(r.st.RuntimeID), shim.Agent{Version: record.Version, State: shim.Starting})
		if err := os.WriteFile(r.s.dir.Path(file(r.st.RuntimeID)), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := r.saved(t)
		if _, err := r.step(t.Context()); !blocked(err) || !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%s: error %v", file("x"), err)
		}
		if after := r.saved(t); after.RuntimeID != before.RuntimeID || after.Phase != before.Phase {
			t.Errorf("%s: became %+v", file("x"), after)
		}
	}
}

// A shim that could not be started is tried three times in all, 30 s apart, each under a runtime of its own, and
// the times are on record (B2).
func TestB2_ThreeTriesThirtySecondsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stand(t).claimed(t, nil)
		begin := time.Now()
		for try := 1; try <= 2; try++ {
			old := r.st.RuntimeID
			r.intend(t)
			done, err := r.failLaunch(errors.New("no such file"))
			if done || err != nil {
				t.Fatalf("try %d: %v, %v", try, done, err)
			}
			for !r.due(t.Context()) {
			}
			st := r.saved(t)
			next := begin.Add(time.Duration(try) * 30 * time.Second)
			if got := time.Now(); !got.Equal(next) {
				t.Errorf("try %d went on at %v, want %v", try, got.Sub(begin), next.Sub(begin))
			}
			c := st.Cause
			if c == nil || c.Code != "shim_exited" || !c.Retryable || c.Disposition != "retryable" || c.Try != try ||
				c.NextTryAt == nil || !c.NextTryAt.Equal(next) || c.Message != "no such file" {
				t.Errorf("try %d: on record: %+v", try, c)
			}
			if st.Try != try+1 || st.RuntimeID == old || st.Attempt != 1 {
				t.Errorf("try %d: goes on as %+v", try, st)
			}
		}
		if done, err := r.failLaunch(errors.New("no such file")); !done || err != nil {
			t.Fatalf("the last try: %v, %v", done, err)
		}
		ended(t, r, session.Failed, "shim_exited")
		if c := r.saved(t).Cause; c.Retryable || c.Disposition != "exhausted" || c.Try != 3 || c.NextTryAt != nil {
			t.Errorf("on record: %+v", c)
		}
	})
}

// A full disk is no try (case 20).
func TestCase20_AFullDiskIsNoTry(t *testing.T) {
	r := stand(t).claimed(t, nil)
	full := fmt.Errorf("write: %w", state.ErrFull)
	if done, err := r.failLaunch(full); done || !errors.Is(err, state.ErrFull) {
		t.Errorf("%v, %v", done, err)
	}
	if st := r.saved(t); st.Cause != nil || st.Try != 1 {
		t.Errorf("on record: %+v", st)
	}
	if waitKind(full) != "space" || waitKind(errors.New("other")) != "error" || blocked(full) {
		t.Error("a full disk is waited for")
	}
}

// The wait for the next try ends early for a cancel, for a stopping supervisor and for one that leaves, and not for being
// woken.
func TestB2_TheWaitEndsEarly(t *testing.T) {
	tests := map[string]struct {
		disturb func(t *testing.T, r *run, leave context.CancelFunc)
		after   time.Duration
	}{
		"woken":     {func(_ *testing.T, r *run, _ context.CancelFunc) { r.wake() }, 30 * time.Second},
		"cancelled": {func(t *testing.T, r *run, _ context.CancelFunc) { cancelQuietly(t, r); r.wake() }, time.Second},
		"stopping": {func(_ *testing.T, r *run, _ context.CancelFunc) {
			r.s.mu.Lock()
			r.s.stopping = true
			r.s.mu.Unlock()
			r.wake()
		}, time.Second},
		"leaving": {func(_ *testing.T, _ *run, leave context.CancelFunc) { leave() }, time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := stand(t).claimed(t, nil)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				begin, done := time.Now(), make(chan bool)
				next := begin.Add(30 * time.Second)
				r.st.Cause = &api.Cause{NextTryAt: &next}
				go func() { done <- r.due(ctx) }()
				time.Sleep(time.Second)
				tt.disturb(t, r, leave)
				if due := <-done; due || time.Since(begin) != tt.after {
					t.Errorf("went on after %v, due %v, want %v", time.Since(begin), due, tt.after)
				}
			})
		})
	}
}

// cancelQuietly records a wish as a verb does, who wakes nobody.
func cancelQuietly(t *testing.T, r *run) {
	t.Helper()
	if _, err := record.Cancel(t.Context(), r.s.dir, r.folder, api.Cancel{Action: "stop"}); err != nil {
		t.Error(err)
	}
}

// The journal decides: what it tells is never run again by any path, whatever the records say (B4).
func TestB4_TheJournalDecides(t *testing.T) {
	tests := map[string]struct {
		events  func(*run) []journal.Event
		fenced  bool
		outcome session.Outcome
	}{
		"nothing": {func(*run) []journal.Event { return nil }, false, ""},
		"another runtime was about to start": {func(*run) []journal.Event {
			return []journal.Event{event("runtime_started", map[string]any{"runtime": "x-other"})}
		}, false, ""},
		"this one was": {func(r *run) []journal.Event {
			return []journal.Event{event("runtime_started", map[string]any{"runtime": r.st.RuntimeID})}
		}, true, session.Unknown},
		"its verdict was told": {func(r *run) []journal.Event {
			return []journal.Event{event("turn_ended", map[string]any{"outcome": "completed", "exitCode": 0, "cause": map[string]any{"code": "told"}})}
		}, true, session.Completed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := stand(t).claimed(t, nil)
			if err := r.prepareSession(); err != nil {
				t.Fatal(err)
			}
			rt, err := r.openRuntime(environ.Environment{})
			if err != nil {
				t.Fatal(err)
			}
			if err := rt.note(true, tt.events(r)...); err != nil {
				t.Fatal(err)
			}
			rt.release()
			r.fresh = false // as another supervisor finds it
			fenced, done, err := r.fenced()
			if err != nil || fenced != tt.fenced || done != tt.fenced {
				t.Fatalf("fenced %v, ended %v, %v", fenced, done, err)
			}
			if st := r.saved(t); st.Outcome != string(tt.outcome) {
				t.Errorf("outcome %q, want %q", st.Outcome, tt.outcome)
			}
		})
	}
}

// remember looks at the events of its own attempt alone.
func TestRemember_OneAttempt(t *testing.T) {
	r := stand(t).claimed(t, nil)
	if err := r.prepareSession(); err != nil {
		t.Fatal(err)
	}
	rt, err := r.openRuntime(environ.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.release()
	say := func(text string) journal.Event {
		return journal.Event{Type: "agent_message_chunk", Data: command.Data([]byte(text))}
	}
	for attempt, text := range []string{"first ", "second ", "second again"} {
		r.st.Attempt = min(attempt+1, 2)
		if err := rt.note(true, say(text)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.remember()
	if err != nil || m.said != nil || string(m.text.Bytes()) != "second second again" {
		t.Errorf("remembers %q, %+v, %v", m.text.Bytes(), m.said, err)
	}
}
