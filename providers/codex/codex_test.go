package codex

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/providertest"
)

// transcripts are what the real app-server wrote, by name.
func transcripts(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	all := map[string][]byte{}
	for _, file := range files {
		if strings.HasSuffix(file, ".in.jsonl") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".jsonl")] = data
	}
	return all
}

func TestProvider_Conforms(t *testing.T) { providertest.Run(t, Provider(), transcripts(t)) }

// played is what a fold makes of a transcript in which the first requests are ours: the ids of the recorder's client are
// numbers, in the order in which it asked.
type played struct {
	*fold
	events []providers.Event
	frames []providers.Frame
}

func play(t *testing.T, output []byte, o providers.Order) played {
	t.Helper()
	f := &fold{}
	p := played{fold: f, frames: f.Begin(o)}
	offset := int64(0)
	for _, line := range bytes.SplitAfter(output, []byte{'\n'}) {
		events, frames := f.Receive(providers.Chunk{Stream: providers.Stdout, Offset: offset, Data: renamed(line, p.asked())})
		p.events, p.frames = append(p.events, events...), append(p.frames, frames...)
		offset += int64(len(line))
	}
	return p
}

// asked are the ids of our requests, in order.
func (p played) asked() (ids []string) {
	for _, frame := range p.frames {
		var m struct{ ID, Method string }
		if json.Unmarshal(frame.Data, &m) == nil && m.Method != "" && m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// renamed gives an answer to the recorder's n-th request the id of our n-th.
func renamed(line []byte, ids []string) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || m["method"] != nil || m["id"] == nil {
		return line
	}
	var n int
	if json.Unmarshal(m["id"], &n) != nil || n < 1 || n > len(ids) {
		return line
	}
	m["id"], _ = json.Marshal(ids[n-1])
	data, _ := json.Marshal(m)
	return append(data, '\n')
}

func (p played) text(kind string) string {
	var b strings.Builder
	for _, e := range p.events {
		var c chunk
		if e.Type == kind && json.Unmarshal(e.Data, &c) == nil {
			b.WriteString(c.Content.Text)
		}
	}
	return b.String()
}

func (p played) count(kind string) (n int) {
	for _, e := range p.events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// What real turns come to.
func TestGolden_Ends(t *testing.T) {
	all := transcripts(t)
	for name, want := range map[string]providers.End{
		"text":                        {Outcome: session.Completed},
		"command":                     {Outcome: session.Completed},
		"patch":                       {Outcome: session.Completed},
		"failed_http_401":             {Outcome: session.Failed, Code: "auth"},
		"failed_http_429":             {Outcome: session.Failed, Code: "capacity"},
		"failed_http_429_usage_limit": {Outcome: session.Failed, Code: "capacity"},
		"failed_http_500":             {Outcome: session.Failed, Code: "transient"},
		"failed_context_length":       {Outcome: session.Failed, Code: "config"},
	} {
		p := play(t, all[name], providers.Order{Prompt: "x", Cwd: "/dir"})
		end := p.About().End
		if end == nil || end.Outcome != want.Outcome || end.Code != want.Code {
			t.Errorf("%s ended as %+v, want %+v", name, end, want)
		}
	}
}

func TestGolden_Text(t *testing.T) {
	p := play(t, transcripts(t)["text"], providers.Order{Prompt: "x", Cwd: "/dir"})
	about := p.About()
	if p.text("agent_message_chunk") == "" || about.Conversation == "" || about.Version == "" || about.Usage.InputTokens == 0 || about.Message == "" {
		t.Errorf("%+v, text %q", about, p.text("agent_message_chunk"))
	}
}

func TestGolden_Tools(t *testing.T) {
	for name, want := range map[string]int{"command": 1, "patch": 1} {
		p := play(t, transcripts(t)[name], providers.Order{Prompt: "x", Cwd: "/dir"})
		if p.count("tool_call") != want || p.count("tool_call_update") != want || p.About().Open != 0 {
			t.Errorf("%s: %d calls, %d updates, %d open", name, p.count("tool_call"), p.count("tool_call_update"), p.About().Open)
		}
	}
}

// What is asked waits for its answer, and the answer is given once.
func TestGolden_Permission(t *testing.T) {
	recorded := transcripts(t)["approval_accepted"]
	for decision, word := range map[providers.Decision]string{providers.Allow: "accept", providers.Deny: "decline", providers.Fail: "cancel"} {
		cut := bytes.Index(recorded, []byte(`"method":"item/commandExecution/requestApproval"`))
		cut += bytes.IndexByte(recorded[cut:], '\n') + 1
		p := play(t, recorded[:cut], providers.Order{Prompt: "x", Cwd: "/dir", Turn: "t"})
		asked := p.About().Pending
		if len(asked) != 1 || asked[0].Kind != "execute" {
			t.Fatalf("pending %+v", asked)
		}
		frames := p.Answer(asked[0].ID, decision)
		if len(frames) != 1 || !strings.Contains(string(frames[0].Data), `"decision":"`+word+`"`) {
			t.Errorf("%s: %q", decision, frames)
		}
		if again := p.Answer(asked[0].ID, decision); again != nil || len(p.About().Pending) != 0 {
			t.Errorf("%s: answered again by %q", decision, again)
		}
	}
}
