package record

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/session"
)

// render is the row and its size as JSON, with a comma; it is cut if that is more than most.
func (m *entry) render(most int) (Row, int) {
	row := m.Row
	if m.said {
		return m.renderText(most)
	}
	if m.fields != nil {
		row.Data, _ = json.Marshal(m.fields) // was JSON
	}
	if size := sizeOf(row); size <= most {
		return row, size
	}
	data := row.Data
	row.Data, row.Cut = nil, true
	row.Data = shorten(data, most-sizeOf(row)-len(`,"data":`))
	return row, sizeOf(row)
}

// renderText cuts by trying: how long a text is as JSON depends on what is in it.
func (m *entry) renderText(most int) (Row, int) {
	row, text := m.Row, m.text
	row.Cut = m.more
	if m.more {
		text = whole(text)
	}
	for {
		row.Data = session.Said(text, m.message)
		size := sizeOf(row)
		if size <= most || len(text) == 0 {
			return row, size
		}
		row.Cut = true
		text = whole(text[:len(text)*most/size*15/16])
	}
}

// whole is a text without the character that was cut in two at its end.
func whole(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// shorten makes an object fit: the longest field is clipped, if it is a text, or left out, until it does. What is no object
// is left out.
func shorten(data json.RawMessage, most int) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	for {
		data, _ = json.Marshal(fields) // was JSON
		if len(data) <= most || len(fields) == 0 {
			return data
		}
		longest := ""
		for name, value := range fields {
			if len(value) > len(fields[longest]) || len(value) == len(fields[longest]) && name < longest {
				longest = name
			}
		}
		if value := clipped(fields[longest], len(data)-most); value != nil {
			fields[longest] = value
		} else {
			delete(fields, longest)
		}
	}
}

// clipped is a JSON string shorter by excess, or nil if it is none, or nothing is left of it.
func clipped(value json.RawMessage, excess int) json.RawMessage {
	var text string
	if !bytes.HasPrefix(value, []byte{'"'}) || json.Unmarshal(value, &text) != nil || len(text) <= excess {
		return nil
	}
	short, _ := json.Marshal(string(whole([]byte(text)[:len(text)-excess])))
	return short
}

func sizeOf(row Row) int {
	data, _ := json.Marshal(row) // its data was JSON
	return len(data) + 1
}
