package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// This file is OpenAI's Responses API, as much of it as Codex uses: one POST a step, answered by a stream of
// server-sent events.

// responses is a request. The whole conversation is in Input.
type responses struct {
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Input  []responsesItem `json:"input"`
	Tools  []object        `json:"tools"`
	Thread string          `json:"prompt_cache_key"`
}

// responsesItem is a message, a call, or a tool's output.
type responsesItem struct {
	Type    string         `json:"type"`
	Role    string         `json:"role"`
	Content responsesTexts `json:"content"`
	Output  responsesTexts `json:"output"`
}

// responsesTexts is a text, on the wire a string or a list of parts. Parts of other kinds have none.
type responsesTexts string

// UnmarshalJSON takes either form.
func (t *responsesTexts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*t += responsesTexts(p.Text)
	}
	return nil
}

func decodeResponses(request *http.Request, body []byte) (dialogue, error) {
	var r responses
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	if !r.Stream {
		return nil, fmt.Errorf("decode the request: it asks for no stream")
	}
	if thread := request.Header.Get("Thread-Id"); thread != "" {
		r.Thread = thread
	}
	return r, nil
}

func (r responses) question() question {
	var t talk
	for _, item := range r.Input {
		switch {
		case item.Role == "user":
			t.user(string(item.Content))
		case strings.HasSuffix(item.Type, "_output"):
			t.tool(string(item.Output))
		}
	}
	q := t.question(r.Model, r.Thread)
	q.side = len(r.Tools) == 0 && !r.codeMode() && !strings.HasPrefix(q.prompt, compaction)
	return q
}

// codeMode says that the model has one tool, which runs JavaScript, and the others are functions of that.
func (r responses) codeMode() bool {
	return len(r.Input) > 0 && r.Input[0].Type == "additional_tools"
}

func (responses) refuse(a *answer, status int, kind, message string) {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.WriteHeader(status)
	body := object{"message": message, "type": kind, "code": nil}
	if kind == "usage_limit_reached" {
		body["resets_at"] = 4102444800 // 2100
	}
	a.write(encode(object{"error": body}))
}

func (r responses) play(a *answer, st step) {
	switch st.kind {
	case status:
		if st.text != "" {
			a.w.Header().Set("Retry-After", st.text)
		}
		r.refuse(a, st.number, st.name, fmt.Sprintf("the script says %d", st.number))
	case hangHeaders:
		a.hang()
	default:
		a.w.Header().Set("Content-Type", "text/event-stream")
		s := &responsesStream{answer: a, response: a.id("resp")}
		s.send("response.created", object{"response": object{"id": s.response}})
		s.play(r, st)
	}
}

// object is a JSON object.
type object = map[string]any

// encode is for values that have a JSON form.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// responsesStream is a stream of events, whose answer has begun.
type responsesStream struct {
	*answer
	response string // its id
	items    int    // sent so far
}

func (s *responsesStream) send(event string, data object) {
	data["type"] = event
	s.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, encode(data)))
}

func (s *responsesStream) play(r responses, st step) {
	switch st.kind {
	case hangBody:
		s.hang()
	case fail:
		s.end("response.failed", object{"status": "failed", "error": object{"code": st.name, "message": st.text}})
	case incomplete:
		s.end("response.incomplete", object{"status": "incomplete", "incomplete_details": object{"reason": st.text}})
	case say:
		s.think(st)
		s.say(st)
		s.complete(st)
	default:
		s.item(r.call(st, s.id))
		s.complete(st)
	}
}

// stop goes no further with a step.
func (s *responsesStream) stop(st step) {
	if st.silent {
		s.hang()
	}
	s.cut()
}

func (s *responsesStream) end(event string, response object) {
	response["id"] = s.response
	s.send(event, object{"response": response})
}

func (s *responsesStream) complete(st step) {
	if st.cut != never {
		s.stop(st)
	}
	in, out := st.used()
	s.end("response.completed", object{"usage": object{
		"input_tokens": in, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": out, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": in + out,
	}})
}

// item sends one that is whole.
func (s *responsesStream) item(item object) {
	s.send("response.output_item.done", object{"output_index": s.items, "item": item})
	s.items++
}

func (s *responsesStream) begin(item object) {
	s.send("response.output_item.added", object{"output_index": s.items, "item": item})
}

// delta sends a part of the item that has begun.
func (s *responsesStream) delta(event, item, index string, text string) {
	s.send(event, object{"item_id": item, "output_index": s.items, index: 0, "delta": text})
}

func (s *responsesStream) say(st step) {
	id := s.id("msg")
	message := func(status string, content ...object) object {
		return object{"type": "message", "id": id, "role": "assistant", "status": status, "content": append([]object{}, content...)}
	}
	s.begin(message("in_progress"))
	for i, part := range st.parts() {
		if i > 0 {
			s.pause(st.pause)
		}
		s.delta("response.output_text.delta", id, "content_index", part)
	}
	if st.cut == inItem {
		s.stop(st)
	}
	s.item(message("completed", object{"type": "output_text", "text": st.text, "annotations": []object{}}))
}

func (s *responsesStream) think(st step) {
	if st.reasoning == "" {
		return
	}
	id := s.id("rs")
	s.begin(object{"type": "reasoning", "id": id, "summary": []object{}})
	s.send("response.reasoning_summary_part.added", object{"item_id": id, "output_index": s.items, "summary_index": 0})
	if st.cut == inThought {
		s.delta("response.reasoning_summary_text.delta", id, "summary_index", firstWord(st.reasoning))
		s.stop(st)
	}
	s.delta("response.reasoning_summary_text.delta", id, "summary_index", st.reasoning)
	s.item(object{
		"type": "reasoning", "id": id, "encrypted_content": "opaque",
		"summary": []object{{"type": "summary_text", "text": st.reasoning}},
	})
}

// yield is how long Codex may wait for a command before it says that it runs: the longest that it allows.
const yield = 30_000

// call is the item of a step that calls a tool, by the names that Codex gives its tools.
func (r responses) call(st step, id func(string) string) object {
	name, args, free := st.name, st.text, st.kind == custom
	switch st.kind {
	case command:
		name, args = "exec_command", string(encode(execCommand(st)))
	case poll:
		name, args = "write_stdin", string(encode(object{"session_id": st.number, "chars": "", "yield_time_ms": yield}))
	case patch:
		name, free = "apply_patch", true
	case write:
		name, args, free = "apply_patch", adding(st.name), true
	case read:
		name, args = "exec_command", string(encode(object{"cmd": "cat '" + st.text + "'"}))
	case plan:
		name, args = "update_plan", string(encode(todos("update_plan")))
	}
	if r.codeMode() && st.kind != tool && st.kind != custom {
		name, args, free = "exec", javascript(name, args, free), true
	}
	item := object{"type": "function_call", "id": id("fc"), "call_id": id("call"), "name": name, "arguments": args}
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		item["namespace"], item["name"] = namespace, name
	}
	if free {
		item = object{"type": "custom_tool_call", "id": id("ctc"), "call_id": id("call"), "name": name, "input": args, "status": "completed"}
	}
	return item
}

func execCommand(st step) object {
	args := object{"cmd": st.text, "yield_time_ms": yield}
	if st.escalated {
		args["sandbox_permissions"], args["justification"] = "require_escalated", "the script wants it"
	}
	return args
}

// javascript calls a tool in code mode. A tool that takes free input gets it as a string.
func javascript(name, args string, free bool) string {
	if free {
		args = string(encode(args))
	}
	return fmt.Sprintf("const r = await tools.%s(%s); text(typeof r === 'string' ? r : JSON.stringify(r));", name, args)
}
