package supervisor

import (
	"testing"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/codex"
	"github.com/pintle/pintle/providers/command"
)

// No frame cuts a secret in two: what may be the beginning of one waits for more, until nothing more comes (E5).
func TestE5_FramesCutNoSecret(t *testing.T) {
	rt := &runtime{provider: command.Provider(), mask: environ.NewMasker([]string{"hunter2-hunter2"})}
	tests := []struct {
		raw  string
		last bool
		want int
	}{
		{"plain\n", false, 6},
		{"it is hunter2-hunter2\n", false, 22},
		{"it is hunt", false, 6},
		{"it is hunt", true, 10},
		{"hunter2-hunter", false, 0},
		{"hunter2-hunter2", false, 15},
	}
	for _, tt := range tests {
		if got := rt.frame(providers.Stdout, []byte(tt.raw), tt.last); got != tt.want {
			t.Errorf("%q (last: %v): %d bytes, want %d", tt.raw, tt.last, got, tt.want)
		}
	}
}

// A message of a protocol comes whole or not at all, also when its first part was read alone.
func TestFrames_OfAProtocolAreWhole(t *testing.T) {
	rt := &runtime{provider: codex.Provider(), mask: environ.NewMasker([]string{"hunter2-hunter2"})}
	for raw, want := range map[string]int{`{"half":`: 0, "{}\n{": 3, `{"it":"hunt` + "\n": 12} {
		if got := rt.frame(providers.Stdout, []byte(raw), false); got != want {
			t.Errorf("%q: %d, want %d", raw, got, want)
		}
	}
}
