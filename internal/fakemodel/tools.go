package fakemodel

import (
	"cmp"
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

// A toolCall is a tool with what it is given, as JSON.
type toolCall struct{ name, args string }

// calls are those by which a step is taken, of what is offered.
func (t tools) calls(st step) []toolCall {
	if st.kind == plan && t.has("TodoWrite", "TaskCreate") == "TaskCreate" {
		return tasks
	}
	if name, args := t.call(st); name != "" {
		return []toolCall{{name, args}}
	}
	return nil
}

// can is a step, or what is said instead if no tool is offered for it.
func (t tools) can(st step) step {
	switch st.kind {
	case command, poll, patch, write, read, plan:
		if len(t.calls(st)) == 0 {
			return step{text: "no tool is offered for this"}
		}
	}
	return st
}

func (t tools) call(st step) (name, args string) {
	switch st.kind {
	case tool, custom:
		return st.name, cmp.Or(st.text, "{}")
	case command:
		name = t.has("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell")
		return name, string(encode(t.shell(name, st)))
	case write, patch:
		if st.name == "" { // a whole patch
			return "", ""
		}
		name = t.has("Write", "write", "write_file")
		return name, string(encode(object{t.named(name, "file_path", "filePath", "path"): st.name, "content": "hello\n"}))
	case read:
		name = t.has("Read", "read", "read_file")
		return name, string(encode(object{t.named(name, "file_path", "filePath", "path", "absolute_path"): st.text}))
	case plan:
		name = t.has("TodoWrite", "todowrite", "write_todos", "update_plan")
		return name, string(encode(todos(name)))
	}
	return "", ""
}

// tasks make the plan of two steps by tools that make one each, and give it a number.
var tasks = []toolCall{
	{"TaskCreate", `{"subject":"one","description":"one","activeForm":"one"}`},
	{"TaskCreate", `{"subject":"two","description":"two","activeForm":"two"}`},
	{"TaskUpdate", `{"taskId":"1","status":"in_progress"}`},
}

func (t tools) shell(name string, st step) object {
	args := object{t.named(name, "command", "cmd"): st.text}
	if _, ok := t[name]["description"]; ok {
		args["description"] = "scripted"
	}
	return args
}

// todos are the two steps of a plan, the first of which is under way.
func todos(name string) object {
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

// reasonOf is why a step ends early, as an API calls it.
func (st step) reasonOf(length, filter string) string {
	switch st.text {
	case "max_output_tokens":
		return length
	case "content_filter":
		return filter
	}
	return st.text
}

// tooLong says that a step is the refusal of a prompt which is too long.
func (st step) tooLong() bool { return st.kind == fail && st.name == "context_length_exceeded" }
