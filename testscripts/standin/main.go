// Standin stands in for `codex app-server`, for what the real one cannot be made to do. A prompt is what it does, step by
// step, with "; " between them; the directory that it runs in has what it did, and what it waits for:
//
//	say TEXT        a message; without any, the turn ends with "said N", N counting the turns of all processes
//	env NAME        says what is in its environment under the name
//	hold FILE       waits until the file is there, or the turn is interrupted
//	ask COMMAND     asks for the permission to run it, and says "ran COMMAND" if it may
//	tool COMMAND    a tool call, with its end
//	begin COMMAND   a tool call without one
//	usage IN OUT    tells what the conversation has cost: a request of so many tokens more
//	fail INFO       ends the turn as failed, with that for codexErrorInfo
//	notice INFO     an error that it goes on from
//	die, mute, exit N  SIGKILL of itself, silence, leaving
//
// With the file deaf it dies of a prompt that it has not confirmed, with lost it knows no thread that goes on.
// With CODEX_HOME it locks its thread there, as the real one does. A step that begins with "once " is done by the first process that comes to it. Files: launches has a line for each
// process, requests each line that it was sent, prompts each prompt, answers each answer, overlaps a line for each turn
// that was begun while another ran; pid is its process.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// message is a line of the protocol, of any kind.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result any             `json:"result,omitempty"`
	Error  any             `json:"error,omitempty"`
}

// server is one process.
type server struct {
	out       sync.Mutex
	answers   chan message
	interrupt chan struct{}
	thread    string
	used      [2]int
}

func main() {
	note("launches", "x")
	_ = os.WriteFile("pid", fmt.Appendln(nil, os.Getpid()), 0o600)
	s := &server{answers: make(chan message, 16), interrupt: make(chan struct{}, 1)}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		note("requests", strings.TrimSpace(string(line)))
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.take(m)
		}
	}
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close()
}

func lines(file string) int {
	data, _ := os.ReadFile(file)
	return strings.Count(string(data), "\n")
}

