package fakemodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// This file is OpenAI's chat completions API, as much of it as OpenCode and pi use.

// chat is a request.
type chat struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string         `json:"role"`
		Content responsesTexts `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	thread string
}

func decodeChat(r *http.Request, body []byte) (dialogue, error) {
	c := chat{thread: cmp.Or(r.Header.Get("X-Session-Id"), r.Header.Get("X-Session-Affinity"))}
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	return c, nil
}

func (c chat) question() question {
	var t talk
	for _, message := range c.Messages {
		switch message.Role {
		case "user":
			t.user(string(message.Content))
		case "tool":
			t.tool(string(message.Content))
		}
	}
	q := t.question(c.Model, c.thread)
	q.side = len(c.Tools) == 0
	return q
}

func (c chat) tools() tools {
	t := tools{}
	for _, tool := range c.Tools {
		t.offer(tool.Function.Name, tool.Function.Parameters)
	}
	return t
}

func (chat) refuse(a *answer, status int, kind, message string) {
	code := cmp.Or(kind, fmt.Sprint(status))
	a.plain(status, object{"error": object{"message": message, "type": cmp.Or(kind, "server_error"), "code": code}})
}

func (c chat) play(a *answer, st step) {
	switch {
	case st.kind == status:
		a.status(st, c.refuse)
	case st.tooLong():
		c.refuse(a, http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is 100000 tokens.")
	case st.kind == hangHeaders:
		a.hang()
	case !c.Stream && st.kind == fail:
		c.refuse(a, http.StatusInternalServerError, st.name, st.text)
	case !c.Stream:
		a.unbroken(st)
		a.plain(http.StatusOK, c.whole(a, c.tools().can(st)))
	default:
		s := &chatStream{sse: a.stream(), id: a.id("chatcmpl"), model: c.Model}
		s.delta(object{"role": "assistant", "content": ""})
		s.play(c.tools().can(st), c.tools())
	}
}

// whole is an answer that comes at once.
func (c chat) whole(a *answer, st step) object {
	message, reason := object{"role": "assistant", "content": st.text}, "stop"
	if st.kind == incomplete {
		message["content"], reason = "", st.reasonOf("length", "content_filter")
	}
	if calls := c.tools().calls(st); len(calls) > 0 {
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []object{chatCall(a, calls[0], calls[0].args)}}, "tool_calls"
	}
	return object{
		"id": a.id("chatcmpl"), "object": "chat.completion", "created": 1, "model": c.Model, "usage": chatUsage(st),
		"choices": []object{{"index": 0, "message": message, "finish_reason": reason}},
	}
}

func chatCall(a *answer, c toolCall, args string) object {
	return object{"index": 0, "id": a.id("call"), "type": "function", "function": object{"name": c.name, "arguments": args}}
}

func chatUsage(st step) object {
	in, out := st.used()
	return object{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out, "prompt_tokens_details": object{"cached_tokens": 0},
	}
}

// chatStream is a stream whose message has begun.
type chatStream struct {
	sse
	id, model string
}

func (s *chatStream) play(st step, t tools) {
	switch st.kind {
	case hangBody:
		s.hang()
	case fail:
		s.data(object{"error": object{"message": st.text, "type": st.name, "code": st.name}})
	case incomplete:
		s.end(st, st.reasonOf("length", "content_filter"))
	case say:
		s.think(st)
		s.parts(st, func(part string) { s.delta(object{"content": part}) })
		s.end(st, "stop")
	default:
		c := t.calls(st)[0]
		s.delta(object{"tool_calls": []object{chatCall(s.answer, c, "")}})
		s.delta(object{"tool_calls": []object{{"index": 0, "function": object{"arguments": c.args}}}})
		s.end(st, "tool_calls")
	}
}

func (s *chatStream) think(st step) {
	text, whole := st.thought()
	if text != "" {
		s.delta(object{"reasoning_content": text})
	}
	if !whole {
		s.stop(st)
	}
}

func (s *chatStream) delta(d object) {
	s.chunk([]object{{"index": 0, "delta": d, "finish_reason": nil}}, nil)
}

func (s *chatStream) chunk(choices []object, usage any) {
	s.data(object{"id": s.id, "object": "chat.completion.chunk", "created": 1, "model": s.model, "choices": choices, "usage": usage})
}

func (s *chatStream) end(st step, reason string) {
	if st.cut != never {
		s.stop(st)
	}
	s.chunk([]object{{"index": 0, "delta": object{}, "finish_reason": reason}}, nil)
	s.chunk([]object{}, chatUsage(st))
	s.write([]byte("data: [DONE]\n\n"))
}
