package claude

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pintle/pintle/providers/wire"
)

// What is bounded besides (wire).
const (
	inputLimit = 64_000  // bytes of a tool's input that is told
	heldLimit  = 4 << 20 // bytes of all messages that are held
)

// ident is an id of the agent's. One that is no text is none; the end of one that is absurdly long is left out, here as
// everywhere.
type ident string

// UnmarshalJSON takes anything.
func (i *ident) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*i = ident(wire.Clip(s, wire.IDLimit))
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
