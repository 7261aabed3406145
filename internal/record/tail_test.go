package record

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The text is the last of what was said, however it came in pieces.
func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var kept Tail
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			n := rapid.SampledFrom([]int{0, 1, 100, TextLimit - 1, TextLimit, TextLimit + 1}).Draw(t, "size")
			piece := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
			all = append(all, piece...)
			kept.Add(piece)
		}
		if want := all[max(0, len(all)-TextLimit):]; !bytes.Equal(kept.Bytes(), want) {
			t.Fatalf("kept %d bytes, want the last %d of %d", len(kept.Bytes()), len(want), len(all))
		}
		if len(kept.data) > 2*TextLimit {
			t.Fatalf("%d bytes are held", len(kept.data))
		}
	})
}
