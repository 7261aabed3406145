package fakemodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// This file is Anthropic's Messages API, as much of it as Claude Code uses: one POST a step, answered by a stream of
// server-sent events, or at once.

// messages is a request.
type messages struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string         `json:"role"`
		Content messagesBlocks `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	thread string
}

// messagesBlock is a part of a message: a text, or what a tool answered.
type messagesBlock struct {
	Type    string         `json:"type"`
	Text    string         `json:"text"`
	Content messagesBlocks `json:"content"`
}

// messagesBlocks are a list of parts, or a string, which is one text.
type messagesBlocks []messagesBlock

// UnmarshalJSON takes either form.
func (b *messagesBlocks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*b = messagesBlocks{{Type: "text"}}
		return json.Unmarshal(data, &(*b)[0].Text)
	}
	return json.Unmarshal(data, (*[]messagesBlock)(b))
}

func (b messagesBlocks) text() (text string) {
	for _, block := range b {
		text += block.Text
	}
	return text
}

func decodeMessages(r *http.Request, body []byte) (dialogue, error) {
	m := messages{thread: r.Header.Get("X-Claude-Code-Session-Id")}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	return m, nil
}

func (m messages) question() question {
	var t talk
	for _, message := range m.Messages {
		if message.Role != "user" {
			continue
		}
		for _, block := range message.Content {
			if block.Type == "tool_result" {
				t.tool(block.Content.text())
				continue
			}
			t.user(block.Text)
		}
	}
	q := t.question(m.Model, m.thread)
	q.side = len(m.Tools) == 0
	return q
}

func (m messages) tools() tools {
	t := tools{}
	for _, tool := range m.Tools {
		t.offer(tool.Name, tool.Schema)
	}
	for _, message := range m.Messages {
		offerDeferred(t, message.Content.text())
	}
	return t
}

// offerDeferred notes the tools whose schemas Claude Code keeps back: it tells their names, each on a line behind such a sentence, and
// takes calls of them all the same.
func offerDeferred(t tools, text string) {
	_, told, ok := strings.Cut(text, "The following deferred tools are now available")
	if !ok {
		return
	}
	list, _, _ := strings.Cut(told, "\n\n")
	for _, name := range strings.Split(list, "\n")[1:] {
		t.offer(name, nil)
	}
}

// messagesErrors are the API's names of errors by their status.
var messagesErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
	429: "rate_limit_error", 529: "overloaded_error",
}

func (messages) refuse(a *answer, status int, kind, message string) {
	kind = cmp.Or(kind, messagesErrors[status], "api_error")
	a.plain(status, object{"type": "error", "error": object{"type": kind, "message": message}})
}

func (m messages) play(a *answer, st step) {
	switch {
	case st.kind == status:
		a.status(st, m.refuse)
	case st.tooLong():
		m.refuse(a, http.StatusBadRequest, "", "prompt is too long: 250000 tokens > 200000 maximum")
	case !m.Stream && st.kind == fail:
		m.refuse(a, http.StatusInternalServerError, st.name, st.text)
	case st.kind == hangHeaders:
		a.hang()
	case !m.Stream: // it asks so when a stream broke off
		a.unbroken(st)
		a.plain(http.StatusOK, m.whole(a, m.tools().can(st)))
	default:
		s := &messagesStream{sse: a.stream()}
		s.event("message_start", object{"message": m.message(a, st, []object{}, nil)})
		s.play(m, m.tools().can(st))
	}
}

// whole is a message that comes at once.
func (m messages) whole(a *answer, st step) object {
	content, reason := []object{{"type": "text", "text": st.text}}, "end_turn"
	if st.kind == incomplete {
		content, reason = []object{}, st.reasonOf("max_tokens", "refusal")
	}
	for i, c := range m.tools().calls(st) {
		content, reason = append(content[:i], m.call(a, c, json.RawMessage(c.args))), "tool_use"
	}
	message := m.message(a, st, content, reason)
	_, message["usage"].(object)["output_tokens"] = st.used()
	return message
}

func (messages) call(a *answer, c toolCall, input any) object {
	return object{"type": "tool_use", "id": a.id("toolu"), "name": c.name, "input": input}
}

func (m messages) message(a *answer, st step, content []object, stop any) object {
	in, _ := st.used()
	return object{
		"id": a.id("msg"), "type": "message", "role": "assistant", "model": m.Model, "content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": object{"input_tokens": in, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
	}
}

// messagesStream is a stream whose message has begun.
type messagesStream struct {
	sse
	blocks int // sent so far
}

func (s *messagesStream) play(m messages, st step) {
	switch st.kind {
	case hangBody:
		s.hang()
	case fail:
		s.event("error", object{"error": object{"type": st.name, "message": st.text}})
	case incomplete:
		s.end(st, st.reasonOf("max_tokens", "refusal"))
	case say:
		s.think(st)
		s.text(st)
		s.end(st, "end_turn")
	default:
		for _, c := range m.tools().calls(st) {
			s.block(m.call(s.answer, c, object{}), func() { s.delta(object{"type": "input_json_delta", "partial_json": c.args}) })
		}
		s.end(st, "tool_use")
	}
}

func (s *messagesStream) text(st step) {
	s.block(object{"type": "text", "text": ""}, func() {
		s.parts(st, func(part string) { s.delta(object{"type": "text_delta", "text": part}) })
	})
}

func (s *messagesStream) think(st step) {
	text, whole := st.thought()
	if text == "" {
		return
	}
	s.block(object{"type": "thinking", "thinking": "", "signature": ""}, func() {
		s.delta(object{"type": "thinking_delta", "thinking": text})
		if !whole {
			s.stop(st)
		}
		s.delta(object{"type": "signature_delta", "signature": "opaque"})
	})
}

func (s *messagesStream) block(begin object, send func()) {
	s.event("content_block_start", object{"index": s.blocks, "content_block": begin})
	send()
	s.event("content_block_stop", object{"index": s.blocks})
	s.blocks++
}

func (s *messagesStream) delta(d object) {
	s.event("content_block_delta", object{"index": s.blocks, "delta": d})
}

func (s *messagesStream) end(st step, reason string) {
	if st.cut != never {
		s.stop(st)
	}
	_, out := st.used()
	s.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": out}})
	s.event("message_stop", object{})
}
