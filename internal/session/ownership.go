package session

import "fmt"

// Ownership is the state of a session's runtime. It is derived from records and never stored.
type Ownership string

// The states.
const (
	Free       Ownership = "free"
	Reserved   Ownership = "reserved"
	Live       Ownership = "live"
	Draining   Ownership = "draining"
	Uncertain  Ownership = "uncertain"
	Conflicted Ownership = "conflicted"
)

// Shim is what was found of a runtime's shim.
type Shim string

// What may be found. Only its lock, taken, proves a shim dead (R8).
const (
	ShimNone       Shim = ""           // no trace of one: it was not started yet
	ShimAlive      Shim = "alive"      // holds its lock and answered
	ShimDead       Shim = "dead"       // proven
	ShimSilent     Shim = "silent"     // holds its lock and does not answer
	ShimUnreadable Shim = "unreadable" // what it left cannot be read
)

// Facts are what the records and the processes say of a session's runtime.
type Facts struct {
	Intent      bool // a runtime is on record as the session's
	Shim        Shim
	Started     bool // the conversation stands in it, or its agent's process is on record
	Closing     bool // the intent to close it is on record
	Exited      bool // its exit is on record and not settled yet
	OtherWriter string
	Runtimes    int // that name this session
}

// The reasons of an ownership that has several.
const (
	ReasonSilent      = "shim_silent"
	ReasonUnreadable  = "runtime_unreadable"
	ReasonMissing     = "runtime_missing"
	ReasonUnclaimed   = "runtime_unclaimed"
	ReasonOtherWriter = "other_writer"
	ReasonSeveral     = "several_runtimes"
)

// Own decides who owns a session's runtime. The first line that fits counts:
//
//	another writer, or several runtimes   conflicted   nobody may drive it until one is left
//	no intent, no runtime                 free         the next message may reserve
//	no intent, but a runtime              uncertain    its record was lost: it may live
//	exit on record                        draining     to be folded to the end, settled, forgotten
//	shim dead                             draining     the same: its lock was taken, nobody can wake it
//	shim silent or unreadable             uncertain    no proof of anything (R8), whatever was intended
//	closing                               draining     alive and told to end, or never started
//	not started                           reserved     its shim or its conversation is being opened
//	started, no trace of a shim           uncertain    the runtime's directory is gone, its agent may live
//	started, shim alive                   live
func Own(f Facts) (o Ownership, reason string) {
	switch {
	case f.OtherWriter != "":
		return Conflicted, ReasonOtherWriter
	case f.Runtimes > 1:
		return Conflicted, ReasonSeveral
	case !f.Intent && f.Runtimes == 0:
		return Free, ""
	case !f.Intent:
		return Uncertain, ReasonUnclaimed
	case f.Exited, f.Shim == ShimDead:
		return Draining, ""
	}
	return ownLive(f)
}

// ownLive is the half of the table in which nothing is proven dead.
func ownLive(f Facts) (o Ownership, reason string) {
	switch {
	case f.Shim == ShimSilent:
		return Uncertain, ReasonSilent
	case f.Shim == ShimUnreadable:
		return Uncertain, ReasonUnreadable
	case f.Closing:
		return Draining, ""
	case !f.Started:
		return Reserved, ""
	case f.Shim != ShimAlive:
		return Uncertain, ReasonMissing
	}
	return Live, ""
}

// Way is the command that leads out of a state, or on from it. No file is edited.
func Way(o Ownership, reason, id string) string {
	verb := map[Ownership]string{
		Free:       "send %s PROMPT",
		Reserved:   "attach %s",
		Live:       "attach %s",
		Draining:   "stop %s",
		Uncertain:  "recover %s --probe",
		Conflicted: "recover %s --probe",
	}[o]
	if o == Conflicted && reason == ReasonSeveral {
		verb = "stop %s" // all of them: which one is the owner nobody can say
	}
	if verb == "" {
		verb = "show %s"
	}
	return fmt.Sprintf("pintle "+verb, id)
}
