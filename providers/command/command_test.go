package command

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/providertest"
)

func TestProvider_Conforms(t *testing.T) { providertest.Run(t, Provider(), nil) }

func TestSplit(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 2*ChunkSize)
	for name, c := range map[string]struct {
		buf   []byte
		final bool
		want  int
	}{
		"nothing":               {nil, true, 0},
		"half a character":      {[]byte("a\xc3"), false, 1},
		"only half a character": {[]byte("\xf0\x9f\x98"), false, 0},
		"half at the end":       {[]byte("a\xc3"), true, 2},
		"flood":                 {long, false, ChunkSize},
		"flood, last":           {long[:ChunkSize], true, ChunkSize},
		"behind a newline":      {[]byte("a\nb\nc"), false, 4},
		"not UTF-8":             {[]byte("\xff\xfe"), false, 2},
	} {
		if got := split(providers.Stdout, c.buf, c.final); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSplit_NeverCutsACharacterAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pad := bytes.Repeat([]byte("x"), rapid.IntRange(ChunkSize-8, ChunkSize+8).Draw(t, "pad"))
		buf := slices.Concat(pad, []byte(rapid.String().Draw(t, "text")))
		for len(buf) > 0 {
			n := split(providers.Stdout, buf, true)
			if n <= 0 || n > ChunkSize {
				t.Fatalf("%d of %d bytes", n, len(buf))
			}
			if !utf8.Valid(buf[:n]) {
				t.Fatalf("a character is cut: %q", buf[max(0, n-8):n])
			}
			buf = buf[n:]
		}
	})
}

func TestBytes_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "bytes")
		got, err := Bytes(Data(want))
		if err != nil || !bytes.Equal(want, got) {
			t.Fatalf("%q became %q, %v", want, got, err)
		}
	})
}

func TestReceive_NamesTheStream(t *testing.T) {
	for stream, want := range map[providers.Stream]string{providers.Stdout: "agent_message_chunk", providers.Stderr: "stderr"} {
		events, frames := fold{}.Receive(providers.Chunk{Stream: stream, Data: []byte("a")})
		if diff := cmp.Diff([]providers.Event{{Type: want, Data: []byte(`{"content":{"type":"text","text":"a"}}`)}}, events); diff != "" || len(frames) > 0 {
			t.Error(diff, frames)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\xc3\n"), true)
	f.Fuzz(func(t *testing.T, buf []byte, final bool) {
		n := split(providers.Stdout, buf, final)
		if n < 0 || n > len(buf) || final && n == 0 && len(buf) > 0 {
			t.Fatalf("%d of %d bytes", n, len(buf))
		}
	})
}
