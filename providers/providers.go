// Package providers is the contract between pintle and the kinds of agent that it can drive.
//
// A driver is a fold: it turns bytes of an agent's output into events, and actions into bytes for its
// input, out of a state that can be written down. It does no I/O, reads no clock and starts nothing, so
// that replaying the same bytes gives the same state after any crash.
package providers

import (
	"encoding/json"

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
	// Environment has the names that the agent's own settings and keys have (E1).
	Environment []string
	// Args is the command line of an agent that is spoken to, given the user's own arguments for it.
	Args func(more []string) []string
	// Stdin says that the agent is spoken to; otherwise its input is empty.
	Stdin bool
	// Journalled says that standard error is a part of the agent's output.
	Journalled bool
	// Split returns the length of the first whole frame in buf, 0 if there is none yet. final says that
	// nothing more will come.
	Split func(s Stream, buf []byte, final bool) int
	// New returns a fold in the given state, or at the start for nil.
	New func(state json.RawMessage) (Fold, error)
}

// Agent is the fold of an agent that is spoken to: one conversation, and one turn of it.
type Agent interface {
	Fold
	// Begin takes the order in and opens the conversation. It is called once, before anything is received.
	Begin(Order) []Frame
	// Interrupt has the turn end as soon as the agent can. It may be called again.
	Interrupt() []Frame
	// About is what is known by now.
	About() About
}

// Order is what an agent is to do.
type Order struct {
	Prompt       string `json:"prompt"`
	Cwd          string `json:"cwd"`
	Model        string `json:"model,omitempty"`
	Conversation string `json:"conversation,omitempty"` // the agent's own id of the one that goes on; "": a new one
	Approve      string `json:"approve,omitempty"`      // none, reads, edits, all; "": the agent's own configuration
	Unattended   string `json:"unattended,omitempty"`   // what becomes of what is still asked: fail or deny
}

// About is what an agent's fold knows besides its events.
type About struct {
	Conversation string
	Model        string
	Version      string // of the agent
	Message      string // id of the last message; its chunks are the text of the result
	Ready        bool   // the conversation stands
	Confirmed    bool   // the agent has named the turn
	Usage        Usage
	Open         int    // tool calls that have not ended
	Log          string // the end of standard error
	End          *End   // of the turn
}

// Usage is what the conversation has cost, as far as the agent tells.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	CachedTokens int64 `json:"cachedTokens,omitempty"`
}

// End is how a turn ended, as the agent told it. Code is a cause of B1; "" when nothing failed.
type End struct {
	Outcome session.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}
