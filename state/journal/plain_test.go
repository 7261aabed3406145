package journal

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var lines = map[string]struct {
	event Event
	plain bool
}{
	"piece": {Event{
		Seq: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), Session: "s-1", Execution: "k", Fence: 3, Turn: "t1", Type: "agent_message_chunk",
		Data: json.RawMessage(`{"content":{"type":"text","text":"a \"b\", é \n"},"messageId":"m"}`),
	}, true},
	"least":                {Event{Seq: 1, Type: "x"}, true},
	"negative fence":       {Event{Seq: 1, Fence: -1, Type: "x"}, true},
	"whole second":         {Event{Seq: 1, Time: time.Unix(1, 0).UTC(), Type: "x"}, true},
	"commit":               {Event{Seq: 1, Type: "x", Data: json.RawMessage(`{}`), Commit: &Commit{Runtime: "x", Out: 1}}, false},
	"commit alone":         {Event{Seq: 1, Type: "x", Commit: &Commit{}}, false},
	"commit in data":       {Event{Seq: 1, Type: "x", Data: json.RawMessage(`{"a":1,"commit":{"runtime":"y"}}`)}, false},
	"commit in both":       {Event{Seq: 1, Type: "x", Data: json.RawMessage(`{"a":1,"commit":{}}`), Commit: &Commit{Out: 9}}, false},
	"commit in text":       {Event{Seq: 1, Type: "x", Data: json.RawMessage(`{"a":"\"commit\""}`)}, true},
	"escaped name":         {Event{Seq: 1, Execution: "a\"b\\c", Type: "x"}, false},
	"name in another word": {Event{Seq: 1, Execution: "é", Type: "x"}, false},
	"data is a string":     {Event{Seq: 1, Type: "x", Data: json.RawMessage(`"y"`)}, true},
	"no type":              {Event{Seq: 1, Data: json.RawMessage(`[]`)}, true},
}

// A line is read as encoding/json reads it, whoever does.
func TestPlain(t *testing.T) {
	for name, tt := range lines {
		t.Run(name, func(t *testing.T) {
			line := appendLine(nil, &tt.event)
			line = line[:len(line)-1]
			got, ok := plain(line)
			if ok != tt.plain {
				t.Errorf("it is plain: %v", ok)
			}
			agrees(t, line)
			if diff := cmp.Diff(tt.event, got); ok && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// agrees holds plain to what encoding/json says of a line.
func agrees(t *testing.T, line []byte) {
	t.Helper()
	got, ok := plain(line)
	if !ok {
		return
	}
	var want Event
	if err := json.Unmarshal(line, &want); err != nil {
		t.Fatalf("%s is none: %v", line, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", line, diff)
	}
}

// FuzzPlain has lines changed, with checksums that are right all the same.
func FuzzPlain(f *testing.F) {
	for _, tt := range lines {
		line := appendLine(nil, &tt.event)
		f.Add(line[:len(line)-1-sumLength])
	}
	f.Add([]byte(`{"seq":01,"time":"2026-01-02T03:04:05Z","session":"","type":""`))
	f.Add([]byte(`{"seq":1,"time":"2026-01-02T03:04:05Z","session":"","type":"","data":{},"data":1`))
	f.Add([]byte(`{"seq":-1,"time":"2026-01-02T03:04:05Z","session":"","type":""`))
	f.Fuzz(func(t *testing.T, head []byte) {
		agrees(t, append(head, sumField+`00000000"}`...))
	})
}

func BenchmarkParse(b *testing.B) {
	e := lines["piece"].event
	line := appendLine(nil, &e)
	line = line[:len(line)-1]
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
