// Package wire is what drivers of agents that speak JSON, a message a line, have in common: lines, bounds, and the names of
// what they make.
package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/pintle/pintle/providers"
)

// No list or text of a fold's state grows over a bound, whatever an agent sends: the state is written down often.
const (
	Most       = 256      // of anything that is open at once
	IDLimit    = 256      // characters of an id
	TitleLimit = 4_000    // characters of what is asked
	WordsLimit = 2_000    // characters of a message that is kept (B2)
	KeptLimit  = 16 << 10 // bytes of a request that is kept until it is answered
	LogLimit   = 2_000    // bytes of standard error that are kept
)

// Split cuts standard output by lines. Standard error is log text: any piece will do.
func Split(s providers.Stream, buf []byte, final bool) int {
	if s == providers.Stderr {
		return len(buf)
	}
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		return i + 1
	}
	if final {
		return len(buf)
	}
	return 0
}

// Encode is JSON on one line, whose strings stand as they came, for what a driver makes itself: it cannot fail.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// Clip leaves out what is over n characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// Tail is the end of a text, of at most n bytes.
func Tail(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// Log is the end of what standard error had, with more of it.
func Log(before string, more []byte) string {
	return Tail(before+colours().ReplaceAllString(strings.ToValidUTF8(string(more), "\ufffd"), ""), LogLimit)
}

// colours are what a log is painted with.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m`) })

// Literal is a path in a pattern of filepath.Glob.
func Literal(path string) string {
	var b []byte
	for i := range len(path) {
		if bytes.IndexByte([]byte(`*?[\`), path[i]) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}

// Sum names something by what it is made from: n hex digits, the same in every replay.
func Sum(n int, parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(parts...)))
	return hex.EncodeToString(sum[:])[:n]
}

// Permission is the name of the n-th thing that is asked for in a turn.
func Permission(turn string, n int, request []byte) string {
	return "p-" + Sum(16, turn, n, string(request))
}

// UUID is one that is made from parts, in the form of a random one (RFC 9562).
func UUID(parts ...any) string {
	s := Sum(32, parts...)
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:32]
}

// Ordered is the name of an operation, or of a request, that is made for an order.
func Ordered(turn, name string) string {
	if turn == "" {
		return name
	}
	return turn + "." + name
}

// Maker collects what a fold makes: its events, and its frames, each with an operation of its own, so that what is made again
// is not written twice. It is no part of a fold's state.
type Maker struct {
	op     string
	index  int
	frames []providers.Frame
	events []providers.Event
}

// Made collects the frames that do makes. Of a name that comes again, index is how many there were.
func (m *Maker) Made(op string, index int, do func()) []providers.Frame {
	m.op, m.index, m.frames = op, index, nil
	do()
	return m.frames
}

// Index is how many frames have the name of the last ones.
func (m *Maker) Index() int { return m.index }

// Next is the operation of the frame that is made next.
func (m *Maker) Next() string { return fmt.Sprintf("%s.%d", m.op, m.index) }

// Send makes a frame of a message.
func (m *Maker) Send(v any) {
	m.frames = append(m.frames, providers.Frame{Op: m.Next(), Data: append(Encode(v), '\n')})
	m.index++
}

// Tell makes an event.
func (m *Maker) Tell(kind string, data any) {
	m.events = append(m.events, providers.Event{Type: kind, Data: Encode(data)})
}

// Notice tells what somebody should know.
func (m *Maker) Notice(message string) {
	m.Tell("agent_notice", map[string]string{"message": Clip(message, WordsLimit)})
}

// Told are the events since it was called last.
func (m *Maker) Told() []providers.Event {
	events := m.events
	m.events = nil
	return events
}
