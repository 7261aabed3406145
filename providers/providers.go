// Package providers is the contract between pintle and the kinds of agent that it can drive.
//
// A driver is a fold: it turns bytes of an agent's output into events, and actions into bytes for its
// input, out of a state that can be written down. It does no I/O, reads no clock and starts nothing, so
// that replaying the same bytes gives the same state after any crash.
package providers

import (
	"encoding/json"
	"time"

	"github.com/pintle/pintle/internal/session"
)

// Stream is one of an agent's two outputs.
type Stream string

// The streams.
const (
	Stdout Stream = "out"
	Stderr Stream = "err"
)

// Chunk is a whole frame of an agent's output, with where it begins in bytes since the agent's start.
type Chunk struct {
	Stream Stream
	Offset int64
	Data   []byte
}

// Event is what a frame means. Type has ACP's name where it has one; Data is ACP's update without its
// sessionUpdate.
type Event struct {
	Type string
	Data json.RawMessage
}

// Frame is for the agent's input. Op makes it one that is written once: "<offset>.<index>" for what the
// fold itself answers to the frame at offset.
type Frame struct {
	Op   string
	Data []byte
}

// Fold is the driver of one running agent.
type Fold interface {
	// Receive takes in one frame.
	Receive(Chunk) ([]Event, []Frame)
	// State is what New needs to go on from here.
	State() json.RawMessage
}

// Provider is a kind of agent.
type Provider struct {
	Name string
	// Program is what is looked for in PATH: for an agent that is spoken to, and is started without a command of the user's.
	Program string
	// Tested is the version that the driver was tested with, and Install is how the agent is installed.
	Tested, Install string
	// Keys are variables, and Credentials patterns of files, one of which is there if somebody has signed in; Login is how to.
	// Where the agent itself says so, there is none of them.
	Keys        []string
	Credentials func(env map[string]string) []string
	Login       string
	// Natives are the places of the real program behind an npm package's wrapper, given where that lies, symbolic links
	// resolved; nil if there is none.
	Natives func(wrapper string) []string
	// Manifest is the npm package's package.json, given the program, symbolic links resolved: it has the version of an agent that
	// does not tell it; "" if there is none. nil if the agent tells it.
	Manifest func(program string) string
	// Environment has the names that the agent's own settings and keys have (E1).
	Environment []string
	// Launch is how the process of an agent that is spoken to is started, for the order that comes first. more are the user's
	// own arguments for it; dir is where Launch.Files will be.
	Launch func(o Order, more []string, dir string) Launch
	// Habits are what the agent does when it is to end.
	Habits Habits
	// Modes says that an order can choose one of the agent's own modes, which decide in place of --approve.
	Modes bool
	// Approves are the values of --approve that the agent can be held to; nil: all.
	Approves []string
	// Unasked are ACP's kinds of tools that the agent uses without asking, or may, whatever it was told by --approve: a policy
	// that says something of them cannot be kept (X37). nil if there are none.
	Unasked func(approve string) []string
	// Stdin says that the agent is spoken to; otherwise its input is empty.
	Stdin bool
	// Journalled says that standard error is a part of the agent's output.
	Journalled bool
	// Split returns the length of the first whole frame in buf, 0 if there is none yet. final says that
	// nothing more will come.
	Split func(s Stream, buf []byte, final bool) int
	// New returns a fold in the given state, or at the start for nil.
	New func(state json.RawMessage) (Fold, error)
	// Steers says that the agent can take a message into a turn that runs.
	Steers bool
	// Owner tells whose a line of standard output is, for Agent.Owns: "" if that cannot be told. It is cheap. It is nil if a
	// process of the agent has one conversation only.
	Owner func(line []byte) (key string)
	// Roams says that the conversation of an order is in the directory that this states, wherever its process was started.
	Roams func(Order) bool
	// Writer is the path of the file that the agent's process locks while it has a conversation, given the agent's
	// environment; nil if it has none.
	Writer func(env map[string]string, conversation string) string
	// Lockless says that the agent lets two processes have one conversation, each of which would lose what the other says in
	// it: pintle keeps a lock of its own on it.
	Lockless bool
	// Kept are the places, as patterns of filepath.Glob, one of which is there if the agent has anything of a conversation on
	// disk; nil if it says so itself when it is asked for one that it has not.
	Kept func(env map[string]string, conversation string) []string
	// Aside is what is put aside before it is started for a conversation that goes on; nil if that is nothing, ever.
	Aside func(env map[string]string, conversation string) *Aside
}

