package supervisor

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/command"
)

// The text is the last of what was said, however it came in pieces.
func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var kept tail
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			n := rapid.SampledFrom([]int{0, 1, 100, textLimit - 1, textLimit, textLimit + 1}).Draw(t, "size")
			piece := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
			all = append(all, piece...)
			kept.write(piece)
		}
		if want := all[max(0, len(all)-textLimit):]; !bytes.Equal(kept.bytes(), want) {
			t.Fatalf("kept %d bytes, want the last %d of %d", len(kept.bytes()), len(want), len(all))
		}
		if len(kept.data) > 2*textLimit {
			t.Fatalf("%d bytes are held", len(kept.data))
		}
	})
}

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
