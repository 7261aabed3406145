package fakemodel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ask posts a conversation of the given items, as JSON, and returns the reply.
func ask(t *testing.T, s *Server, thread string, items ...string) *http.Response {
	t.Helper()
	body := `{"model":"m","stream":true,"tools":[{}],"prompt_cache_key":"from-body","input":[` + strings.Join(items, ",") + `]}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if thread != "" {
		r.Header.Set("thread-id", thread)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reply.Body.Close() })
	return reply
}

func user(text string) string {
	return string(encode(object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": text}}}))
}

func output(text string) string {
	return string(encode(object{"type": "function_call_output", "call_id": "c", "output": text}))
}

// event is one of the stream, as far as tests look.
type event struct {
	Type  string
	Delta string
	Item  struct {
		Type, ID, Namespace, Name, Arguments, Input string
		CallID                                      string `json:"call_id"`
		Content, Summary                            []struct{ Text string }
	}
	Response struct {
		ID    string
		Error struct{ Code, Message string }
		Usage struct {
			Total int `json:"total_tokens"`
		}
		Incomplete struct{ Reason string } `json:"incomplete_details"`
	}
}

// events reads a stream to its end, which is io.EOF or, if it was cut, another error.
func events(t *testing.T, reply *http.Response) (all []event, err error) {
	t.Helper()
	raw, err := io.ReadAll(reply.Body)
	blocks := strings.Split(string(raw), "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		name, data, _ := strings.Cut(block, "\n")
		var e event
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil {
			t.Fatalf("%q: %v", block, err)
		}
		if name != "event: "+e.Type {
			t.Errorf("%q says %s in its data", name, e.Type)
		}
		all = append(all, e)
	}
	return all, err
}

func types(all []event) (names []string) {
	for _, e := range all {
		names = append(names, strings.TrimPrefix(e.Type, "response."))
	}
	return names
}

// whole reads a stream that is not cut.
func whole(t *testing.T, reply *http.Response) []event {
	t.Helper()
	all, err := events(t, reply)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestResponses_Text(t *testing.T) {
	reply := ask(t, New(t, Options{}), "", user("respond with exactly: one two"))
	if got := reply.Header.Get("Content-Type"); reply.StatusCode != 200 || got != "text/event-stream" {
		t.Errorf("%d, %s", reply.StatusCode, got)
	}
	all := whole(t, reply)
	want := []string{"created", "output_item.added", "output_text.delta", "output_text.delta", "output_item.done", "completed"}
	if diff := cmp.Diff(want, types(all)); diff != "" {
		t.Fatal(diff)
	}
	if all[2].Delta != "one " || all[3].Delta != "two" || all[4].Item.Content[0].Text != "one two" {
		t.Errorf("%+v", all)
	}
	if all[1].Item.ID != all[4].Item.ID || all[0].Response.ID != all[5].Response.ID || all[5].Response.ID == "" {
		t.Errorf("ids do not match: %+v", all)
	}
	if all[5].Response.Usage.Total != 110 {
		t.Errorf("%+v", all[5].Response)
	}
}

func TestResponses_Reasoning(t *testing.T) {
	all := whole(t, ask(t, New(t, Options{}), "", user("reason: well")))
	if got := all[4].Item; got.Type != "reasoning" || got.Summary[0].Text != "well" || all[3].Delta != "well" {
		t.Errorf("%+v", all)
	}
	if got := all[7].Item; got.Type != "message" || got.Content[0].Text != "done" {
		t.Errorf("%+v", all)
	}
}

func TestResponses_Calls(t *testing.T) {
	s := New(t, Options{})
	const code = `{"type":"additional_tools"}`
	for _, test := range []struct {
		items                   []string
		kind, name, args, input string
	}{
		{[]string{user("shell: ls")}, "function_call", "exec_command", `{"cmd":"ls","yield_time_ms":30000}`, ""},
		{[]string{user("shell-escalated: ls")}, "function_call", "exec_command",
			`{"cmd":"ls","justification":"the script wants it","sandbox_permissions":"require_escalated","yield_time_ms":30000}`, ""},
		{[]string{user("sleep 60"), output("Process running with session ID 7")}, "function_call", "write_stdin",
			`{"chars":"","session_id":7,"yield_time_ms":30000}`, ""},
		{[]string{user("patch: p")}, "custom_tool_call", "apply_patch", "", "*** Begin Patch\n*** Add File: p\n+hello\n*** End Patch"},
		{[]string{user(`tool: x {"a":1}`)}, "function_call", "x", `{"a":1}`, ""},
		{[]string{user(`tool: space/x {"a":1}`)}, "function_call", "space x", `{"a":1}`, ""},
		{[]string{user("custom: x\nfree\ninput")}, "custom_tool_call", "x", "", "free\ninput"},
		{[]string{code, user("shell: ls")}, "custom_tool_call", "exec", "", javascript("exec_command", `{"cmd":"ls","yield_time_ms":30000}`, false)},
		{[]string{code, user("patch: p")}, "custom_tool_call", "exec", "",
			javascript("apply_patch", "*** Begin Patch\n*** Add File: p\n+hello\n*** End Patch", true)},
	} {
		all := whole(t, ask(t, s, "", test.items...))
		if diff := cmp.Diff([]string{"created", "output_item.done", "completed"}, types(all)); diff != "" {
			t.Error(diff)
			continue
		}
		got := all[1].Item
		if got.Type != test.kind || strings.TrimSpace(got.Namespace+" "+got.Name) != test.name || got.Arguments != test.args || got.Input != test.input || got.CallID == "" || got.ID == "" {
			t.Errorf("%s: %+v", test.items, got)
		}
	}
}

func TestResponses_AfterATool(t *testing.T) {
	s := New(t, Options{})
	list := `{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}`
	all := whole(t, ask(t, s, "", user("shell: ls"), output("earlier"), list))
	if got := all[len(all)-2].Item.Content[0].Text; got != "tool said: ab" {
		t.Error(got)
	}
	all = whole(t, ask(t, s, "", user("shell: ls"), output("earlier"), user("respond with exactly: steered")))
	if got := all[len(all)-2].Item.Content[0].Text; got != "steered" {
		t.Error(got)
	}
}

func TestResponses_HTTPErrors(t *testing.T) {
	s := New(t, Options{})
	reply := ask(t, s, "", user("http: 429 3"))
	if reply.StatusCode != 429 || reply.Header.Get("Retry-After") != "3" {
		t.Errorf("%d, %v", reply.StatusCode, reply.Header)
	}
	reply = ask(t, s, "", user("http: 429 usage_limit_reached"))
	var body struct {
		Error struct {
			Type, Message string
			ResetsAt      int64 `json:"resets_at"`
		}
	}
	if err := json.NewDecoder(reply.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	if e := body.Error; reply.StatusCode != 429 || e.Type != "usage_limit_reached" || e.ResetsAt == 0 || e.Message == "" || reply.Header.Get("Retry-After") != "" {
		t.Errorf("%d, %+v", reply.StatusCode, body)
	}
	if reply = ask(t, s, "", user("slow: x")); reply.StatusCode != 400 || len(s.Mistakes()) != 1 {
		t.Errorf("a malformed script: %d, %q", reply.StatusCode, s.Mistakes())
	}
}

func TestResponses_Once(t *testing.T) {
	s := New(t, Options{})
	first := user("http-once: 500")
	for i, test := range []struct {
		thread string
		items  []string
		status int
	}{
		{"a", []string{first}, 500},
		{"a", []string{first}, 200},
		{"b", []string{first}, 500},        // another thread
		{"a", []string{first, first}, 500}, // the same prompt in a later turn
		{"a", []string{first, first}, 200},
		{"", []string{first}, 500}, // no header: the thread is in the body
		{"from-body", []string{first}, 200},
	} {
		if got := ask(t, s, test.thread, test.items...).StatusCode; got != test.status {
			t.Errorf("request %d: %d", i, got)
		}
	}
	if got := s.Requests(); got[0].Retry || !got[1].Retry || got[5].Thread != "from-body" {
		t.Errorf("%+v", got)
	}
}

func TestResponses_Cut(t *testing.T) {
	s := New(t, Options{})
	for prompt, want := range map[string][]string{
		"drop: one two":       {"created", "output_item.added", "output_text.delta"},
		"drop-late: one":      {"created", "output_item.added", "output_text.delta", "output_item.done"},
		"shell: true ##drop":  {"created", "output_item.done"},
		"drop-once: one two":  {"created", "output_item.added", "output_text.delta"},
		"drop-late-once: one": {"created", "output_item.added", "output_text.delta", "output_item.done"},
	} {
		all, err := events(t, ask(t, s, "", user(prompt)))
		if diff := cmp.Diff(want, types(all)); err == nil || diff != "" {
			t.Errorf("%q: %v\n%s", prompt, err, diff)
		}
	}
	for _, prompt := range []string{"drop-once: one two", "drop-late-once: one"} {
		all := whole(t, ask(t, s, "", user(prompt)))
		if last := all[len(all)-1]; last.Type != "response.completed" {
			t.Errorf("%q again ends with %s", prompt, last.Type)
		}
	}
}

func TestResponses_Failures(t *testing.T) {
	s := New(t, Options{})
	all := whole(t, ask(t, s, "", user("fail: rate_limit_exceeded try again in 1.5s")))
	if got := all[1].Response; all[1].Type != "response.failed" || got.Error.Code != "rate_limit_exceeded" || got.Error.Message != "try again in 1.5s" {
		t.Errorf("%+v", all)
	}
	all = whole(t, ask(t, s, "", user("incomplete: max_output_tokens")))
	if got := all[1].Response; all[1].Type != "response.incomplete" || got.Incomplete.Reason != "max_output_tokens" {
		t.Errorf("%+v", all)
	}
	all = whole(t, ask(t, s, "", user("usage: 250000")))
	if got := all[len(all)-1].Response.Usage.Total; got != 250000 {
		t.Errorf("usage is %d", got)
	}
}

func TestResponses_Big(t *testing.T) {
	all := whole(t, ask(t, New(t, Options{}), "", user("big: 1000000 65536")))
	var text strings.Builder
	for _, e := range all {
		text.WriteString(e.Delta)
	}
	if got := all[len(all)-2].Item.Content[0].Text; len(got) != 1_000_000 || got != text.String() || len(all) != 4+16 {
		t.Errorf("%d events, %d bytes in deltas, %d in the item", len(all), text.Len(), len(got))
	}
}
