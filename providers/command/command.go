// Package command drives any program as an agent: its standard output is the message, its standard error
// events beside it, its exit status the verdict.
package command

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// Name is what -a calls this provider.
const Name = "command"

// ChunkSize is the most that one event holds, in bytes. A flood comes in events of this size, a trickle in
// events of what was there.
const ChunkSize = 32 << 10

// Provider returns the provider.
func Provider() providers.Provider {
	return providers.Provider{Name: Name, Journalled: true, Split: split, New: restore}
}

func restore(json.RawMessage) (providers.Fold, error) { return fold{}, nil }

// fold has no state: each frame stands for itself.
type fold struct{}

func (fold) State() json.RawMessage { return nil }

// Receive makes an event of a chunk.
func (fold) Receive(c providers.Chunk) ([]providers.Event, []providers.Frame) {
	kind := "agent_message_chunk"
	if c.Stream == providers.Stderr {
		kind = "stderr"
	}
	return []providers.Event{{Type: kind, Data: Data(c.Data)}}, nil
}

// Data is the data of an event for bytes of output.
func Data(b []byte) json.RawMessage { return session.Said(b, "") }

// Bytes is the output that an event's data holds, byte for byte.
func Bytes(data json.RawMessage) ([]byte, error) {
	b, _, err := session.Heard(data)
	return b, err
}

// split cuts behind a newline where there is one, else where no character is cut in two, else anywhere.
func split(_ providers.Stream, buf []byte, final bool) int {
	cut := buf[:min(len(buf), ChunkSize)]
	if i := bytes.LastIndexByte(cut, '\n'); i >= 0 && len(buf) > i+1 {
		return i + 1
	}
	if final && len(cut) == len(buf) {
		return len(cut)
	}
	return len(cut) - unfinished(cut)
}

// unfinished is the number of bytes at the end of b that begin a character and do not end it.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
