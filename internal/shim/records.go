package shim

import (
	"time"

	"github.com/pintle/pintle/internal/proc"
)

// Config is all that a shim needs. It comes over the inherited connection, never on a command line, since
// it holds the agent's environment.
type Config struct {
	Runtime    string   `json:"runtime"`
	Home       string   `json:"home"`   // the state directory
	Token      string   `json:"token"`  // value of PINTLE_RUNTIME
	Socket     string   `json:"socket"` // path of the socket for adopters
	Epoch      int64    `json:"epoch"`
	Path       string   `json:"path"`
	Args       []string `json:"args"`
	Env        []string `json:"env"`
	Dir        string   `json:"dir"`
	Umask      int      `json:"umask"`
	Stdin      bool     `json:"stdin"`      // a pipe; else /dev/null
	Deadline   int64    `json:"deadline"`   // proc.BootClock in nanoseconds; 0: none
	SpoolLimit int64    `json:"spoolLimit"` // bytes that may wait unacknowledged, each stream
	// Hold has the shim stay after its agent's end, a minute at most, until the end was taken in: the values of the
	// secrets, without which output cannot be masked, are known to it alone when its supervisor was killed.
	Hold bool `json:"hold"`
	// Guard is a lock, relative to the state directory, that is held as long as anything of the agent lives; "" for none.
	Guard string `json:"guard,omitempty"`
	// SupervisorEnv is the environment of a supervisor that the shim starts.
	SupervisorEnv []string `json:"supervisorEnv"`
}

// The states of an agent in agent.json.
const (
	Starting = "starting" // recorded before the fork: the agent may run
	Running  = "running"  // the identity is known
	Refused  = "refused"  // fork or exec failed: it never ran

	// Abandoned is the supervisor's mark on a runtime whose shim had begun nothing when it was declared dead.
	Abandoned = "abandoned"
)

// Agent is agent.json, the shim's record of what it started.
type Agent struct {
	Version   int            `json:"version"`
	State     string         `json:"state"`
	Shim      proc.Identity  `json:"shim"`
	Agent     *proc.Identity `json:"agent,omitempty"`
	PGID      int            `json:"pgid,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	Error     string         `json:"error,omitempty"`
	// Pipes are the inodes of the agent's outputs: a process that has cleared its environment and holds one
	// is still found when the shim was killed.
	Pipes []uint64 `json:"pipes,omitempty"`
}

// Exit is exit.json, the shim's last word.
type Exit struct {
	Version  int    `json:"version"`
	Code     int    `json:"code"`
	Signal   string `json:"signal,omitempty"`
	Error    string `json:"error,omitempty"`    // why it never ran
	Busy     bool   `json:"busy,omitempty"`     // that is: the guard is another shim's
	Deadline bool   `json:"deadline,omitempty"` // ended by the shim, no supervisor being there
	// Signalled says that a signal which a controller asked for reached the agent while it lived.
	Signalled bool            `json:"signalled,omitempty"`
	Out       int64           `json:"out"` // ends of the spools in bytes
	Err       int64           `json:"err"`
	Left      []proc.Identity `json:"left,omitempty"` // what could not be killed
	At        time.Time       `json:"at"`
}

// The files of a runtime, relative to the state directory.
func file(runtime, name string) string { return "runtimes/" + runtime + "/" + name }

// GuardFile is the path of a lock for Config.Guard.
func GuardFile(name string) string { return "locks/guard-" + name }

// AgentFile is the path of agent.json.
func AgentFile(runtime string) string { return file(runtime, "agent.json") }

// ExitFile is the path of exit.json.
func ExitFile(runtime string) string { return file(runtime, "exit.json") }

// LockFile is the path of the lock that the shim holds while it lives.
func LockFile(runtime string) string { return file(runtime, "lock") }

// SpoolDir is the directory of the spools.
func SpoolDir(runtime string) string { return file(runtime, "spool") }

// StdinFile is the record of what was written to the agent.
func StdinFile(runtime string) string { return file(runtime, "stdin.jsonl") }
