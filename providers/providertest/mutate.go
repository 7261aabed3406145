package providertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/providers"
)

// Fuzz gives a fold transcripts in which something is wrong. Whatever an agent says, the fold does not panic, is the same after
// it was written down, says only whole messages, each under a name of its own, and does so however the bytes were cut.
func Fuzz(f *testing.F, p providers.Provider, transcripts map[string][]byte) {
	for _, name := range slices.Sorted(maps.Keys(transcripts)) {
		f.Add(transcripts[name], []byte(nil))
		f.Add(transcripts[name], []byte{drop, 3, 0, double, 5, 0, swap, 8, 2, cut, 9, 40, flip, 12, 7, warp, 4, 6, warp, 13, 55})
	}
	f.Fuzz(func(t *testing.T, output, edits []byte) {
		if len(output) > 64<<10 {
			return // shows no more, and takes long
		}
		Check(t, p, edited(output, edits))
	})
}

// What is done to a line of a transcript.
const (
	drop = iota
	double
	swap
	cut
	flip
	warp
	edits
)

// edited does what three bytes each say: what, to which line, and how.
func edited(output, list []byte) []byte {
	lines := slices.Collect(bytes.Lines(output))
	for e := range slices.Chunk(list, 3) {
		if len(e) < 3 || len(lines) == 0 {
			break
		}
		i, how := int(e[1])%len(lines), int(e[2])
		line := bytes.Clone(lines[i])
		switch e[0] % edits {
		case drop:
			lines = slices.Delete(lines, i, i+1)
		case double:
			lines = slices.Insert(lines, (i+how)%len(lines), line)
		case swap:
			k := (i + how) % len(lines)
			lines[i], lines[k] = lines[k], line
		case cut:
			lines[i] = line[:len(line)*how/256]
		case flip:
			if len(line) == 0 {
				break
			}
			line[len(line)*how/256] ^= e[1] | 1
			lines[i] = line
		case warp:
			lines[i] = warped(line, int(e[1])*31+how, how)
		}
	}
	return bytes.Join(lines, nil)
}

// oddities are values that are not what was expected.
var oddities = []any{
	nil, true, 0, -1, 1e99, "", "<&>\u2028\n\x00", strings.Repeat("long ", 200), []any{}, []any{nil}, map[string]any{}, map[string]any{"type": 1},
}

// warped has one of a message's values, or of those in it, be another one.
func warped(line []byte, which, how int) []byte {
	var m map[string]any
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	warpIn(m, which, oddities[how%len(oddities)])
	return append(encode(m), '\n')
}

func warpIn(m map[string]any, which int, odd any) {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 {
		return
	}
	key := keys[which%len(keys)]
	if inner, ok := m[key].(map[string]any); ok && which%7 != 6 {
		warpIn(inner, which/2+1, odd)
		return
	}
	m[key] = odd
}

// encode is JSON whose strings stand as they came.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}
