// Package session holds the rules of executions and sessions: outcomes, phases, claims, operations, what makes two
// orders equal. It is pure: no I/O, no clock, no goroutine, the standard library alone.
package session

import "fmt"

// Outcome is how an execution ended.
type Outcome string

// The outcomes. No other is ever recorded.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
	TimedOut  Outcome = "timed_out"
	Budget    Outcome = "budget"
	AgentDied Outcome = "agent_died"
	HostDied  Outcome = "host_died" // supervise stop, a reboot, a copied state directory
	Denied    Outcome = "denied"
	Unknown   Outcome = "unknown"
)

var exits = map[Outcome]int{
	Completed: 0, Failed: 1, TimedOut: 3, Denied: 5, Unknown: 8, Budget: 9,
	Cancelled: 13, AgentDied: 14, HostDied: 14,
}

// Exit is the exit code of an outcome. A failure to start an agent has its own (10), which its cause
// decides.
func (o Outcome) Exit() int {
	if code, ok := exits[o]; ok {
		return code
	}
	return 1
}

// Phase is how far an execution has come.
type Phase string

// The phases, in their order (X8). Each is recorded before the effect that it names.
const (
	Queued    Phase = "queued"
	Claimed   Phase = "claimed"
	Workspace Phase = "workspace"
	Started   Phase = "started"
	Prompted  Phase = "prompted"
	Running   Phase = "running"
	Waiting   Phase = "waiting"
	Ended     Phase = "ended"
)

// moves has the phases that may follow each. Ended is left only by a new attempt, which begins anew at
// claimed.
var moves = map[Phase][]Phase{
	"":        {Queued, Claimed},
	Queued:    {Claimed, Running, Ended},                             // running: in a process that was kept
	Claimed:   {Queued, Workspace, Started, Running, Waiting, Ended}, // queued: a supervisor died before anything was begun
	Workspace: {Started, Running, Waiting, Ended},
	Started:   {Prompted, Running, Waiting, Ended},
	Prompted:  {Running, Waiting, Ended},
	Running:   {Waiting, Ended},
	Waiting:   {Claimed, Workspace, Started, Running, Ended},
	Ended:     {Queued, Claimed},
}

// Transition returns to if an execution may go there from from. Staying is no move and always allowed.
func Transition(from, to Phase) (Phase, error) {
	if from == to {
		return to, nil
	}
	for _, next := range moves[from] {
		if next == to {
			return to, nil
		}
	}
	return from, fmt.Errorf("no execution goes from %q to %q", from, to)
}
