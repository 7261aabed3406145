package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// working is a turn of Claude Code's.
type working struct {
	*claude
	more chan struct{} // has something in it once something was said
	over chan struct{} // closed when nothing is left to be done

	stop    chan struct{} // closed by an interrupt; each turn has its own
	stopped bool          // it is closed

	about    []string // the messages that the turn is about
	heard    []string // said in its midst and not spoken of
	spoken   bool
	own      string // what it will say by itself
	messages int
	used     [2]int
}

func newWorking(c *claude) *working {
	return &working{claude: c, more: make(chan struct{}, 1), over: make(chan struct{}), stop: make(chan struct{})}
}

// work has one turn after the other, until nothing is left to be done.
func (c *claude) work(t *working) {
	defer close(t.over)
	for s, ok := c.next(); ok; s, ok = c.next() {
		t.turn(s)
		if t.own != "" {
			t.begins(nil)
			t.text(t.own)
			t.ends(object{"subtype": "success", "result": t.own, "origin": object{"kind": "task-notification"}})
			t.own = ""
		}
	}
}

// next is the next message; without one the agent is idle, and says so before it can hear of another.
func (c *claude) next() (said, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.turn = nil
		c.system("session_state_changed", object{"state": "idle"})
		return said{}, false
	}
	if c.turn.stopped {
		c.turn.stop, c.turn.stopped = make(chan struct{}), false
	}
	s := c.queue[0]
	c.queue = c.queue[1:]
	return s, true
}

// turn works on a message.
func (t *working) turn(s said) {
	note("prompts", string(must(json.Marshal(s.text))))
	if os.Remove("deaf") == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	t.keeps()
	t.fate(s.id, "started")
	if t.gated && !there("bare") {
		t.request(object{"subtype": "hook_callback", "callback_id": "prompt", "input": object{"prompt": s.text}})
	}
	t.begins([]string{s.id})
	t.replays(s)
	result := t.run(s.text)
	if result["subtype"] == "success" && !t.spoken {
		t.text(fmt.Sprintf("said %d", lines("prompts")))
	}
	t.ends(result)
	t.fate(s.id, "completed")
}

func (t *working) begins(about []string) {
	t.about, t.spoken, t.used = about, false, [2]int{}
	more := object{"model": "m", "permissionMode": t.mode, "claude_code_version": "2.1.332"}
	if len(about) > 0 {
		more["user_message_uuids"] = about
	}
	t.system("init", more)
	_ = os.Mkdir("busy", 0o700)
}

func (t *working) replays(s said) {
	t.say(object{"type": "user", "message": object{"role": "user", "content": s.text}, "uuid": s.id, "isReplay": true})
}

func (t *working) ends(result object) {
	_ = os.Remove("busy")
	result["type"], result["user_message_uuids"] = "result", t.about
	result["is_error"] = result["is_error"] == true || result["subtype"] != "success"
	result["model_usage_since_last_result"] = object{"m": object{"inputTokens": t.used[0], "outputTokens": t.used[1], "costUSD": 0.001}}
	t.say(result)
}

// broken is the result of a turn that was interrupted.
func broken() object {
	return object{"subtype": "error_during_execution", "terminal_reason": "aborted_tools", "errors": []string{}}
}

// run does what a prompt says, and returns the result.
func (t *working) run(prompt string) object {
	for step := range strings.SplitSeq(prompt, "; ") {
		if rest, ok := strings.CutPrefix(step, "once "); ok {
			if !first(step) {
				continue
			}
			step = rest
		}
		word, rest, _ := strings.Cut(step, " ")
		if result := t.step(word, rest); result != nil {
			return result
		}
		t.takeIn()
	}
	return object{"subtype": "success"}
}

// takeIn takes in what was said in the turn's midst.
func (t *working) takeIn() {
	t.mu.Lock()
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	for _, s := range queue {
		note("steers", string(must(json.Marshal(s.text))))
		t.replays(s)
		t.fate(s.id, "started")
		t.fate(s.id, "completed")
		t.about, t.heard = append(t.about, s.id), append(t.heard, s.text)
	}
}

