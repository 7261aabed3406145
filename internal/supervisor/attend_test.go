package supervisor

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// climbFor takes the ladder's steps as they fall due.
func climbFor(t *testing.T, l *ladder, d time.Duration) {
	t.Helper()
	for end := time.After(d); ; {
		if err := l.climb(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-l.timer():
		case <-end:
			return
		}
	}
}

func wantSignals(t *testing.T, f *fakeShim, want ...signalled) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, f.heard(), cmp.AllowUnexported(signalled{})); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
}

const sec = time.Second

// A stop and an interrupt climb by deadline, each step once (K5).
func TestK5_Ladder(t *testing.T) {
	tests := map[string]struct {
		action string
		want   []signalled
	}{
		"stop":      {"stop", []signalled{{syscall.SIGTERM, 0}, {syscall.SIGKILL, 5 * sec}}},
		"interrupt": {"interrupt", []signalled{{syscall.SIGINT, 0}, {syscall.SIGTERM, 10 * sec}, {syscall.SIGKILL, 15 * sec}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f := stand(t).attached(t, nil)
				r.want(t, tt.action, "enough")
				climbFor(t, newLadder(r), time.Minute)
				wantSignals(t, f, tt.want...)
				st := r.saved(t)
				if c := st.Cancel; c == nil || c.Action != tt.action || c.Reason != "enough" || c.DispatchedAt == nil || c.ConfirmedAt != nil {
					t.Errorf("on record: %+v", c)
				}
			})
		})
	}
}

// Nothing is signalled without a wish, and nothing while the agent is being started.
func TestK5_NothingIsSignalledUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := stand(t).attached(t, nil)
		l := newLadder(r)
		climbFor(t, l, 24*time.Hour)
		r.want(t, "stop", "")
		runtime := r.st.Runtime
		r.st.Runtime = nil
		climbFor(t, l, time.Hour)
		wantSignals(t, f)
		r.st.Runtime = runtime
		climbFor(t, l, sec)
		wantSignals(t, f, signalled{syscall.SIGTERM, 25 * time.Hour})
	})
}

// A supervisor that takes over what was dispatched does not repeat the first step: it has its time anew (K5).
func TestK5_SuccessorClimbsOn(t *testing.T) {
	tests := map[string][]signalled{
		"stop":      {{syscall.SIGKILL, 5 * sec}},
		"interrupt": {{syscall.SIGTERM, 10 * sec}, {syscall.SIGKILL, 15 * sec}},
		"deadline":  {{syscall.SIGKILL, 5 * sec}},
	}
	for action, want := range tests {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f := stand(t).attached(t, nil)
				now := time.Now()
				r.st.Cancel = &api.Cancel{Action: action, RequestedAt: now, DispatchedAt: &now}
				if err := r.rt.note(true, event("cancel_dispatched", map[string]any{"action": action})); err != nil {
					t.Fatal(err)
				}
				climbFor(t, newLadder(r), time.Minute)
				wantSignals(t, f, want...)
			})
		})
	}
}

// One that died between the record of the dispatch and its journal had signalled nothing: all steps are to come.
func TestK5_SuccessorTakesTheFirstStepThatWasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := stand(t).attached(t, nil)
		now := time.Now()
		r.st.Cancel = &api.Cancel{Action: "stop", RequestedAt: now, DispatchedAt: &now}
		climbFor(t, newLadder(r), time.Minute)
		wantSignals(t, f, signalled{syscall.SIGTERM, 0}, signalled{syscall.SIGKILL, 5 * sec})
	})
}

// A stop goes over an interrupt and begins at its own first step; nothing goes over a stop (K1, K5).
func TestK5_StopGoesOverInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := stand(t).attached(t, nil)
		l := newLadder(r)
		r.want(t, "interrupt", "first")
		climbFor(t, l, 2*sec)
		r.want(t, "interrupt", "second")
		climbFor(t, l, sec)
		r.want(t, "stop", "third")
		climbFor(t, l, sec)
		r.want(t, "interrupt", "fourth")
		r.want(t, "stop", "fifth")
		climbFor(t, l, time.Minute)
		wantSignals(t, f, signalled{syscall.SIGINT, 0}, signalled{syscall.SIGTERM, 3 * sec}, signalled{syscall.SIGKILL, 8 * sec})
		if c := r.saved(t).Cancel; c.Action != "stop" || c.Reason != "third" {
			t.Errorf("on record: %+v", c)
		}
	})
}

