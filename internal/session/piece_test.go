package session

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What was said is heard, byte for byte, and is readable text where it is text.
func TestSaid_IsHeard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, id := rapid.SliceOf(rapid.Byte()).Draw(t, "text"), rapid.String().Draw(t, "id")
		if rapid.Bool().Draw(t, "valid") {
			text = []byte(rapid.String().Draw(t, "string"))
		}
		data := Said(text, id)
		got, message, err := Heard(data)
		if err != nil || !bytes.Equal(text, got) || message != id {
			t.Fatalf("%q of %q, %v: %s", got, message, err, data)
		}
		if bytes.Contains(data, []byte(`"bytes"`)) == utf8.Valid(text) && !bytes.Contains(text, []byte("bytes")) {
			t.Fatalf("%s", data)
		}
	})
	if _, _, err := Heard([]byte(`[]`)); err == nil {
		t.Error("a list says something")
	}
}
