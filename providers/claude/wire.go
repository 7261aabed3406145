package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
)

// No list and no text grows over a bound, whatever an agent sends: the state is written down often.
const (
	most       = 256     // of anything that is open at once
	idLimit    = 256     // characters of an id
	titleLimit = 4_000   // characters of what is asked
	wordsLimit = 2_000   // characters of a message that is kept (B2)
	inputLimit = 64_000  // bytes of a tool's input that is told
	logLimit   = 2_000   // bytes of standard error that are kept
	heldLimit  = 4 << 20 // bytes of all messages that are held
)

// ident is an id of the agent's. One that is no text is none; the end of one that is absurdly long is left out, here as
// everywhere.
type ident string

// UnmarshalJSON takes anything.
func (i *ident) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*i = ident(clip(s, idLimit))
	return nil
}

// word is a text; what is none is the empty one, and does not spoil what is beside it.
type word string

// UnmarshalJSON takes anything.
func (w *word) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*w = word(s)
	return nil
}

// read decodes what an agent says as far as it is what was expected, and reports whether it is an object at all.
func read(data []byte, into any) bool {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	wrong := new(json.UnmarshalTypeError)
	err := json.Unmarshal(data, into)
	return err == nil || errors.As(err, &wrong) // then all but that is decoded
}

// encode is JSON on one line, for what we make ourselves: it cannot fail.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// tail is the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// clip leaves out what is over n characters.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// colours are what the log is painted with.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m`) })
