package session

import (
	"bytes"
	"encoding/json"
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

// FuzzHeard holds what is read at a glance to what encoding/json says of it.
func FuzzHeard(f *testing.F) {
	for _, text := range []string{"", "plain", "é", "a\nb", `"}`, "\xff"} {
		f.Add([]byte(Said([]byte(text), "")))
		f.Add([]byte(Said([]byte(text), "m")))
	}
	f.Add([]byte(`{"content":{"type":"text","text":"a"}}}`))
	f.Add([]byte(`{"content":{"type":"text","text":"a"},"messageId":"b","messageId":"c"}`))
	f.Add([]byte(`a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, message, ok := plain(data)
		if !ok {
			return
		}
		var p piece
		if err := json.Unmarshal(data, &p); err != nil || p.Bytes != nil || p.Content.Text != string(text) || p.MessageID != message {
			t.Errorf("%q is %q of %q, and not %+v, %v", data, text, message, p, err)
		}
	})
}