func (t *working) step(word, rest string) object {
	switch word {
	case "say":
		t.text(rest)
	case "env":
		t.text("it is " + os.Getenv(rest) + ".")
	case "cut":
		t.piece(rest)
		t.spoken = true
	case "own":
		t.own = rest
	case "hold":
		return t.waits(rest)
	case "steer":
		return t.steered()
	case "flood":
		t.flood(rest)
	case "ask":
		return t.asks(rest)
	case "tool", "begin":
		t.tool(rest, word == "tool")
	case "usage":
		_, _ = fmt.Sscan(rest, &t.used[0], &t.used[1])
	case "fail":
		return object{"subtype": "success", "is_error": true, "api_error": rest, "result": "it failed: " + rest}
	case "notice":
		t.system("api_retry", object{"attempt": 1, "max_retries": 10, "error_status": nil, "error": rest})
	default:
		t.leaves(word, rest)
	}
	return nil
}

// leaves are the steps that nothing follows.
func (t *working) leaves(word, rest string) {
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

func (t *working) event(e object) {
	t.say(object{"type": "stream_event", "event": e, "parent_tool_use_id": nil, "session_id": t.session})
}

// piece begins a message. It has no end yet.
func (t *working) piece(text string) (id string) {
	t.messages++
	id = fmt.Sprintf("msg_%d_%d", lines("prompts"), t.messages)
	t.event(object{"type": "message_start", "message": object{"id": id, "usage": object{"input_tokens": 0}}})
	t.event(object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": text}})
	return id
}

func (t *working) text(text string) {
	t.spoken = true
	id := t.piece(text)
	t.say(object{"type": "assistant", "message": object{"id": id, "content": []any{object{"type": "text", "text": text}}}})
	t.event(object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 0}})
}

func (t *working) flood(numbers string) {
	n, rate := 0, 0
	_, _ = fmt.Sscan(numbers, &n, &rate)
	t.spoken = true
	began := time.Now()
	t.piece("")
	for i := range n {
		if rate > 0 && i%100 == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		t.event(object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": fmt.Sprintf("%d ", i)}})
	}
	t.event(object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 0}})
}

func (t *working) waits(name string) object {
	for !there(name) {
		select {
		case <-t.stop:
			return broken()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// steered says what was put into the turn, when something has been.
func (t *working) steered() object {
	for t.takeIn(); len(t.heard) == 0; t.takeIn() {
		select {
		case <-t.stop:
			return broken()
		case <-t.more:
		}
	}
	t.text("steered " + t.heard[0])
	t.heard = t.heard[1:]
	return nil
}

// call is the beginning of a tool call.
func (t *working) call(command string) (id string) {
	t.messages++
	id = fmt.Sprintf("toolu_%d_%d", lines("prompts"), t.messages)
	t.say(object{"type": "assistant", "message": object{"id": "msg_" + id, "content": []any{
		object{"type": "tool_use", "id": id, "name": "Bash", "input": object{"command": command}},
	}}})
	return id
}

// came is what came of it.
func (t *working) came(id, text string, failed bool) {
	t.say(object{
		"type": "user", "message": object{"content": []any{object{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}}},
		"tool_use_result": object{"stdout": text, "stderr": ""},
	})
}

func (t *working) tool(command string, ends bool) {
	if id := t.call(command); ends {
		t.came(id, "out of "+command, false)
	}
}

// request asks the client, and waits for its answer.
func (t *working) request(r object) (a answer, stopped bool) {
	t.mu.Lock()
	t.asked++
	id, to := fmt.Sprintf("q%d-%d", lines("answers"), t.asked), make(chan answer, 1)
	t.asking[id] = to
	t.mu.Unlock()
	t.say(object{"type": "control_request", "request_id": id, "request": r})
	select {
	case <-t.stop:
		t.say(object{"type": "control_cancel_request", "request_id": id})
		return a, true
	case a = <-to:
		return a, false
	}
}

// asks asks for the permission to run a command. With the hook it does so by way of that.
func (t *working) asks(command string) object {
	id := t.call(command)
	call := object{"tool_name": "Bash", "input": object{"command": command}, "tool_use_id": id}
	if t.gated {
		a, stopped := t.request(object{"subtype": "hook_callback", "callback_id": "gate", "input": call, "tool_use_id": id})
		if stopped || a.Hook.Decision != "ask" {
			return broken()
		}
	}
	note("asked", command)
	call["subtype"] = "can_use_tool"
	switch a, stopped := t.request(call); {
	case stopped || a.Interrupt:
		return broken()
	case a.Behavior == "allow":
		t.came(id, "", false)
		t.text("ran " + command)
	default:
		t.came(id, a.Message, true)
		t.text("may not run " + command)
	}
	return nil
}
