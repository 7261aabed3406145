package fakemodel

import (
	"encoding/json"
	"regexp"
	"strings"
)

// tools are those that a request offers, by name, with the names of their arguments.
type tools map[string]map[string]json.RawMessage

// offer notes a tool by its schema.
func (t tools) offer(name string, schema json.RawMessage) {
	var s struct{ Properties map[string]json.RawMessage }
	_ = json.Unmarshal(schema, &s) // one without arguments may have any
	t[name] = s.Properties
}

// has is the first of names that is offered.
func (t tools) has(names ...string) string {
	for _, name := range names {
		if _, ok := t[name]; ok {
			return name
		}
	}
	return ""
}

// named is the first of names that is an argument of a tool.
func (t tools) named(tool string, names ...string) string {
	for _, name := range names {
		if _, ok := t[tool][name]; ok {
			return name
		}
	}
	return names[0]
}

// call is the tool by which a step is taken, and what it is given as JSON. Without a fitting one there is none.
func (t tools) call(st step) (name, args string) {
	switch st.kind {
	case tool, custom:
		return st.name, st.text
	case command:
		name = t.has("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell")
		return name, string(encode(t.shell(name, st)))
	case write:
		name = t.has("Write", "write", "write_file")
		return name, string(encode(object{t.named(name, "file_path", "filePath", "path"): st.name, "content": st.text}))
	case read:
		name = t.has("Read", "read", "read_file")
		return name, string(encode(object{t.named(name, "file_path", "filePath", "path", "absolute_path"): st.text}))
	case plan:
		name = t.has("TodoWrite", "todowrite", "write_todos", "update_plan")
		return name, string(encode(t.todos(name)))
	}
	return "", ""
}

func (t tools) shell(name string, st step) object {
	args := object{t.named(name, "command", "cmd"): st.text}
	if _, ok := t[name]["description"]; ok {
		args["description"] = "scripted"
	}
	return args
}

// todos are the two steps of a plan, the first of which is under way.
func (t tools) todos(name string) object {
	if name == "update_plan" {
		return object{"plan": []object{{"step": "one", "status": "in_progress"}, {"step": "two", "status": "pending"}}}
	}
	todo := func(text, status string) object {
		if name == "write_todos" {
			return object{"description": text, "status": status}
		}
		return object{"content": text, "status": status, "activeForm": text, "priority": "medium", "id": text}
	}
	return object{"todos": []object{todo("one", "in_progress"), todo("two", "pending")}}
}

// beside is what agents put into a user's message beside what the user said.
var beside = regexp.MustCompile(`(?s)<(system-reminder|session_context|environment_context)>.*?</(system-reminder|session_context|environment_context)>\n*`)

// steered is a message that was put into a turn, as Claude Code tells of it: by itself, or beside what a tool has answered.
var steered = regexp.MustCompile(`(?s)The user sent a new message while you were working:\n(.*?)\n\n(This is how Claude Code|IMPORTANT:)`)

// said is what of a text the user said; "" if nothing.
func said(text string) string {
	if found := steered.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	if !strings.Contains(text, "_context>") && !strings.Contains(text, "<system-reminder>") {
		return text
	}
	return beside.ReplaceAllString(text, "")
}

// talk collects a conversation: what the user said, and what tools have answered since.
type talk struct {
	said, outputs []string
}

func (t *talk) user(text string) {
	if text = said(text); strings.TrimSpace(text) != "" {
		t.said, t.outputs = append(t.said, text), nil
	}
}

func (t *talk) tool(output string) {
	t.outputs = append(t.outputs, beside.ReplaceAllString(output, ""))
	if found := steered.FindString(output); found != "" {
		t.user(found)
	}
}

// question is what is asked at the end of it.
func (t talk) question(model, thread string) question {
	q := question{model: model, thread: thread, outputs: t.outputs}
	if last := len(t.said) - 1; last >= 0 {
		q.earlier, q.prompt = t.said[:last], t.said[last]
	}
	return q
}

// inputs and outputs are what a step's answer has used.
func (st step) used() (in, out int) {
	total := st.tokens
	if total == 0 {
		total = 110
	}
	out = min(total, 10)
	return total - out, out
}

// tooLong says that a step is the refusal of a prompt which is too long.
func (st step) tooLong() bool { return st.kind == fail && st.name == "context_length_exceeded" }
