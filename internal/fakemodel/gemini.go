package fakemodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// This file is Gemini's API, as much of it as Gemini CLI uses: one POST a step, to a path that has the model's name and ends in
// what is done.

// gemini is a request.
type gemini struct {
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		Functions []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
			Schema     json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Schema json.RawMessage `json:"responseJsonSchema"`
	} `json:"generationConfig"`
	model  string
	stream bool
}

// geminiPart is a text, a thought of the model's, or what a tool answered.
type geminiPart struct {
	Text     string `json:"text"`
	Thought  bool   `json:"thought"`
	Response *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

func decodeGemini(r *http.Request, body []byte) (dialogue, error) {
	model, action, _ := strings.Cut(r.PathValue("action"), ":")
	g := gemini{model: model, stream: action == "streamGenerateContent"}
	if err := json.Unmarshal(body, &g); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	return g, nil
}

func (g gemini) question() question {
	var t talk
	for _, content := range g.Contents {
		if content.Role != "user" {
			continue
		}
		for _, part := range content.Parts {
			if part.Response != nil {
				t.tool(geminiOutput(part.Response.Response))
				continue
			}
			t.user(part.Text)
		}
	}
	q := t.question(g.model, "")
	q.side = len(g.Tools) == 0
	return q
}

// geminiOutput is what a tool said, of whatever form.
func geminiOutput(response json.RawMessage) string {
	var r struct{ Output, Error string }
	_ = json.Unmarshal(response, &r)
	return cmp.Or(r.Output, r.Error, string(response))
}

func (g gemini) tools() tools {
	t := tools{}
	for _, tool := range g.Tools {
		for _, f := range tool.Functions {
			t.offer(f.Name, json.RawMessage(cmp.Or(string(f.Schema), string(f.Parameters))))
		}
	}
	return t
}

// geminiErrors are the API's names of errors by their status.
var geminiErrors = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
	503: "UNAVAILABLE",
}

func (gemini) refuse(a *answer, status int, kind, message string) {
	a.plain(status, object{"error": object{"code": status, "message": message, "status": cmp.Or(kind, geminiErrors[status], "UNKNOWN")}})
}

func (g gemini) play(a *answer, st step) {
	switch {
	case st.kind == status:
		a.status(st, g.refuse)
	case st.tooLong():
		g.refuse(a, http.StatusBadRequest, "", "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).")
	case st.kind == hangHeaders:
		a.hang()
	case !g.stream && st.kind == fail:
		g.refuse(a, http.StatusInternalServerError, st.name, st.text)
	case !g.stream:
		a.unbroken(st)
		a.plain(http.StatusOK, g.whole(g.tools().can(st)))
	default:
		g.tell(a.stream(), g.tools().can(st))
	}
}

// whole is an answer that comes at once.
func (g gemini) whole(st step) object {
	switch calls := g.tools().calls(st); {
	case len(g.Config.Schema) > 0: // a router's, which wants a number
		st.text = `{"complexity_reasoning":"x","complexity_score":1,"reasoning":"x","model_choice":"flash"}`
	case st.kind == incomplete:
		return g.chunk(st, st.reasonOf("MAX_TOKENS", "SAFETY"))
	case len(calls) > 0:
		return g.chunk(st, "STOP", geminiCall(calls[0]))
	}
	return g.chunk(st, "STOP", object{"text": st.text})
}

func geminiCall(c toolCall) object {
	return object{"functionCall": object{"name": c.name, "args": json.RawMessage(c.args)}}
}

func (g gemini) tell(s sse, st step) {
	switch st.kind {
	case hangBody:
		s.write([]byte(": begun\n\n"))
		s.hang()
	case fail:
		s.data(object{"error": object{"code": 500, "message": st.text, "status": st.name}})
	case incomplete:
		s.data(g.chunk(st, st.reasonOf("MAX_TOKENS", "SAFETY")))
	case say:
		g.think(s, st)
		s.parts(st, func(part string) { s.data(g.chunk(st, "", object{"text": part})) })
		g.end(s, st)
	default:
		s.data(g.chunk(st, "", geminiCall(g.tools().calls(st)[0])))
		g.end(s, st)
	}
}

func (g gemini) think(s sse, st step) {
	text, whole := st.thought()
	if text != "" {
		s.data(g.chunk(st, "", object{"text": text, "thought": true}))
	}
	if !whole {
		s.stop(st)
	}
}

func (g gemini) end(s sse, st step) {
	if st.cut != never {
		s.stop(st)
	}
	s.data(g.chunk(st, "STOP"))
}

func (g gemini) chunk(st step, finish string, parts ...object) object {
	in, out := st.used()
	candidate := object{"content": object{"role": "model", "parts": append([]object{}, parts...)}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return object{
		"candidates": []object{candidate}, "modelVersion": g.model,
		"usageMetadata": object{"promptTokenCount": in, "candidatesTokenCount": out, "totalTokenCount": in + out},
	}
}
