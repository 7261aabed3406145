package record

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
)

// dispatched is a cancel that was; wished one that was not yet.
func dispatched(action string) *api.Cancel {
	at := time.Unix(1, 0)
	return &api.Cancel{Action: action, Reason: "because", DispatchedAt: &at}
}

func wished(action string) *api.Cancel { return &api.Cancel{Action: action, Reason: "because"} }

// An end that is on record is what it was, unless something was dispatched before.
func TestJudgeExit(t *testing.T) {
	tests := map[string]struct {
		exit    shim.Exit
		cancel  *api.Cancel
		outcome session.Outcome
		code    int
		cause   string // its code and its message
		status  int    // -1 for none
	}{
		"good":                        {shim.Exit{}, nil, session.Completed, 0, ": ", 0},
		"another status":              {shim.Exit{Code: 42}, nil, session.Failed, 1, "agent_exited: exit status 42", 42},
		"a signal":                    {shim.Exit{Signal: "KILL"}, nil, session.Failed, 1, "agent_exited: ended by SIGKILL", -1},
		"never ran":                   {shim.Exit{Code: -1, Error: "no such file"}, nil, session.Failed, 10, "config: no such file", -1},
		"never ran, though cancelled": {shim.Exit{Code: -1, Error: "no such file"}, wished("stop"), session.Failed, 10, "config: no such file", -1},
		"a wish is not a cancel":      {shim.Exit{}, wished("stop"), session.Completed, 0, ": ", 0},
		"stopped":                     {shim.Exit{Signalled: true, Signal: "TERM"}, dispatched("stop"), session.Cancelled, 13, "cancelled: because", -1},
		"stopped, with a good end":    {shim.Exit{Signalled: true}, dispatched("stop"), session.Cancelled, 13, "cancelled: because", 0},
		"stopped, and ended before":   {shim.Exit{}, dispatched("stop"), session.Completed, 0, ": ", 0},
		"stopped, and failed before":  {shim.Exit{Code: 1}, dispatched("stop"), session.Failed, 1, "agent_exited: exit status 1", 1},
		"interrupted":                 {shim.Exit{Signalled: true, Code: 130}, dispatched("interrupt"), session.Cancelled, 13, "cancelled: because", 130},
		"deadline":                    {shim.Exit{Signalled: true, Signal: "TERM"}, dispatched("deadline"), session.TimedOut, 3, "timeout: because", -1},
		"idle":                        {shim.Exit{Signalled: true, Signal: "TERM"}, dispatched("idle"), session.TimedOut, 3, "timeout: because", -1},
		"held by the shim alone": {shim.Exit{Signal: "KILL", Deadline: true}, nil, session.TimedOut, 3,
			"timeout: run deadline, held by the shim: no supervisor was there", -1},
		"supervise stop": {shim.Exit{Signalled: true, Signal: "TERM"}, dispatched("shutdown"), session.HostDied, 14, "stopped: because", -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := JudgeExit(tt.exit, tt.cancel)
			status := -1
			if v.Cause.Status != nil {
				status = *v.Cause.Status
			}
			if v.Outcome != tt.outcome || v.ExitCode != tt.code || v.Cause.Code+": "+v.Cause.Message != tt.cause || status != tt.status {
				t.Errorf("%s, exit code %d, cause %+v, status %d", v.Outcome, v.ExitCode, v.Cause, status)
			}
		})
	}
}

// Of an agent whose shim was killed only its identity on record says that it ran; without, nobody knows.
func TestJudgeLost(t *testing.T) {
	id := &proc.Identity{PID: 1}
	tests := map[string]struct {
		agent   shim.Agent
		cancel  *api.Cancel
		outcome session.Outcome
		code    int
	}{
		"being started":              {shim.Agent{State: shim.Starting}, nil, session.Unknown, 8},
		"ran":                        {shim.Agent{State: shim.Running, Agent: id}, nil, session.AgentDied, 14},
		"refused":                    {shim.Agent{State: shim.Refused, Error: "no such file"}, nil, session.Failed, 10},
		"ran, and was being stopped": {shim.Agent{State: shim.Running, Agent: id}, dispatched("stop"), session.Cancelled, 13},
		"ran, past its deadline":     {shim.Agent{State: shim.Running, Agent: id}, dispatched("deadline"), session.TimedOut, 3},
	}
	for name, tt := range tests {
		if v := JudgeLost(tt.agent, tt.cancel); v.Outcome != tt.outcome || v.ExitCode != tt.code {
			t.Errorf("%s: %s, exit code %d, cause %+v", name, v.Outcome, v.ExitCode, v.Cause)
		}
	}
}

// A cause has at most 2,000 characters, whole ones (B2).
func TestB2_CauseIsCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("é", 2000), strings.Repeat("é", 2001)} {
		got := Cause("c", text).Message
		if n := utf8.RuneCountInString(got); n != min(2000, utf8.RuneCountInString(text)) || !strings.HasPrefix(text, got) {
			t.Errorf("%d characters became %d", utf8.RuneCountInString(text), n)
		}
	}
}
