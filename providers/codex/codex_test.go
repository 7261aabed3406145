package codex

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/providertest"
)

// transcripts are what the real app-server wrote, by name.
func transcripts(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	all := map[string][]byte{}
	for _, file := range files {
		if !strings.HasSuffix(file, ".in.jsonl") {
			all[strings.TrimSuffix(filepath.Base(file), ".jsonl")] = golden(t, filepath.Base(file))
		}
	}
	return all
}

func golden(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// spoken are the transcripts as if the fold had asked.
func spoken(t testing.TB) map[string][]byte {
	t.Helper()
	all := transcripts(t)
	for name, output := range all {
		all[name] = addressed(output)
	}
	return all
}

func heard(t testing.TB, name string) []byte {
	t.Helper()
	return addressed(golden(t, name+".jsonl"))
}

// addressed gives the answers in a transcript the ids of our requests, in the order in which those are made: where the
// fold's client was another one, its ids are numbers.
func addressed(output []byte) []byte {
	var f fold
	frames := f.Begin(providertest.Order(1))
	var all []byte
	for line := range bytes.Lines(output) {
		line = renamed(line, asked(frames))
		_, more := f.Receive(providers.Chunk{Stream: providers.Stdout, Offset: int64(len(all)), Data: line})
		all, frames = append(all, line...), append(frames, more...)
	}
	return all
}

// asked are the ids of our requests, in order.
func asked(frames []providers.Frame) (ids []string) {
	for _, frame := range frames {
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

func TestProvider_Conforms(t *testing.T) { providertest.Run(t, Provider(), spoken(t)) }

// play has a fold hear a transcript. It is given the first order; act does what else there was to do, after each line.
func play(t *testing.T, output []byte, first providers.Order, act func(k *talk)) *talk {
	t.Helper()
	k := newTalk(t)
	k.begin(first)
	for line := range bytes.Lines(output) {
		k.say(strings.TrimSuffix(string(line), "\n"))
		if act != nil {
			act(k)
		}
	}
	return k
}

func (k *talk) text(kind string) string {
	var b strings.Builder
	for _, data := range k.told(kind) {
		var c chunk
		_ = json.Unmarshal([]byte(data), &c)
		b.WriteString(c.Content.Text)
	}
	return b.String()
}

// What real turns come to.
func TestGolden_Ends(t *testing.T) {
	for name, want := range map[string]providers.End{
		"text":                        {Outcome: session.Completed},
		"command":                     {Outcome: session.Completed},
		"patch":                       {Outcome: session.Completed},
		"recovered_drop":              {Outcome: session.Completed},
		"nobody_listens":              {Outcome: session.Cancelled, Code: "cancelled"},
		"failed_http_400":             {Outcome: session.Failed},
		"failed_http_401":             {Outcome: session.Failed, Code: "auth"},
		"failed_http_403":             {Outcome: session.Failed, Code: "auth"},
		"failed_http_404":             {Outcome: session.Failed, Code: "config"},
		"failed_http_429":             {Outcome: session.Failed, Code: "capacity"},
		"failed_http_429_usage_limit": {Outcome: session.Failed, Code: "capacity"},
		"failed_http_500":             {Outcome: session.Failed, Code: "transient"},
		"failed_http_503":             {Outcome: session.Failed, Code: "transient"},
		"failed_overloaded":           {Outcome: session.Failed, Code: "capacity"},
		"failed_rate_limit":           {Outcome: session.Failed, Code: "capacity"},
		"failed_context_length":       {Outcome: session.Failed, Code: "config"},
		"failed_drop":                 {Outcome: session.Failed, Code: "transient"},
		"failed_silence":              {Outcome: session.Failed, Code: "transient"},
		"failed_invalid_prompt":       {Outcome: session.Failed},
	} {
		end := play(t, heard(t, name), providertest.Order(1), nil).About().End
		if end == nil || end.Outcome != want.Outcome || end.Code != want.Code {
			t.Errorf("%s ended as %+v, want %+v", name, end, want)
		}
	}
}

func TestGolden_Text(t *testing.T) {
	k := play(t, heard(t, "text"), providertest.Order(1), nil)
	a := k.About()
	if k.text("agent_message_chunk") != "hello world" || a.Conversation == "" || a.Version != Tested || a.Usage.InputTokens != 100 || a.Message == "" {
		t.Errorf("%+v, text %q", a, k.text("agent_message_chunk"))
	}
}

func TestGolden_Tools(t *testing.T) {
	for name, want := range map[string]int{"command": 1, "patch": 1, "code_mode": 2} {
		k := play(t, heard(t, name), providertest.Order(1), nil)
		if calls, ends := len(k.told("tool_call")), len(k.told("tool_call_update")); calls != want || ends != want || k.About().Open != 0 {
			t.Errorf("%s: %d calls, %d updates, %d open", name, calls, ends, k.About().Open)
		}
	}
}

// Events are read by others, so their keys are ACP's and the server's; Go's own spelling would begin with a capital.
func TestGolden_NoKeyIsGos(t *testing.T) {
	for name := range transcripts(t) {
		k := play(t, heard(t, name), providertest.Order(1), nil)
		for _, e := range k.events {
			var data any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			if key := capital(data); key != "" {
				t.Errorf("%s: %s has the key %s: %s", name, e.Type, key, e.Data)
			}
		}
	}
}

// capital is a key that has an upper-case first letter, at any level; "" if there is none.
func capital(v any) string {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if key := capital(one); key != "" {
				return key
			}
		}
	case map[string]any:
		for key, one := range v {
			if key != "" && key[0] >= 'A' && key[0] <= 'Z' {
				return key
			}
			if key := capital(one); key != "" {
				return key
			}
		}
	}
	return ""
}

// It goes on for ever when nobody listens; that it has trouble is all that is known.
func TestGolden_NobodyListens(t *testing.T) {
	troubled := false
	play(t, heard(t, "nobody_listens"), providertest.Order(1), func(k *talk) {
		a := k.About()
		troubled = troubled || a.End == nil && a.Confirmed && !a.Begun && strings.Contains(a.Trouble, "waiting for network")
	})
	if !troubled {
		t.Error("no trouble was told")
	}
}

// driven are recordings of the fold's own conversations, by name: with the first order, and what was done besides.
var driven = map[string]struct {
	first providers.Order
	act   func(k *talk)
	end   providers.End
}{
	"turns":                 {all(1), second, providers.End{Outcome: session.Completed}},
	"command_outlasts_turn": {all(1), second, providers.End{Outcome: session.Completed}},
	"turn_after_interrupt": {all(1), func(k *talk) {
		if k.Order.Turn == "t1" && len(k.Items) == 1 && !k.Stop {
			k.interrupts()
		}
		second(k)
	}, providers.End{Outcome: session.Completed}},
	"started_agents": {all(1), func(k *talk) {
		if k.End != nil && len(k.Others) == 0 {
			second(k)
		}
		if k.Order.Turn == "t2" && len(k.Others) == 1 && len(k.Items) == 1 && k.Items[0].Type == "commandExecution" && !k.Stop {
			k.interrupts()
		}
	}, providers.End{Outcome: session.Cancelled, Code: "cancelled"}},
	"opened": {opening(all(1)), second, providers.End{Outcome: session.Completed}},
	"steered_asking": {asking(1, "none"), func(k *talk) {
		if k.Waiting == "" && k.Prompt == "" {
			return
		}
		k.steers("op-held")
		if len(k.Pending) == 1 {
			k.steers("op-asked")
			k.answers(k.Pending[0].ID, providers.Allow)
		}
	}, providers.End{Outcome: session.Completed}},
	"steered_interrupted": {asking(1, "none"), func(k *talk) {
		if len(k.Pending) == 1 {
			k.steers("op-1")
		}
		if len(k.Steers) == 1 && k.Steers[0].Answered && !k.Stop && k.Order.Turn == "t1" {
			k.interrupts()
		}
		second(k)
	}, providers.End{Outcome: session.Completed}},
	"resumed_own_policy": {asking(2, ""), nil, providers.End{Outcome: session.Completed}},
	"busy":               {all(2), nil, providers.End{Outcome: session.Failed, Code: "busy"}},
	"archived":           {all(2), nil, providers.End{Outcome: session.Failed, Code: "config"}},
	"replaced":           {all(2), nil, providers.End{Outcome: session.Completed}},
	"asked_question":     {all(1), nil, providers.End{Outcome: session.Completed}},
	"lapsed": {asking(1, "none"), func(k *talk) {
		if len(k.Pending) == 1 && !k.Stop {
			k.interrupts()
		}
	}, providers.End{Outcome: session.Cancelled, Code: "cancelled"}},
}

// opening is the order to open the conversation only.
func opening(o providers.Order) providers.Order {
	o.Open = true
	return o
}

func all(n int) providers.Order { return asking(n, "all") }

func asking(n int, approve string) providers.Order {
	o := providertest.Order(n)
	o.Approve = approve
	return o
}

// goesOn is the conversation that a recording resumes; "" if none.
func goesOn(t *testing.T, name string) string {
	t.Helper()
	for line := range bytes.Lines(golden(t, name+".in.jsonl")) {
		var m struct {
			Method string
			Params struct{ ThreadID string }
		}
		if json.Unmarshal(line, &m) == nil && m.Method == "thread/resume" {
			return m.Params.ThreadID
		}
	}
	return ""
}

// second gives the second order once the first is done.
func second(k *talk) {
	if k.Order.Turn == "t1" && k.End != nil {
		k.begin(all(2))
	}
}

// What the fold said to the real agent it says again.
func TestGolden_Driven(t *testing.T) {
	for name, test := range driven {
		t.Run(name, func(t *testing.T) {
			replayed(t, name, test.first, test.act).wantEnd(test.end.Outcome, test.end.Code, "")
		})
	}
}

func TestGolden_Answered(t *testing.T) {
	for name, approve := range map[string]string{"command": "none", "change": "none", "permissions": "edits", "mcp": "edits"} {
		for d, want := range map[providers.Decision]session.Outcome{
			providers.Allow: session.Completed, providers.Deny: session.Completed, providers.Fail: session.Denied,
		} {
			t.Run(name+" "+string(d), func(t *testing.T) {
				replayed(t, "asked_"+name+"_"+string(d), asking(1, approve), func(k *talk) {
					if asked := k.About().Pending; len(asked) > 0 {
						k.answers(asked[0].ID, d)
					}
				}).wantEnd(want, "", "")
			})
		}
	}
}

func replayed(t *testing.T, name string, first providers.Order, act func(k *talk)) *talk {
	t.Helper()
	first.Conversation = goesOn(t, name)
	k := play(t, golden(t, name+".jsonl"), first, act)
	if diff := cmp.Diff(gist(golden(t, name+".in.jsonl")), gist(bytes.Join(data(k.frames), nil))); diff != "" {
		t.Errorf("what was said (-recorded +now)\n%s", diff)
	}
	return k
}

func data(frames []providers.Frame) (all [][]byte) {
	for _, f := range frames {
		all = append(all, f.Data)
	}
	return all
}

// gist is what was said but for the prompts and the conversation, which are those of the recording.
func gist(frames []byte) (all []string) {
	for line := range bytes.Lines(frames) {
		var m map[string]any
		_ = json.Unmarshal(line, &m)
		if params, ok := m["params"].(map[string]any); ok {
			delete(params, "input")
			delete(params, "threadId")
		}
		all = append(all, string(encode(m)))
	}
	return all
}
