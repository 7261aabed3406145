package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Ident is an id of an agent's. One that is no text is none; the end of one that is absurdly long is left out, here as
// everywhere.
type Ident string

// UnmarshalJSON takes anything.
func (i *Ident) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*i = Ident(Clip(s, IDLimit))
	return nil
}

// Word is a text; what is none is the empty one, and does not spoil what is beside it.
type Word string

// UnmarshalJSON takes anything.
func (w *Word) UnmarshalJSON(b []byte) error {
	var s string
	_ = json.Unmarshal(b, &s)
	*w = Word(s)
	return nil
}

// Read decodes what an agent says as far as it is what was expected, and reports whether it is an object at all.
func Read(data []byte, into any) bool {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	wrong := new(json.UnmarshalTypeError)
	err := json.Unmarshal(data, into)
	return err == nil || errors.As(err, &wrong) // then all but that is decoded
}

// InputLimit is how much of a tool's input is told, in bytes.
const InputLimit = 64_000

// Shown is a tool's input, as far as there is room.
func Shown(input json.RawMessage) any {
	if len(input) <= InputLimit {
		if len(input) == 0 {
			return map[string]any{}
		}
		return input
	}
	var values map[string]any
	_ = json.Unmarshal(input, &values)
	room := InputLimit / max(1, len(values)+1)
	for name, value := range values {
		if s, ok := value.(string); ok && len(s) <= room {
			continue
		} else if ok {
			values[name] = Clip(s, room/4) + fmt.Sprintf(" … (%d bytes in all)", len(s))
			continue
		}
		if n := len(Encode(value)); n > room {
			values[name] = fmt.Sprintf("… (%d bytes)", n)
		}
	}
	if len(values) > Most {
		return map[string]any{"note": fmt.Sprintf("%d bytes", len(input))}
	}
	return values
}
