package record

import (
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
)

// Verdict is how an attempt ended, as turn_ended says it and the status repeats. Verbs that look at an end
// before a supervisor has taken it in judge it by the same rules.
type Verdict struct {
	Outcome  session.Outcome `json:"outcome"`
	ExitCode int             `json:"exitCode"`
	Cause    *api.Cause      `json:"cause,omitempty"`
	// EndedAt is when its process left, of a turn that ended with that: it may be taken in long after.
	EndedAt *time.Time `json:"endedAt,omitempty"`
}

// JudgeExit is the verdict on an end that the shim has recorded. cancel is what was dispatched, if anything; it
// counts if a step of it reached the agent: what had ended by then ended by itself.
func JudgeExit(exit shim.Exit, cancel *api.Cancel) Verdict {
	if exit.Error != "" {
		v := Judge(session.Ending{Refused: true}, Cause("config", exit.Error), cancel)
		v.ExitCode = api.CodeNoAgent.Exit()
		return v
	}
	if !exit.Signalled {
		cancel = nil
	}
	code := exit.Code
	why := &api.Cause{Status: &code, Signal: exit.Signal}
	if exit.Code != 0 || exit.Signal != "" {
		why.Code = "agent_exited"
		why.Message = fmt.Sprintf("exit status %d", exit.Code)
	}
	if exit.Signal != "" {
		why.Status, why.Message = nil, "ended by SIG"+exit.Signal
	}
	return Judge(session.Ending{
		Began: true, Proven: true, Identified: true, Exit: exit.Code, Signal: exit.Signal, Deadline: exit.Deadline,
	}, why, cancel)
}

// JudgeLost is the verdict on an agent whose shim was killed.
func JudgeLost(agent shim.Agent, cancel *api.Cancel) Verdict {
	if agent.State == shim.Refused {
		return JudgeExit(shim.Exit{Error: agent.Error, Code: -1}, cancel)
	}
	why := Cause("shim_exited", "its shim was killed; its processes were ended")
	if agent.Agent == nil {
		why.Message = "its shim was killed while it was being started: it may have run"
	}
	return Judge(session.Ending{Began: true, Identified: agent.Agent != nil}, why, cancel)
}

// Judge is the verdict on an ending together with what had been dispatched. It completes why.
func Judge(e session.Ending, why *api.Cause, cancel *api.Cancel) Verdict {
	if cancel != nil && cancel.DispatchedAt != nil {
		switch cancel.Action {
		case "deadline", "idle", "first_event":
			e.Deadline = true
			why.Code, why.Message = "timeout", cancel.Reason
		case "start", "frame": // the agent could not be used
			e.Refused = true
			why.Code, why.Message = map[string]string{"start": "timeout", "frame": "frame_too_large"}[cancel.Action], cancel.Reason
		case "shutdown":
			e.HostDied = true
			why.Code, why.Message = "stopped", cancel.Reason
		default:
			e.Cancelled = true
			why.Code, why.Message = "cancelled", cancel.Reason
		}
	} else if e.Deadline {
		why.Code, why.Message = "timeout", "run deadline, held by the shim: no supervisor was there"
	}
	outcome := session.Judge(e)
	return Verdict{Outcome: outcome, ExitCode: outcome.Exit(), Cause: why}
}

// Cause is the reason for an end, its message cut to what a record holds (B2).
func Cause(code, message string) *api.Cause { return &api.Cause{Code: code, Message: clip(message)} }

// maxMessage is the longest cause in characters (B2).
const maxMessage = 2000

func clip(s string) string {
	if runes := []rune(s); len(runes) > maxMessage {
		return string(runes[:maxMessage])
	}
	return s
}