func (s *server) send(m message) {
	data, _ := json.Marshal(m)
	s.out.Lock()
	defer s.out.Unlock()
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func (s *server) tell(method string, params map[string]any) {
	params["threadId"] = s.thread
	data, _ := json.Marshal(params)
	s.send(message{Method: method, Params: data})
}

func (s *server) take(m message) {
	switch m.Method {
	case "initialize":
		s.send(message{ID: m.ID, Result: map[string]string{"userAgent": "pintle/0.171.0 (standin)"}})
	case "config/read":
		s.send(message{ID: m.ID, Result: map[string]any{"config": map[string]any{}}})
	case "thread/start", "thread/resume":
		s.open(m)
	case "turn/start":
		s.begin(m)
	case "turn/interrupt":
		s.interrupt <- struct{}{}
		s.send(message{ID: m.ID, Result: struct{}{}})
	case "":
		note("answers", string(must(json.Marshal(m))))
		s.answers <- m
	default:
		if m.ID != nil {
			s.send(message{ID: m.ID, Result: struct{}{}})
		}
	}
}

func must(data []byte, _ error) []byte { return data }

// granted is what a sandbox is called in answers.
var granted = map[string]string{"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}

func (s *server) open(m message) {
	var p struct {
		ThreadID, ApprovalPolicy, Sandbox, Model string
		Ephemeral                                bool
	}
	_ = json.Unmarshal(m.Params, &p)
	if p.ApprovalPolicy == "" {
		p.ApprovalPolicy, p.Sandbox = "on-request", "workspace-write"
	}
	id := p.ThreadID
	switch {
	case p.Ephemeral:
		id = "probe"
	case id == "":
		note("threads", "x")
		id = fmt.Sprintf("T%d", lines("threads"))
	case there("lost"):
		s.send(message{ID: m.ID, Error: map[string]any{"code": -32600, "message": "no rollout found for thread id " + id}})
		return
	case !locked(id):
		s.send(message{ID: m.ID, Error: map[string]any{"code": -32600, "message": "thread " + id + " already has an active writer"}})
		return
	}
	if !p.Ephemeral {
		s.thread = id
	}
	s.send(message{ID: m.ID, Result: map[string]any{
		"thread": map[string]any{"id": id, "ephemeral": p.Ephemeral}, "model": "m", "modelProvider": "p", "approvalPolicy": p.ApprovalPolicy,
		"approvalsReviewer": "user", "sandbox": map[string]any{"type": granted[p.Sandbox]},
	}})
}

// locked takes the lock of a thread, if there is a home for it.
func locked(thread string) bool {
	home := os.Getenv("CODEX_HOME")
	if home == "" {
		return true
	}
	f, err := os.OpenFile(home+"/thread-writer-locks/"+thread+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil // and stays open, and locked
}

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func (s *server) begin(m message) {
	var p struct{ Input []struct{ Text string } }
	_ = json.Unmarshal(m.Params, &p)
	prompt := p.Input[0].Text
	note("prompts", string(must(json.Marshal(prompt))))
	if os.Remove("deaf") == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	turn := fmt.Sprintf("U%d", lines("prompts"))
	if err := os.Mkdir("busy", 0o700); errors.Is(err, fs.ErrExist) && !there("died") {
		note("overlaps", turn)
	}
	_ = os.Remove("died")
	s.send(message{ID: m.ID, Result: map[string]any{"turn": map[string]any{"id": turn, "status": "inProgress"}}})
	s.tell("turn/started", map[string]any{"turn": map[string]any{"id": turn, "status": "inProgress"}})
	go func() {
		t := &turning{s, turn, 0, false}
		status, failure := t.run(prompt)
		_ = os.Remove("busy")
		end := map[string]any{"id": turn, "status": status}
		if failure != nil {
			end["error"] = failure
		}
		s.tell("turn/completed", map[string]any{"turn": end})
	}()
}

// turning is one turn.
type turning struct {
	*server
	id    string
	items int
	said  bool
}

func (t *turning) run(prompt string) (status string, failure any) {
	for step := range strings.SplitSeq(prompt, "; ") {
		if rest, ok := strings.CutPrefix(step, "once "); ok {
			if !first(step) {
				continue
			}
			step = rest
		}
		word, rest, _ := strings.Cut(step, " ")
		if status, failure := t.step(word, rest); status != "" {
			return status, failure
		}
	}
	if !t.said {
		t.say(fmt.Sprintf("said %d", lines("prompts")))
	}
	return "completed", nil
}

// first reports whether no process has come here before.
func first(step string) bool {
	h := fnv.New32()
	_, _ = h.Write([]byte(step))
	return os.Mkdir(fmt.Sprintf("once-%x", h.Sum32()), 0o700) == nil
}

func (t *turning) step(word, rest string) (status string, failure any) {
	switch word {
	case "say":
		t.say(rest)
	case "env":
		t.say("it is " + os.Getenv(rest) + ".")
	case "hold":
		return t.hold(rest), nil
	case "ask":
		return t.ask(rest), nil
	case "tool", "begin":
		t.tool(rest, word == "tool")
	case "usage":
		t.usage(rest)
	case "fail", "notice":
		return t.fail(rest, word == "notice")
	case "die":
		note("died", "x")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "mute":
		select {}
	case "exit":
		note("died", "x")
		code := 0
		_, _ = fmt.Sscan(rest, &code)
		os.Exit(code)
	}
	return "", nil
}

func (t *turning) item(method string, item map[string]any) {
	t.tell(method, map[string]any{"turnId": t.id, "item": item})
}

func (t *turning) next() string {
	t.items++
	return fmt.Sprintf("%s-%d", t.id, t.items)
}

func (t *turning) say(text string) {
	t.said = true
	id := t.next()
	t.item("item/started", map[string]any{"type": "agentMessage", "id": id, "text": ""})
	t.tell("item/agentMessage/delta", map[string]any{"turnId": t.id, "itemId": id, "delta": text})
	t.item("item/completed", map[string]any{"type": "agentMessage", "id": id, "text": text})
}

func (t *turning) hold(file string) string {
	for !there(file) {
		select {
		case <-t.interrupt:
			return "interrupted"
		case <-time.After(5 * time.Millisecond):
		}
	}
	return ""
}

func (t *turning) tool(command string, ends bool) {
	id := t.next()
	it := map[string]any{"type": "commandExecution", "id": id, "command": command, "cwd": "/", "status": "inProgress"}
	t.item("item/started", it)
	if ends {
		it["status"], it["exitCode"], it["aggregatedOutput"] = "completed", 0, "out of "+command
		t.item("item/completed", it)
	}
}

func (t *turning) ask(command string) string {
	id := t.next()
	request := json.RawMessage(fmt.Sprint(lines("answers")*1000 + t.items))
	params := must(json.Marshal(map[string]any{
		"threadId": t.thread, "turnId": t.id, "itemId": id, "command": command, "reason": "it must",
	}))
	t.send(message{ID: request, Method: "item/commandExecution/requestApproval", Params: params})
	note("asked", command)
	select {
	case <-t.interrupt:
		t.tell("serverRequest/resolved", map[string]any{"requestId": request})
		return "interrupted"
	case m := <-t.answers:
		t.tell("serverRequest/resolved", map[string]any{"requestId": request})
		var r struct{ Decision string }
		_ = json.Unmarshal(must(json.Marshal(m.Result)), &r)
		switch r.Decision {
		case "cancel":
			return "interrupted"
		case "accept":
			t.say("ran " + command)
		default:
			t.say("may not run " + command)
		}
	}
	return ""
}

func (t *turning) usage(numbers string) {
	var in, out int
	_, _ = fmt.Sscan(numbers, &in, &out)
	t.used[0], t.used[1] = t.used[0]+in, t.used[1]+out
	t.tell("thread/tokenUsage/updated", map[string]any{"turnId": t.id, "tokenUsage": map[string]any{
		"total": map[string]int{"inputTokens": t.used[0], "outputTokens": t.used[1]},
		"last":  map[string]int{"inputTokens": in, "outputTokens": out},
	}})
}

func (t *turning) fail(info string, goesOn bool) (status string, failure any) {
	failure = map[string]any{"message": "it failed: " + info, "codexErrorInfo": info}
	t.tell("error", map[string]any{"turnId": t.id, "error": failure, "willRetry": goesOn})
	if goesOn {
		return "", nil
	}
	return "failed", failure
}
