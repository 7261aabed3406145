package acp

import (
	"testing"

	"github.com/pintle/pintle/providers"
)

// BenchmarkReceive is one piece of a message.
func BenchmarkReceive(b *testing.B) {
	f := &fold{agent: &agents[0]}
	f.Session, f.Prompt = "s", "p"
	line := []byte(piece("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", "m") + "\n")
	b.SetBytes(int64(len(line)))
	for i := range b.N {
		f.Receive(providers.Chunk{Stream: providers.Stdout, Offset: int64(i), Data: line})
	}
}
