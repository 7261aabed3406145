package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestShown_IsBounded(t *testing.T) {
	long := strings.Repeat("é", InputLimit)
	input := Encode(map[string]any{"file_path": "/a", "content": long, "list": []string{long}})
	got := Encode(Shown(input))
	if len(got) > InputLimit || !strings.Contains(string(got), `"file_path":"/a"`) || !json.Valid(got) || !strings.Contains(string(got), fmt.Sprintf("(%d bytes in all)", 2*InputLimit)) {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	many := map[string]any{}
	for i := range 10_000 {
		many[fmt.Sprintf("%010d", i)] = i
	}
	if got := Encode(Shown(Encode(many))); len(got) > 100 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

// What is not as expected does not spoil what is beside it.
func TestRead(t *testing.T) {
	for _, test := range []struct {
		in   string
		is   bool
		id   Ident
		text Word
		n    int
	}{
		{`{"id":"a","text":"b","n":1}`, true, "a", "b", 1},
		{`  {"id":1,"text":["b"],"n":1}` + "\r\n", true, "", "", 1},
		{`{"id":null,"text":"b","n":"1"}`, true, "", "b", 0},
		{`{"id":"` + strings.Repeat("x", 2*IDLimit) + `"}`, true, Ident(strings.Repeat("x", IDLimit)), "", 0},
		{`["a"]`, false, "", "", 0},
		{`{"id":"a"`, false, "", "", 0},
		{``, false, "", "", 0},
	} {
		var got struct {
			ID   Ident
			Text Word
			N    int
		}
		if is := Read([]byte(test.in), &got); is != test.is || got.ID != test.id || got.Text != test.text || got.N != test.n {
			t.Errorf("%.100s: %v, %.100v", test.in, is, got)
		}
	}
}
