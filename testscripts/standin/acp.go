package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// acp is an agent that speaks the Agent Client Protocol: one process, whose sessions last in the file "sessions". Besides what is
// said of Codex's prompts: "chunks N SIZE" are N pieces of SIZE bytes, "line N" is one piece of N bytes, "raw TEXT" is a line as
// it stands, "half" is half of one and then its end, "fail CODE WORDS" is an error in answer to the prompt, and "cost USD" is what
// the session has cost in all. With the file silent it answers nothing, with second it speaks the second version only.
type acp struct {
	out sync.Mutex
	w   *bufio.Writer

	mu     sync.Mutex
	mode   string
	stop   chan struct{} // of the turn that runs; nil without one
	asking map[string]chan message
	asked  int
}

func beACP() {
	note("launches", "x")
	note("args", strings.Join(os.Args[1:], " "))
	_ = os.WriteFile("pid", fmt.Appendln(nil, os.Getpid()), 0o600)
	a := &acp{w: bufio.NewWriterSize(os.Stdout, 64<<10), mode: "ask", asking: map[string]chan message{}}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		note("requests", strings.TrimSpace(string(line)))
		var m message
		if json.Unmarshal(line, &m) == nil && !there("silent") {
			a.take(m)
		}
	}
}

// write sends a line, at once unless more follows.
func (a *acp) write(line []byte, more bool) {
	a.out.Lock()
	defer a.out.Unlock()
	_, _ = a.w.Write(append(line, '\n'))
	if !more {
		_ = a.w.Flush()
	}
}

func (a *acp) answer(id json.RawMessage, result any) {
	a.write(must(json.Marshal(object{"jsonrpc": "2.0", "id": id, "result": result})), false)
}

