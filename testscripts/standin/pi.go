package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// pi is pi's process (--mode rpc): one conversation, which lasts in a file of its home, and a run for each prompt. Of what is
// said of Codex's prompts it knows all but env, flood, begin and notice; "fail WORDS" is an error of the model's. It asks only
// by pintle's extension: without one, what is asked is done. With the file tame it does not load the extension, with nameless it
// has no model, with empty it has nothing of its conversation, and with deaf it dies of a prompt that is not in the
// conversation yet. An abort that comes before it has answered to a prompt does nothing.
type pi struct {
	out sync.Mutex

	session, model string
	gated          bool

	mu     sync.Mutex
	asking map[string]chan string // by the dialog
	asked  int
	queue  []string // what was put into the run and is not taken in
	run    *piRun   // nil without one
}

// piLine is what a client says, of any kind.
type piLine struct {
	ID, Type, Message, Value string
	Behaviour                string `json:"streamingBehavior"`
}

// bePi speaks as it does until its input ends, which ends the run too.
func bePi(args []string) {
	note("launches", "x")
	note("args", strings.Join(args[1:], " "))
	_ = os.WriteFile("pid", fmt.Appendln(nil, os.Getpid()), 0o600)
	p := &pi{session: option(args, "--session-id"), model: cmp.Or(option(args, "--model"), "m"), asking: map[string]chan string{}}
	p.extends(option(args, "--extension"))
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		data, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		note("requests", strings.TrimSpace(string(data)))
		var l piLine
		if json.Unmarshal(data, &l) == nil {
			p.take(l)
		}
	}
}

// extends loads an extension, or ends if that is not there. It says that it asks when the session starts.
func (p *pi) extends(path string) {
	if path == "" || there("tame") {
		return
	}
	if !there(path) {
		fmt.Fprintf(os.Stderr, "Error: Failed to load extension %q\n", path)
		os.Exit(1)
	}
	p.gated = true
	p.say(object{"type": "extension_ui_request", "id": "status", "method": "setStatus", "statusKey": "pintle", "statusText": "asks"})
}

func (p *pi) say(m object) {
	data, _ := json.Marshal(m)
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func (p *pi) answer(l piLine, data object) {
	p.say(object{"id": l.ID, "type": "response", "command": l.Type, "success": true, "data": data})
}

// file is where the conversation is: a line for each of its prompts.
func (p *pi) file() string {
	return filepath.Join(os.Getenv("HOME"), ".pi", "agent", "sessions", "standin", "0_"+p.session+".jsonl")
}

// keeps has a prompt be on disk.
func (p *pi) keeps(text string) {
	_ = os.MkdirAll(filepath.Dir(p.file()), 0o700)
	note(p.file(), string(must(json.Marshal(text))))
}

func (p *pi) take(l piLine) {
	switch l.Type {
	case "get_state":
		p.answer(l, p.state())
	case "prompt":
		p.prompt(l)
	case "steer":
		p.mu.Lock()
		p.queue = append(p.queue, l.Message)
		p.mu.Unlock()
		p.answer(l, object{"disposition": "queued"})
		p.stirs()
	case "clear_queue":
		p.mu.Lock()
		p.queue = nil
		p.mu.Unlock()
		p.answer(l, object{})
	case "abort":
		p.abort()
		p.answer(l, nil)
	case "extension_ui_response":
		p.answered(l)
	}
}

func (p *pi) state() object {
	model := object{"id": p.model, "name": p.model, "provider": "p"}
	if there("nameless") {
		model = object{"id": "unknown", "name": "unknown", "provider": "unknown"}
	}
	count := lines(p.file())
	if there("empty") {
		count = 0
	}
	return object{"sessionId": p.session, "messageCount": count, "model": model}
}

// prompt begins a run.
func (p *pi) prompt(l piLine) {
	note("prompts", string(must(json.Marshal(l.Message))))
	r := &piRun{pi: p, more: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{})}
	p.mu.Lock()
	busy := p.run != nil
	if !busy {
		p.run = r
	}
	p.mu.Unlock()
	if busy {
		panic("prompted in the midst of a run, as " + l.Behaviour)
	}
	p.answer(l, object{"disposition": "started"})
	go r.work(l.Message)
}

// abort breaks off the run that there is, and returns when it has ended.
func (p *pi) abort() {
	p.mu.Lock()
	r := p.run
	if r != nil && !r.stopped {
		r.stopped = true
		close(r.stop)
	}
	p.mu.Unlock()
	if r != nil {
		<-r.over
	}
}

// stirs has a run that waits for a message look for one.
func (p *pi) stirs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		select {
		case p.run.more <- struct{}{}:
		default:
		}
	}
}

// answered gives an answer to the run that asked.
func (p *pi) answered(l piLine) {
	note("answers", l.Value)
	p.mu.Lock()
	defer p.mu.Unlock()
	if to := p.asking[l.ID]; to != nil {
		to <- l.Value
		delete(p.asking, l.ID)
	}
}