// Aside is what is put aside before an agent is started for a conversation that goes on: files of its own, by which it would
// destroy it.
type Aside struct {
	Pattern string // of filepath.Glob
	// Moves are new names for some of the files that there are, as they are at a time, in the order in which they are given.
	Moves func(files []File, now time.Time) []Move
}

// File is one with its length in bytes.
type File struct {
	Path string
	Size int64
}

// Move is of a file that gets another name.
type Move struct{ From, To string }

// Launch is how a process is started.
type Launch struct {
	Args  []string          // the command line, beginning with the program's name
	Env   map[string]string // set whatever the user has
	Files map[string]string // by name: what lies in the directory that is the process's own
}

// Habits are what an agent does when it is to end, as found by experiment.
type Habits struct {
	// Leaving is how long it may take to leave once its input has ended; 0 is 2 s.
	Leaving time.Duration
	// Stays says that it does not leave when its input ends.
	Stays bool
	// Deaf says that it does not end by SIGTERM.
	Deaf bool
	// Lingers says that commands go on once a turn was interrupted: such a process is ended rather than kept.
	Lingers bool
}

// Agent is the fold of an agent that is spoken to: one conversation, and its turns one after the other.
type Agent interface {
	Fold
	// Begin takes an order in. The first opens the conversation, before anything is received; each later one is its next
	// turn, and is given once the one before has ended (About.End). One that is to open the conversation only ends as
	// completed once that stands, with no prompt given.
	Begin(Order) []Frame
	// Interrupt has the turn end as soon as the agent can. It may be called again.
	Interrupt() []Frame
	// Steer puts a message into the turn that runs, under the name of an operation. It makes no frames while the agent
	// cannot take the message yet, which is held until then, nor for an operation that is known. What becomes of it is in
	// About.Steered. ok is false if it was not taken: no turn runs, or the one that does is about to end.
	Steer(op, text string) (frames []Frame, ok bool)
	// Answer answers what the agent asked for. What is not pending (any more) is not answered: no frames.
	Answer(permission string, d Decision) []Frame
	// Owns says whether a key of Provider.Owner's is of this conversation, an agent that it has started, or a request of
	// this fold's. What it does not own it may be given all the same, and makes nothing of it.
	Owns(key string) bool
	// Leave has the conversation go out of a process in which others stay: its turn ends, with all that it has begun, and
	// the agent lets go of it (About.Left). It is the last that the fold is given.
	Leave() []Frame
	// About is what is known by now.
	About() About
}

// Alone is embedded by the fold of an agent whose process has one conversation, and no other's ever.
type Alone struct{}

// Owns is never asked for.
func (Alone) Owns(string) bool { return false }

// Leave is never asked for.
func (Alone) Leave() []Frame { return nil }

