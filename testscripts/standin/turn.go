package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// turning is one turn.
type turning struct {
	*thread
	id    string
	items int
	said  bool
	once  sync.Once
	stop  chan struct{} // closed by an interrupt
	more  chan struct{} // has something in it once something was given

	queue []steered // given and not taken in, under the server's mutex
	over  bool      // nothing is taken any more, likewise
	heard []string  // taken in and not spoken of
}

// steered is a message that was put into the turn, with the client's name of it.
type steered struct{ client, text string }

// given has a message taken in later, unless the turn has come to its end.
func (t *turning) given(s steered) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.queue = append(t.queue, s)
	select {
	case t.more <- struct{}{}:
	default:
	}
	return true
}

// takeIn takes in what was given by now. The last time nothing is given behind it.
func (t *turning) takeIn(last bool) {
	t.mu.Lock()
	queue := t.queue
	t.queue, t.over = nil, last
	t.mu.Unlock()
	for _, s := range queue {
		note("steers", string(must(json.Marshal(s.text))))
		it := map[string]any{"type": "userMessage", "id": t.next(), "clientId": s.client, "content": []any{map[string]string{"type": "text", "text": s.text}}}
		t.item("item/started", it)
		t.item("item/completed", it)
		t.heard = append(t.heard, s.text)
	}
}

// steer says what was put into the turn, when something has been.
func (t *turning) steer() string {
	for t.takeIn(false); len(t.heard) == 0; t.takeIn(false) {
		select {
		case <-t.stop:
			return "interrupted"
		case <-t.more:
		}
	}
	t.say("steered " + t.heard[0])
	t.heard = t.heard[1:]
	return ""
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
		t.takeIn(false)
	}
	t.takeIn(true)
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
	case "steer":
		return t.steer(), nil
	case "flood":
		t.flood(rest)
	case "ask":
		return t.ask(rest), nil
	case "tool", "begin":
		t.tool(rest, word == "tool")
	case "usage":
		t.usage(rest)
	case "fail", "notice":
		return t.fail(rest, word == "notice")
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

func (t *turning) flood(numbers string) {
	n, rate := 0, 0
	_, _ = fmt.Sscan(numbers, &n, &rate)
	t.said = true
	id, began := t.next(), time.Now()
	for i := range n {
		if rate > 0 && i%100 == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		t.tell("item/agentMessage/delta", map[string]any{"turnId": t.id, "itemId": id, "delta": fmt.Sprintf("%d ", i)})
	}
}

func (t *turning) hold(file string) string {
	for !there(file) {
		select {
		case <-t.stop:
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

// wonder is the id of a question, and where its answer will come.
func (t *turning) wonder() (json.RawMessage, chan message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	id, answer := fmt.Sprint(lines("answers")*1000+t.asked), make(chan message, 1)
	t.asking[id] = answer
	return json.RawMessage(id), answer
}

func (t *turning) ask(command string) string {
	id := t.next()
	request, answer := t.wonder()
	params := must(json.Marshal(map[string]any{
		"threadId": t.thread.id, "turnId": t.id, "itemId": id, "command": command, "reason": "it must",
	}))
	t.send(message{ID: request, Method: "item/commandExecution/requestApproval", Params: params})
	note("asked", command)
	select {
	case <-t.stop:
		t.tell("serverRequest/resolved", map[string]any{"requestId": request})
		return "interrupted"
	case m := <-answer:
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