func (a *acp) refuse(id json.RawMessage, code int, why string) {
	a.write(must(json.Marshal(object{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": why}})), false)
}

func (a *acp) take(m message) {
	var p struct {
		SessionID, ModeID, ConfigID, Value string
		Prompt                             []struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "initialize":
		version := 1
		if there("second") {
			version = 2
		}
		a.answer(m.ID, object{
			"protocolVersion": version, "agentInfo": object{"name": "standin", "version": "1.2.3"},
			"agentCapabilities": object{"loadSession": true, "sessionCapabilities": object{"resume": object{}}},
		})
	case "session/new":
		id := fmt.Sprintf("acp-%d-%d", os.Getpid(), lines("sessions"))
		note("sessions", id)
		a.answer(m.ID, a.offers(id))
	case "session/resume":
		a.resume(m.ID, p.SessionID)
	case "session/set_mode":
		a.mode = p.ModeID
		a.answer(m.ID, object{})
	case "session/set_config_option":
		note("models", p.Value)
		a.answer(m.ID, object{"configOptions": models(p.Value)})
	case "session/prompt":
		a.begin(m.ID, p.SessionID, p.Prompt[0].Text)
	case "session/cancel":
		a.cancel()
	case "":
		note("answers", string(must(json.Marshal(m))))
		a.answered(m)
	default:
		a.refuse(m.ID, -32601, "no such method")
	}
}

// offers are a session with what it offers.
func (a *acp) offers(id string) object {
	return object{
		"sessionId": id, "configOptions": models("m1"),
		"modes": object{"currentModeId": a.mode, "availableModes": []object{{"id": "ask"}, {"id": "free"}}},
	}
}

func models(current string) []object {
	return []object{{"id": "model", "category": "model", "type": "select", "currentValue": current, "options": []object{{"value": "m1"}, {"value": "m2"}}}}
}

func (a *acp) resume(id json.RawMessage, session string) {
	known, _ := os.ReadFile("sessions")
	if there("lost") || !strings.Contains(string(known), session+"\n") {
		a.refuse(id, -32002, "Resource not found")
		return
	}
	a.answer(id, a.offers(session))
}

func (a *acp) cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
}

func (a *acp) answered(m message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.asking[string(m.ID)]; c != nil {
		c <- m
		delete(a.asking, string(m.ID))
	}
}

// doing is a turn.
type doing struct {
	*acp
	session string
	stop    chan struct{}
	spoken  bool
	calls   int
}

func (a *acp) begin(id json.RawMessage, session, prompt string) {
	note("prompts", prompt)
	d := &doing{acp: a, session: session, stop: make(chan struct{})}
	a.mu.Lock()
	a.stop = d.stop
	a.mu.Unlock()
	go func() {
		reason, failed := d.run(prompt)
		a.mu.Lock()
		a.stop = nil
		a.mu.Unlock()
		if failed != nil {
			a.refuse(id, failed.code, failed.words)
			return
		}
		a.answer(id, object{"stopReason": reason, "usage": object{"inputTokens": 7, "outputTokens": 3}})
	}()
}

type refusal struct {
	code  int
	words string
}

func (d *doing) run(prompt string) (reason string, failed *refusal) {
	for step := range strings.SplitSeq(prompt, "; ") {
		if rest, ok := strings.CutPrefix(step, "once "); ok {
			if !first(step) {
				continue
			}
			step = rest
		}
		word, rest, _ := strings.Cut(step, " ")
		if reason, failed := d.step(word, rest); reason != "" || failed != nil {
			return reason, failed
		}
	}
	if !d.spoken {
		d.say(fmt.Sprintf("said %d", lines("prompts")))
	}
	return "end_turn", nil
}

func (d *doing) step(word, rest string) (reason string, failed *refusal) {
	number, more, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(number)
	switch word {
	case "say":
		d.say(rest)
	case "hold":
		return d.hold(rest), nil
	case "ask":
		return d.ask(rest), nil
	case "tool":
		d.call(rest)
	case "chunks":
		size, _ := strconv.Atoi(more)
		d.chunks(n, size)
	case "line":
		d.say(strings.Repeat("x", n))
	case "raw":
		d.write([]byte(rest), false)
	case "half":
		d.write([]byte(`{"jsonrpc":"2.0","method":"session/upd`), true)
		os.Exit(0)
	case "cost":
		usd, _ := strconv.ParseFloat(rest, 64)
		d.tell(object{"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": object{"amount": usd, "currency": "USD"}}, false)
	case "fail":
		return "", &refusal{n, more}
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "mute":
		select {}
	case "exit":
		os.Exit(n)
	}
	return "", nil
}

func (d *doing) tell(update object, more bool) {
	params := object{"sessionId": d.session, "update": update}
	d.write(must(json.Marshal(object{"jsonrpc": "2.0", "method": "session/update", "params": params})), more)
}

// block is one of text, its fields in the order in which agents write them.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (d *doing) say(text string) { d.piece(text, "", false) }

func (d *doing) piece(text, id string, more bool) {
	d.spoken = true
	u := object{"sessionUpdate": "agent_message_chunk", "content": block{"text", text}}
	if id != "" {
		u["messageId"] = id
	}
	d.tell(u, more)
}

func (d *doing) chunks(n, size int) {
	text := strings.Repeat("0123456789", size/10+1)[:size]
	for i := range n {
		d.piece(text, "m", i < n-1)
	}
}

func (d *doing) hold(file string) string {
	for !there(file) {
		select {
		case <-d.stop:
			return "cancelled"
		case <-time.After(5 * time.Millisecond):
		}
	}
	return ""
}

func (d *doing) call(command string) string {
	d.calls++
	id := fmt.Sprintf("call-%d", d.calls)
	d.tell(object{"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute", "status": "in_progress", "rawInput": object{"command": command}}, false)
	d.tell(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawOutput": object{"output": "out of " + command}}, false)
	return id
}

func (d *doing) ask(command string) string {
	d.mu.Lock()
	d.asked++
	id, answer := fmt.Sprint(lines("answers")*1000+d.asked), make(chan message, 1)
	d.asking[id] = answer
	free := d.mode == "free"
	d.mu.Unlock()
	if free {
		d.say("ran " + command)
		return ""
	}
	params := object{
		"sessionId": d.session, "toolCall": object{"toolCallId": "asked-" + id, "title": command, "kind": "execute", "rawInput": object{"command": command}},
		"options": []object{{"optionId": "1", "kind": "reject_once"}, {"optionId": "2", "kind": "allow_always"}, {"optionId": "3", "kind": "allow_once"}},
	}
	d.write(must(json.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "session/request_permission", "params": params})), false)
	note("asked", command)
	m := <-answer
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(must(json.Marshal(m.Result)), &r)
	switch {
	case r.Outcome.Outcome == "cancelled":
		return "cancelled"
	case r.Outcome.OptionID == "1":
		d.say("may not run " + command)
	default:
		d.say("ran " + command)
	}
	return ""
}
