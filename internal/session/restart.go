package session

import (
	"fmt"
	"time"
)

// Policy says what becomes of a session whose runtime exits unasked (R2).
type Policy string

// The policies. An empty one is OnCrash.
const (
	Never    Policy = "never"     // nothing starts it but recover
	OnDemand Policy = "on-demand" // the next message starts it
	OnCrash  Policy = "on-crash"  // a new runtime is started while a client holds a lease
)

// How OnCrash restarts: the first at once, the others RestartDelay after the failure, MostRestarts in a row;
// StableFor of running sets the count back.
const (
	RestartDelay = 30 * time.Second
	MostRestarts = 3
	StableFor    = 10 * time.Minute
)

// Why a session is parked.
const (
	CrashLooping = "crash_looping"
	NotRestarted = "restart_never"
)

// Parked says why nothing starts a session's runtime until recover.
type Parked struct {
	Code  string `json:"code"`
	Cause string `json:"cause,omitempty"`
}

// Restart is what a session knows of its runtime's exits. It is recorded with the exit that it was made
// from, under the same lock: killed before, the exit is observed again and counts once; killed after, NextAt
// is due all the same.
type Restart struct {
	Count    int        `json:"count,omitempty"`    // restarts in a row that were scheduled
	FailedAt *time.Time `json:"failedAt,omitempty"` // the last exit nobody asked for
	NextAt   *time.Time `json:"nextAt,omitempty"`   // when the next runtime is to be started
	RunsFrom *time.Time `json:"runsFrom,omitempty"` // since when the conversation stands in a runtime
	Parked   *Parked    `json:"parked,omitempty"`
}

// Exit is the end of a session's runtime, or of the attempt to start one.
type Exit struct {
	Policy Policy
	Asked  bool // the intent to close it was recorded before
	Leased bool // a client holds a lease; an execution's does not count
	Cause  string
	At     time.Time // when it was observed
	Delay  time.Duration
	Most   int
}

// Exited is what follows from an exit (R2, R3). One that was asked for leaves nothing: no count, no timer,
// nothing parked.
func (r Restart) Exited(e Exit) Restart {
	if e.Asked {
		return Restart{}
	}
	next := Restart{Count: r.Count, FailedAt: &e.At, Parked: r.Parked}
	if r.RunsFrom != nil && e.At.Sub(*r.RunsFrom) >= StableFor {
		next.Count = 0
	}
	switch {
	case next.Parked != nil:
	case e.Policy == Never:
		next.Parked = &Parked{Code: NotRestarted, Cause: e.Cause}
	case e.Policy == OnDemand || !e.Leased:
	case next.Count >= e.Most:
		next.Parked = &Parked{Code: CrashLooping, Cause: e.Cause}
	default:
		next.schedule(e)
	}
	return next
}

func (r *Restart) schedule(e Exit) {
	at := e.At
	if r.Count > 0 {
		at = at.Add(e.Delay)
	}
	r.Count++
	r.NextAt = &at
}

// Started is recorded when the conversation stands in a new runtime, whoever had it started. The count stays
// until that has run for StableFor.
func (r Restart) Started(now time.Time) Restart {
	r.NextAt, r.RunsFrom = nil, &now
	return r
}

// Released is what is left when no client holds a lease any more: nothing is started for nobody, the next
// message does.
func (r Restart) Released() Restart {
	r.NextAt = nil
	return r
}

// Recovered is what recover leaves: nothing.
func (r Restart) Recovered() Restart { return Restart{} }

// Due reports whether a runtime is to be started now.
func (r Restart) Due(now time.Time) bool {
	return r.NextAt != nil && !now.Before(*r.NextAt)
}

// MayStart reports whether a message may start a runtime, and if not, why. Only recover leads out.
func (r Restart) MayStart() (ok bool, why string) {
	if r.Parked == nil {
		return true, ""
	}
	if r.Parked.Cause == "" {
		return false, r.Parked.Code
	}
	return false, fmt.Sprintf("%s: %s", r.Parked.Code, r.Parked.Cause)
}
