package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestOwner(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":"turn/t1","result":{"turn":{"id":"U"}}}`:                                     "turn/t1",
		`{"error":{"code":-32600,"message":"no \",\"id\":\"x\""},"id":"leave.T/t1"}` + "\n": "leave.T/t1",
		`{"id":7,"result":{}}`: "",
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T"}}`:              "T",
		`{"method":"turn/started","params":{"threadId":"T","turn":{"id":"U"}}}`:                            "T",
		`{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"T","turnId":"U"}}`: "T",
		`{"method":"thread/started","params":{"thread":{"id":"T","sessionId":"X"}}}`:                       "T",
		`{"method":"item/started","params":{"item":{"arguments":{"threadId":"O"}},"threadId":"T"}}`:        "T",
		`{"method":"item/started","params":{"item":{"text":"\"threadId\":\"O\""},"threadId":"T"}}`:         "T",
		`{"method":"configWarning","params":{"summary":"x"}}`:                                              "",
		`{"method":"x","params":{"threadId":"a\"b"}}`:                                                      "",
		`{"method":"x","params":{"threadId":"` + strings.Repeat("long", 200) + `"}}`:                       "",
		`{"id":`: "", `{"id":"`: "", `{"error":`: "", `{"method":"x","params":{"threadId":"`: "", "": "", "no JSON": "",
	} {
		if got := owner([]byte(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// It tells no line's owner wrongly of all that the real server has said.
func TestGolden_Owner(t *testing.T) {
	for name, output := range transcripts(t) {
		told := 0
		for line := range bytes.Lines(output) {
			var m struct {
				ID     any
				Method string
				Params struct {
					ThreadID string
					Thread   struct{ ID string }
				}
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			want := m.Params.ThreadID + m.Params.Thread.ID
			if id, ok := m.ID.(string); ok && m.Method == "" {
				want = id
			}
			if got := owner(line); got != want {
				t.Errorf("%s: %q, want %q: %.300s", name, got, want, line)
			}
			told += len(want)
		}
		if told == 0 {
			t.Errorf("%s: nothing is told", name)
		}
	}
}

func BenchmarkOwner(b *testing.B) {
	text := func(n int) []byte {
		return fmt.Appendf(nil, `{"method":"item/agentMessage/delta","params":{"threadId":"01a22e30-aa23-7b93-adc7-70e2fc066973",`+
			`"turnId":"01a22e30-aa23-7b93-adc7-70e2fc066974","itemId":"msg_1","delta":"%s"},"emittedAtMs":1796070030634}`, strings.Repeat(`a \"word\" `, n))
	}
	for name, line := range map[string][]byte{
		"delta": text(5), "long": text(100_000),
		"item": []byte(`{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"msg_1","text":"hello, world, and all that is in it",` +
			`"phase":null},"threadId":"01a22e30-aa23-7b93-adc7-70e2fc066973","turnId":"01a22e30-aa23-7b93-adc7-70e2fc066974","completedAtMs":1796070030634}}`),
		"answer": []byte(`{"id":"turn/01a22e30.1.1","result":{"turn":{"id":"01a22e30-aa23-7b93-adc7-70e2fc066974","items":[],"status":"inProgress"}}}`),
	} {
		b.Run(fmt.Sprint(name, " ", len(line)), func(b *testing.B) {
			for b.Loop() {
				if owner(line) == "" {
					b.Fatal(name)
				}
			}
		})
	}
}