// What cannot be recorded is not dispatched, is not remembered, and is dispatched once it can be, once (K2, K4).
func TestK4_WhatCannotBeRecordedIsNotDispatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := stand(t).attached(t, nil)
		l := newLadder(r)
		r.want(t, "stop", "enough")
		unblock := r.blockStatus(t)
		for range 3 {
			if err := l.climb(); err == nil || r.st.Cancel != nil {
				t.Fatalf("error %v, remembered as %+v", err, r.st.Cancel)
			}
			time.Sleep(sec)
		}
		wantSignals(t, f)
		unblock()
		climbFor(t, l, 4*sec)
		wantSignals(t, f, signalled{syscall.SIGTERM, 3 * sec})
	})
}

// The idle deadline counts from the last sign of life, and has its own name (D1).
func TestD1_IdleDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := stand(t).attached(t, func(o *record.Spec) { o.Limits.IdleTimeout = 3 * sec })
		l := newLadder(r)
		climbFor(t, l, 2*sec)
		l.heard()
		climbFor(t, l, 2*sec)
		wantSignals(t, f)
		climbFor(t, l, 20*sec)
		wantSignals(t, f, signalled{syscall.SIGTERM, 5 * sec}, signalled{syscall.SIGKILL, 10 * sec})
		if c := r.saved(t).Cancel; c.Action != "idle" || c.Reason != "idle deadline: 3s" {
			t.Errorf("on record: %+v", c)
		}
	})
}

// What should end the agent, in the order of precedence.
func TestLadder_Wanted(t *testing.T) {
	passed, ahead := proc.BootClock(), proc.BootClock()+time.Hour
	tests := map[string]struct {
		cancel, stopping, idle bool
		deadline               time.Duration
		want                   string
	}{
		"nothing":                    {want: ""},
		"a deadline ahead":           {deadline: ahead, want: ""},
		"a deadline that has passed": {deadline: passed, want: "deadline"},
		"idle":                       {idle: true, want: "idle"},
		"idle before the deadline":   {idle: true, deadline: ahead, want: "idle"},
		"deadline over idle":         {idle: true, deadline: passed, want: "deadline"},
		"supervise stop over both":   {stopping: true, idle: true, deadline: passed, want: "shutdown"},
		"the user's over all":        {cancel: true, stopping: true, idle: true, deadline: passed, want: "stop"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := stand(t).claimed(t, func(o *record.Spec) {
				o.Limits.Timeout, o.Desired.Deadline = time.Minute, tt.deadline
				if tt.idle {
					o.Limits.IdleTimeout = time.Nanosecond
				}
			})
			if tt.cancel {
				r.want(t, "stop", "enough")
			}
			r.s.stopping = tt.stopping
			l := newLadder(r)
			l.last = time.Now().Add(-time.Second)
			got := ""
			if c := l.wanted(); c != nil {
				got = c.Action
			}
			if got != tt.want {
				t.Errorf("%q is wanted, want %q", got, tt.want)
			}
		})
	}
}

// A wish changes something if nothing was dispatched, or if it is more than an interrupt.
func TestLadder_Supersedes(t *testing.T) {
	now := time.Now()
	tests := []struct {
		was  *api.Cancel
		want string
		yes  bool
	}{
		{nil, "interrupt", true},
		{&api.Cancel{Action: "stop"}, "interrupt", true}, // it was never dispatched
		{&api.Cancel{Action: "interrupt", DispatchedAt: &now}, "interrupt", false},
		{&api.Cancel{Action: "interrupt", DispatchedAt: &now}, "stop", true},
		{&api.Cancel{Action: "interrupt", DispatchedAt: &now}, "shutdown", true},
		{&api.Cancel{Action: "interrupt", DispatchedAt: &now}, "deadline", true},
		{&api.Cancel{Action: "stop", DispatchedAt: &now}, "interrupt", false},
		{&api.Cancel{Action: "stop", DispatchedAt: &now}, "shutdown", false},
		{&api.Cancel{Action: "idle", DispatchedAt: &now}, "stop", false},
		{&api.Cancel{Action: "shutdown", DispatchedAt: &now}, "stop", false},
	}
	for _, tt := range tests {
		r := &run{}
		r.st.Cancel = tt.was
		if got := (&ladder{r: r}).supersedes(&api.Cancel{Action: tt.want}); got != tt.yes {
			t.Errorf("%s after %+v: %v, want %v", tt.want, tt.was, got, tt.yes)
		}
	}
}