// Order is what an agent is to do in one turn.
type Order struct {
	// Turn names the turn among all turns of all conversations: the operations of frames that answer no line of the
	// agent's begin with it, and the names of permissions are made from it.
	Turn         string `json:"turn"`
	Process      string `json:"process,omitempty"` // names the agent's process among all that anybody has ever started: what a driver names has it in it
	Prompt       string `json:"prompt"`
	Open         bool   `json:"open,omitempty"` // the conversation is to be opened, and nothing else: no prompt
	Cwd          string `json:"cwd"`
	Model        string `json:"model,omitempty"`
	Conversation string `json:"conversation,omitempty"` // the agent's own id of the one that goes on; "": a new one
	Lost         bool   `json:"lost,omitempty"`         // and it is known that the agent has nothing of it (Provider.Kept)
	Policy       bool   `json:"policy,omitempty"`       // pintle decides by rules on what is asked: the agent is to ask for all that it can
	Shared       bool   `json:"shared,omitempty"`       // the process has, or may come to have, other conversations
	Joins        bool   `json:"joins,omitempty"`        // likewise, and another one's fold has greeted it already
	Mode         string `json:"mode,omitempty"`         // one of the agent's own; "": as it is configured, or as Approve and Policy need it
	Approve      string `json:"approve,omitempty"`      // none, reads, edits, all; "": the agent's own configuration
	// Priced is what the conversation that goes on had cost in all, in USD, as About.Priced was last; nil if that is not known.
	Priced *float64 `json:"priced,omitempty"`
}

// Decision is an answer to what an agent asks for.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // this once
	Deny  Decision = "deny"  // the agent is refused, and its turn goes on
	Fail  Decision = "fail"  // the agent is refused, and its turn ends: as denied
)

// Permission is what an agent asks for and nobody has answered. The agent waits.
type Permission struct {
	ID       string `json:"id"` // p- and 16 hex digits, the same in every replay
	ToolCall string `json:"toolCall,omitempty"`
	Title    string `json:"title"` // what it asks, as in "to run ls"
	Kind     string `json:"kind"`  // ACP's kind of tool
	Reason   string `json:"reason,omitempty"`
	// What follows is for policies: the agent's own name of the tool, what it would run as a line of shell, and the files that it
	// is about, as the agent names them; each as far as the agent tells.
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"`
	Paths   []string `json:"paths,omitempty"`
}

// About is what an agent's fold knows besides its events. Of the newest turn, if nothing else is said.
type About struct {
	Conversation string
	Model        string
	Version      string // of the agent
	Message      string // id of the last message; its chunks are the text of the result
	Ready        bool   // the conversation stands
	Prompt       string // the operation of the frame that has the prompt; "" until it was made
	Confirmed    bool   // the agent has named the turn
	Begun        bool   // the agent, or a tool of its, has said or done something
	Usage        Usage
	Priced       *float64 // what the conversation has cost in all, in USD, where the agent tells that, and not what the turn has
	Open         int      // tool calls that have not ended
	Pending      []Permission
	Steered      []Steered // the newest messages that were put into turns, of any turn, in their order
	Trouble      string    // what the agent has trouble with and goes on trying; "" once it came through
	Log          string    // the end of standard error
	End          *End      // of the turn
	Left         bool      // Leave was called, and the agent has let go of the conversation: another process can have it
}

// Steered is what became of a message that was put into a turn.
type Steered struct {
	Op     string     `json:"op"`
	Frame  string     `json:"frame,omitempty"` // the operation of the frame that has it; "" until it was made
	State  SteerState `json:"state"`
	Reason string     `json:"reason,omitempty"` // why it was refused
}

// SteerState is how far such a message is. Confirmed and Refused do not change any more.
type SteerState string

// The states.
const (
	Held      SteerState = "held"      // the turn has not started
	Sent      SteerState = "sent"      // the agent was given it, and may have it
	Confirmed SteerState = "confirmed" // it is in the conversation
	Refused   SteerState = "refused"   // it is not, and will not be
)

// Usage is what a turn has cost, as far as the agent tells.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	CachedTokens int64 `json:"cachedTokens,omitempty"`
	// USD is nil where the agent does not tell it: unknown is not 0.
	USD *float64 `json:"usd,omitempty"`
}

// End is how a turn ended, as the agent told it. Code is a cause of B1, or "busy" when another process has the
// conversation; "" when nothing failed.
type End struct {
	Outcome session.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}
