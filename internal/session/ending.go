package session

// Ending is all that decides how an attempt of a command ended.
type Ending struct {
	Began      bool   // it may have run
	Proven     bool   // its exit is on record
	Exit       int    // status, if it exited
	Signal     string // that ended it, if one did
	Refused    bool   // it could not be started
	Cancelled  bool   // a cancel was dispatched before its end
	Deadline   bool   // a deadline was dispatched before its end
	HostDied   bool   // another boot, another machine, or supervise stop
	Identified bool   // a process is on record
}

// Judge is the outcome of an ending. What was asked for beats how the process went: a command that is told
// to end may well exit 0.
func Judge(e Ending) Outcome {
	switch {
	case e.HostDied && !e.Proven:
		return HostDied
	case e.Refused:
		return Failed
	case e.Cancelled:
		return Cancelled
	case e.Deadline:
		return TimedOut
	case e.HostDied:
		return HostDied
	case e.Proven && e.Signal == "" && e.Exit == 0:
		return Completed
	case e.Proven:
		return Failed
	case e.Identified:
		return AgentDied
	case e.Began:
		return Unknown
	}
	return Failed
}
