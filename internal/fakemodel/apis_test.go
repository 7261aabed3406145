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
	planned, short      string // how a plan is made, and what ends an answer that is as long as it may be
}

var apis = map[string]api{
	"messages": {
		path: "/v1/messages", user: `{"role":"user","content":[{"type":"text","text":"<system-reminder>be</system-reminder>\n"},{"type":"text","text":%}]}`,
		output: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":%}]}`,
		tools:  `{"name":"Bash","input_schema":{"properties":{"command":{},"description":{}}}},{"name":"Write","input_schema":{"properties":{"file_path":{},"content":{}}}}`,
		body:   `{"model":"m","stream":true,"messages":[{"role":"system","content":"The following deferred tools are now available via ToolSearch. Use it:\nCronList\nTaskCreate\n\nRead"},@],"tools":[#]}`,
		text:   `{"delta":{"text":"hello ","type":"text_delta"},"index":0,"type":"content_block_delta"}`,
		call:   `"partial_json":"{\"command\":\"ls\",\"description\":\"scripted\"}"`, ended: `"stop_reason":"end_turn"`,
		tooLong: `"prompt is too long`, planned: `"partial_json":"{\"taskId\":\"1\",\"status\":\"in_progress\"}"`, short: `"stop_reason":"max_tokens"`,
	},
	"chat": {
		path: "/v1/chat/completions", user: `{"role":"user","content":%}`, output: `{"role":"tool","tool_call_id":"t","content":%}`,
		tools: `{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{}}}}},{"type":"function","function":{"name":"write","parameters":{"properties":{"filePath":{}}}}},{"type":"function","function":{"name":"todowrite"}}`,
		body:  `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},@],"tools":[#]}`,
		text:  `"delta":{"content":"hello "}`, call: `"arguments":"{\"command\":\"ls\"}"`, ended: `"finish_reason":"stop"`, tooLong: `"context_length_exceeded"`,
		planned: `\"content\":\"one\"`, short: `"finish_reason":"length"`,
	},
	"gemini": {
		path: "/v1beta/models/m:streamGenerateContent?alt=sse", user: `{"role":"user","parts":[{"text":"<session_context>c</session_context>"},{"text":%}]}`,
		output: `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":%}}}]}`,
		tools:  `{"functionDeclarations":[{"name":"run_shell_command","parametersJsonSchema":{"properties":{"command":{},"description":{}}}},{"name":"write_file","parameters":{"properties":{"file_path":{}}}},{"name":"write_todos"}]}`,
		body:   `{"contents":[@],"tools":[#]}`,
		text:   `"parts":[{"text":"hello "}]`, call: `"functionCall":{"args":{"command":"ls","description":"scripted"},"name":"run_shell_command"}`,
		ended: `"finishReason":"STOP"`, tooLong: `exceeds the maximum number of tokens`,
		planned: `"description":"one"`, short: `"finishReason":"MAX_TOKENS"`,
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
				{"patch: /d/f", 200, []string{`/d/f`, `hello\`}},
				{"patch: *** Begin Patch\n*** End Patch", 200, []string{"no ", a.ended}},
				{"read: /d/f", 200, []string{"no ", "tool ", "is ", "offered ", a.ended}},
				{"plan", 200, []string{a.planned}},
				{"incomplete: max_output_tokens", 200, []string{a.short}},
				{"incomplete: OTHER", 200, []string{`"OTHER"`}},
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

// What is asked without a stream is answered at once, with the same.
func TestAPIs_AnswerAtOnce(t *testing.T) {
	for name, a := range apis {
		t.Run(name, func(t *testing.T) {
			s := New(t, Options{})
			a.path = strings.Replace(a.path, "streamGenerateContent?alt=sse", "generateContent", 1)
			a.body = strings.Replace(a.body, `"stream":true,`, "", 1)
			for _, tt := range []struct {
				prompt string
				status int
				has    string
			}{
				{"respond with exactly: hello world", 200, `"hello world"`},
				{"shell: ls", 200, "scripted"},
				{"incomplete: max_output_tokens", 200, a.short},
				{"fail: odd so", 500, "odd"},
				{"drop: hello world", 0, "EOF"},
				{"http: 503", 503, "the script says 503"},
			} {
				status, reply := a.ask(t, s, strings.Replace(a.tools, `"properties":{"command":{}}`, `"properties":{"command":{},"description":{}}`, 1), tt.prompt)
				if status != tt.status || !strings.Contains(reply, tt.has) {
					t.Errorf("%q: %d, no %s in %s", tt.prompt, status, tt.has, reply)
				}
			}
		})
	}
}
