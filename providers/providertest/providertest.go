// Package providertest is the one suite that every provider passes: that its driver is a fold, whose answer
// depends on the bytes alone, not on how they were cut nor on where it was written down and taken up again.
package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/providers"
)

// floods are given to every provider, besides the transcripts of its own agent.
var floods = map[string][]byte{
	"nothing":         nil,
	"lines":           []byte("one\ntwo\n\nfour"),
	"one byte":        []byte("x"),
	"characters":      []byte(strings.Repeat("aä€😀", 200)),
	"not UTF-8":       []byte("a\xff\xfe\xc3\n\xe2\x82"),
	"a long line":     bytes.Repeat([]byte("0123456789"), 20_000),
	"half a JSON":     []byte(`{"jsonrpc":"2.0","method":"x`),
	"a foreign JSON":  []byte(`{"never":["heard",{"of":null}]}` + "\n"),
	"a banner before": []byte("Welcome!\n{}\n"),
}

// result is what a fold made of an output: the text by type of event, and its frames.
type result struct {
	Text   map[string]string
	Frames []providers.Frame
}

// Run runs the suite. transcripts are outputs of the real agent, by name.
func Run(t *testing.T, p providers.Provider, transcripts map[string][]byte) {
	t.Helper()
	all := map[string][]byte{}
	for _, outputs := range []map[string][]byte{floods, transcripts} {
		for name, output := range outputs {
			all[name] = output
		}
	}
	for name, output := range all {
		t.Run(name, func(t *testing.T) {
			want := feed(t, p, output, len(output)+1, false)
			for _, size := range []int{1, 2, 3, 7, 4096} {
				if len(output)/size > 5_000 {
					continue // takes long and shows no more
				}
				for _, again := range []bool{false, true} {
					if diff := cmp.Diff(want, feed(t, p, output, size, again)); diff != "" {
						t.Errorf("in pieces of %d, written down between them %v (-want +got)\n%s", size, again, diff)
					}
				}
			}
		})
	}
}

// feed gives output to a fold in pieces of size. With again every frame gets a fold that is restored from
// the state of the one before.
func feed(t *testing.T, p providers.Provider, output []byte, size int, again bool) result {
	t.Helper()
	f := restore(t, p, nil)
	r := result{Text: map[string]string{}}
	var buf []byte
	offset := int64(0)
	for piece := range slices.Chunk(output, size) {
		buf = append(buf, piece...)
		final := offset+int64(len(buf)) == int64(len(output))
		for len(buf) > 0 {
			n := p.Split(providers.Stdout, buf, final)
			if n < 0 || n > len(buf) {
				t.Fatalf("split returns %d of %d bytes", n, len(buf))
			}
			if n == 0 {
				break
			}
			events, frames := f.Receive(providers.Chunk{Stream: providers.Stdout, Offset: offset, Data: bytes.Clone(buf[:n])})
			r.add(t, events, frames)
			offset, buf = offset+int64(n), buf[n:]
			if again {
				f = restore(t, p, f.State())
			}
		}
	}
	if len(buf) > 0 {
		t.Errorf("%d bytes at the end are in no frame", len(buf))
	}
	return r
}

func restore(t *testing.T, p providers.Provider, state json.RawMessage) providers.Fold {
	t.Helper()
	f, err := p.New(state)
	if err != nil {
		t.Fatalf("restore from %s: %v", state, err)
	}
	return f
}

func (r *result) add(t *testing.T, events []providers.Event, frames []providers.Frame) {
	t.Helper()
	for _, e := range events {
		if e.Type == "" || len(e.Data) > 0 && (!json.Valid(e.Data) || bytes.ContainsRune(e.Data, '\n')) {
			t.Errorf("event %q has data that is no JSON on one line: %.200s", e.Type, e.Data)
		}
		r.Text[e.Type] += textOf(e.Data)
	}
	r.Frames = append(r.Frames, frames...)
}

// textOf is a chunk's text, byte for byte, or the data of what is no chunk.
func textOf(data json.RawMessage) string {
	var c struct {
		Content *struct{ Text string }
		Bytes   []byte
	}
	switch err := json.Unmarshal(data, &c); {
	case err != nil || c.Content == nil:
		return fmt.Sprintf("%s\n", data)
	case c.Bytes != nil:
		return string(c.Bytes)
	}
	return c.Content.Text
}
