package session

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// piece is the data of an event that has a part of a message: ACP's text block. Bytes has what Text cannot: the very
// bytes, where they are no UTF-8.
type piece struct {
	Content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Bytes     []byte `json:"bytes,omitempty"`
	MessageID string `json:"messageId,omitempty"`
}

// Said is the data of an event for a part of a message, "" for what is no part of one: output of a command.
func Said(text []byte, message string) json.RawMessage {
	p := piece{MessageID: message}
	p.Content.Type, p.Content.Text = "text", string(text)
	if !utf8.Valid(text) {
		p.Bytes = text
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // strings and bytes: cannot fail
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})
}

// Heard is what an event's data says, byte for byte, and the message that it is a part of.
func Heard(data json.RawMessage) (text []byte, message string, err error) {
	if text, message, ok := plain(data); ok {
		return text, message, nil
	}
	var p piece
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, "", err
	}
	if p.Bytes != nil {
		return p.Bytes, p.MessageID, nil
	}
	return []byte(p.Content.Text), p.MessageID, nil
}

// plain reads a piece of which nothing is escaped, as most pieces of a flood are: encoding/json takes ten times as long.
func plain(data []byte) (text []byte, message string, ok bool) {
	rest, begins := bytes.CutPrefix(data, []byte(`{"content":{"type":"text","text":"`))
	said, of, ends := bytes.Cut(rest, []byte(`"}`))
	if !begins || !ends || !Literal(said) {
		return nil, "", false
	}
	if string(of) == "}" {
		return bytes.Clone(said), "", true
	}
	id, named := bytes.CutPrefix(of, []byte(`,"messageId":"`))
	id, ended := bytes.CutSuffix(id, []byte(`"}`))
	return bytes.Clone(said), string(id), named && ended && Literal(id)
}

// Literal reports whether b is what JSON has between the quotes of a string, and the string itself.
func Literal(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}
