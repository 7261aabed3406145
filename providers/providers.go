// Package providers is the contract between pintle and the kinds of agent that it can drive.
//
// A driver is a fold: it turns bytes of an agent's output into events, and actions into bytes for its
// input, out of a state that can be written down. It does no I/O, reads no clock and starts nothing, so
// that replaying the same bytes gives the same state after any crash.
package providers

import (
	"encoding/json"
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
