package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// piRun is a run of pi's.
type piRun struct {
	*pi
	more chan struct{} // has something in it once something was put into the run
	over chan struct{} // closed when it has settled

	stop    chan struct{} // closed by an abort
	stopped bool          // it is closed

	heard  []string // put into the run and not spoken of
	spoken bool
	calls  int
	used   [2]int
}

// work does what a prompt says. It settles with nothing left to be done, and says so before it can hear of another prompt.
func (r *piRun) work(prompt string) {
	defer close(r.over)
	if os.Remove("deaf") == nil {
		r.leaves("die", "")
	}
	r.say(object{"type": "agent_start"})
	_ = os.Mkdir("busy", 0o700)
	r.hears(prompt)
	broken := !r.steps(prompt)
	if !broken && !r.spoken {
		r.text(fmt.Sprintf("said %d", lines("prompts")))
	}
	if broken {
		r.message("", "aborted", "Request aborted")
	}
	_ = os.Remove("busy")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run = nil
	r.say(object{"type": "agent_settled", "aborted": broken})
}

// hears has a message of the user's be in the conversation.
func (r *piRun) hears(text string) {
	r.keeps(text)
	m := object{"role": "user", "content": []object{{"type": "text", "text": text}}}
	r.say(object{"type": "message_start", "message": m})
	r.say(object{"type": "message_end", "message": m})
}

// steps reports whether it came to their end.
func (r *piRun) steps(prompt string) bool {
	for step := range strings.SplitSeq(prompt, "; ") {
		if rest, ok := strings.CutPrefix(step, "once "); ok {
			if !first(step) {
				continue
			}
			step = rest
		}
		word, rest, _ := strings.Cut(step, " ")
		if !r.step(word, rest) {
			return false
		}
		r.takeIn()
	}
	return true
}

// takeIn takes in what was put into the run.
func (r *piRun) takeIn() {
	r.mu.Lock()
	queue := r.queue
	r.queue = nil
	r.mu.Unlock()
	for _, text := range queue {
		r.hears(text)
		r.heard = append(r.heard, text)
	}
}

// step reports whether the run goes on.
func (r *piRun) step(word, rest string) bool {
	switch word {
	case "say":
		r.text(rest)
	case "hold":
		return r.waits(rest)
	case "steer":
		return r.steered()
	case "ask":
		return r.asks(rest)
	case "tool":
		id := r.call(rest)
		r.came(id, "out of "+rest, false)
	case "usage":
		_, _ = fmt.Sscan(rest, &r.used[0], &r.used[1])
	case "fail":
		r.message("", "error", rest)
	default:
		r.leaves(word, rest)
	}
	return true
}

// leaves are the steps that nothing follows.
func (r *piRun) leaves(word, rest string) {
	switch word {
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "mute":
		select {}
	case "exit":
		code := 0
		_, _ = fmt.Sscan(rest, &code)
		os.Exit(code)
	}
}

func (r *piRun) text(text string) { r.message(text, "stop", "") }

// message is one of the model's.
func (r *piRun) message(text, stop, failure string) {
	r.spoken = true
	r.say(object{"type": "message_start", "message": object{"role": "assistant", "content": []object{}}})
	if text != "" {
		r.say(object{"type": "message_update", "assistantMessageEvent": object{"type": "text_delta", "contentIndex": 0, "delta": text}})
	}
	m := object{
		"role": "assistant", "content": []object{{"type": "text", "text": text}}, "stopReason": stop,
		"usage": object{"input": r.used[0], "output": r.used[1], "cost": object{"total": 0.001}},
	}
	if failure != "" {
		m["errorMessage"] = failure
	}
	r.used = [2]int{}
	r.say(object{"type": "message_end", "message": m})
}

func (r *piRun) waits(name string) bool {
	for !there(name) {
		select {
		case <-r.stop:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// steered says what was put into the run, when something has been.
func (r *piRun) steered() bool {
	for r.takeIn(); len(r.heard) == 0; r.takeIn() {
		select {
		case <-r.stop:
			return false
		case <-r.more:
		}
	}
	r.text("steered " + r.heard[0])
	r.heard = r.heard[1:]
	return true
}

// call is the beginning of a tool call.
func (r *piRun) call(command string) (id string) {
	r.calls++
	id = fmt.Sprintf("call_%d_%d", lines("prompts"), r.calls)
	r.say(object{"type": "tool_execution_start", "toolCallId": id, "toolName": "bash", "args": object{"command": command}})
	return id
}

// came is what came of it. One that was blocked took no time.
func (r *piRun) came(id, text string, blocked bool) {
	m := object{
		"type": "tool_execution_end", "toolCallId": id, "toolName": "bash", "isError": blocked,
		"result": object{"content": []object{{"type": "text", "text": text}}},
	}
	if !blocked {
		m["durationMs"] = 1
	}
	r.say(m)
}

// asks runs a command; with the extension it asks for the permission before.
func (r *piRun) asks(command string) bool {
	id := r.call(command)
	may := "allow"
	if r.gated {
		note("asked", command)
		var ok bool
		if may, ok = r.dialog(id, command); !ok {
			return false
		}
	}
	if may == "allow" {
		r.came(id, "", false)
		r.text("ran " + command)
		return true
	}
	r.came(id, "This was not allowed.", true)
	r.text("may not run " + command)
	return true
}

// dialog asks as the extension does, until it is answered or the run is broken off.
func (r *piRun) dialog(call, command string) (value string, ok bool) {
	r.mu.Lock()
	r.asked++
	id, to := fmt.Sprintf("q%d-%d", lines("launches"), r.asked), make(chan string, 1)
	r.asking[id] = to
	r.mu.Unlock()
	question := object{"pintle": "tool_call", "call": call, "tool": "bash", "builtin": true, "paths": []string{}, "input": object{"command": command}}
	r.say(object{
		"type": "extension_ui_request", "id": id, "method": "select",
		"title": string(must(json.Marshal(question))), "options": []string{"allow", "deny"},
	})
	select {
	case <-r.stop:
		return "", false
	case value = <-to:
		return value, true
	}
}
