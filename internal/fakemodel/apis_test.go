package fakemodel

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// api is one of those that are spoken in the same words: how a conversation looks in it.
type api struct {
	path                string
	user, output, tools string // of an entry with %; of what is offered
	body                string // around the entries, @, and the tools, #
	text, call, ended   string // found in answers
	tooLong             string
}

var apis = map[string]api{
	"messages": {
		path: "/v1/messages", user: `{"role":"user","content":[{"type":"text","text":"<system-reminder>be</system-reminder>\n"},{"type":"text","text":%}]}`,
		output: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":%}]}`,
		tools:  `{"name":"Bash","input_schema":{"properties":{"command":{},"description":{}}}},{"name":"Write","input_schema":{"properties":{"file_path":{},"content":{}}}}`,
		body:   `{"model":"m","stream":true,"messages":[@],"tools":[#]}`,
		text:   `{"delta":{"text":"hello ","type":"text_delta"},"index":0,"type":"content_block_delta"}`,
		call:   `"partial_json":"{\"command\":\"ls\",\"description\":\"scripted\"}"`, ended: `"stop_reason":"end_turn"`,
		tooLong: `"prompt is too long`,
	},
	"chat": {
		path: "/v1/chat/completions", user: `{"role":"user","content":%}`, output: `{"role":"tool","tool_call_id":"t","content":%}`,
		tools: `{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{}}}}},{"type":"function","function":{"name":"write","parameters":{"properties":{"filePath":{}}}}}`,
		body:  `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},@],"tools":[#]}`,
		text:  `"delta":{"content":"hello "}`, call: `"arguments":"{\"command\":\"ls\"}"`, ended: `"finish_reason":"stop"`, tooLong: `"context_length_exceeded"`,
	},
	"gemini": {
		path: "/v1beta/models/m:streamGenerateContent?alt=sse", user: `{"role":"user","parts":[{"text":"<session_context>c</session_context>"},{"text":%}]}`,
		output: `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":%}}}]}`,
		tools:  `{"functionDeclarations":[{"name":"run_shell_command","parametersJsonSchema":{"properties":{"command":{},"description":{}}}},{"name":"write_file","parameters":{"properties":{"file_path":{}}}}]}`,
		body:   `{"contents":[@],"tools":[#]}`,
		text:   `"parts":[{"text":"hello "}]`, call: `"functionCall":{"args":{"command":"ls","description":"scripted"},"name":"run_shell_command"}`,
		ended: `"finishReason":"STOP"`, tooLong: `exceeds the maximum number of tokens`,
	},
}

// ask posts entries of a conversation, each a text of the user's or, behind "=", what a tool answered.
func (a api) ask(t *testing.T, s *Server, tools string, entries ...string) (status int, reply string) {
	t.Helper()
	var all []string
	for _, e := range entries {
		form := a.user
		if rest, ok := strings.CutPrefix(e, "="); ok {
			form, e = a.output, rest
		}
		all = append(all, strings.Replace(form, "%", string(encode(e)), 1))
	}
	body := strings.Replace(strings.Replace(a.body, "#", tools, 1), "@", strings.Join(all, ","), 1)
	r, err := http.Post(strings.TrimSuffix(s.URL(), "/v1")+a.path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return r.StatusCode, string(data) + "\nbroken"
	}
	return r.StatusCode, string(data)
}

func TestAPIs_SpeakTheSameWords(t *testing.T) {
	for name, a := range apis {
		t.Run(name, func(t *testing.T) {
			s := New(t, Options{})
			for _, tt := range []struct {
				prompt string
				status int
				has    []string
			}{
				{"respond with exactly: hello world", 200, []string{a.text, a.ended}},
				{"shell: ls", 200, []string{a.call}},
				{"write: /d/f", 200, []string{`/d/f`, `hello\`}},
				{"reason: hm", 200, []string{"hm", "done"}},
				{"http: 429 7", 429, []string{"the script says 429"}},
				{"http: 401", 401, []string{"the script says 401"}},
				{"fail: context_length_exceeded x", 400, []string{a.tooLong}},
				{"drop: hello world", 200, []string{a.text, "\nbroken"}},
				{"usage: 1000", 200, []string{"990", "10"}},
				{"shell:  spaces \u2028 ", 200, []string{"spaces"}},
			} {
				status, reply := a.ask(t, s, a.tools, tt.prompt)
				for _, want := range tt.has {
					if status != tt.status || !strings.Contains(reply, want) {
						t.Errorf("%q: %d, no %s in %s", tt.prompt, status, want, reply)
					}
				}
			}
			if found := s.Mistakes(); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

func TestAPIs_NoteWhatWasAsked(t *testing.T) {
	for name, a := range apis {
		t.Run(name, func(t *testing.T) {
			s := New(t, Options{})
			a.ask(t, s, a.tools, "one", "shell: ls")
			if _, reply := a.ask(t, s, a.tools, "one", "shell: ls", "=made"); !strings.Contains(reply, "made") {
				t.Error(reply)
			}
			a.ask(t, s, a.tools, "one", "shell: ls", "=made", "two")
			a.ask(t, s, "", "a title for: one") // an agent's own, and of no turn
			var got []Request
			for _, r := range s.Requests() {
				got = append(got, Request{Prompt: r.Prompt, Earlier: r.Earlier, FollowUp: r.FollowUp, Output: r.Output})
			}
			want := []Request{
				{Prompt: "shell: ls", Earlier: []string{"one"}}, {Prompt: "shell: ls", Earlier: []string{"one"}, FollowUp: true, Output: "made"},
				{Prompt: "two", Earlier: []string{"one", "shell: ls"}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
