package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// claude is Claude Code's process: one conversation, whose messages it takes in one after the other. Besides what is said of
// Codex's prompts: "own TEXT" has it begin a turn by itself behind this one, and "cut TEXT" breaks off in a message and calls
// that a success. With the file older it is of a version that cannot be held to asking, with wild it has another permission
// mode than it was told; with bare its hooks are off, and it does not say so; with lost it knows no conversation, whatever it has of it on disk; with deaf it dies of a prompt that
// it has not confirmed; with refuse it takes a prompt and does nothing with it.
type claude struct {
	out sync.Mutex

	mu      sync.Mutex
	session string
	mode    string
	gated   bool
	asking  map[string]chan answer
	asked   int
	queue   []said // what was said and is not worked on
	turn    *working
}

// said is a message of the user's.
type said struct{ id, text string }

// line is what a client says, of any kind.
type line struct {
	Type      string
	UUID      string
	RequestID string `json:"request_id"`
	Message   struct{ Content string }
	Request   struct {
		Subtype string
		Hooks   map[string]any
		Cancel  bool `json:"cancel_queued"`
	}
	Response struct {
		RequestID string `json:"request_id"`
		Response  answer
	}
}

// answer is one to what we asked.
type answer struct {
	Behavior  string
	Message   string
	Interrupt bool
	Hook      struct {
		Decision string `json:"permissionDecision"`
	} `json:"hookSpecificOutput"`
}

type object = map[string]any

// beClaude speaks as it does until its input ends and nothing is left to be done.
func beClaude(args []string) {
	note("launches", "x")
	note("args", strings.Join(args[1:], " "))
	_ = os.WriteFile("pid", fmt.Appendln(nil, os.Getpid()), 0o600)
	c := &claude{asking: map[string]chan answer{}, mode: "default"}
	if there("wild") {
		c.mode = "bypassPermissions"
	}
	c.opens(option(args, "--resume"), option(args, "--session-id"))
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		data, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		note("requests", strings.TrimSpace(string(data)))
		var l line
		if json.Unmarshal(data, &l) == nil {
			c.take(l)
		}
	}
	c.mu.Lock()
	turn := c.turn
	c.mu.Unlock()
	if turn != nil {
		<-turn.over
	}
}

// option is the value of an option; "" if it is not there.
func option(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// file is where a conversation is.
func file(session string) string {
	home := os.Getenv("CLAUDE_CONFIG_DIR")
	if home == "" {
		home = filepath.Join(os.Getenv("HOME"), ".claude")
	}
	return filepath.Join(home, "projects", "standin", session+".jsonl")
}

// opens refuses to go on with what is not there, and to begin what is.
func (c *claude) opens(old, fresh string) {
	switch {
	case old != "" && (there("lost") || !there(file(old))):
		c.say(object{"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0, "errors": []string{"No conversation found with session ID: " + old}})
		os.Exit(1)
	case fresh != "" && there(file(fresh)):
		fmt.Fprintf(os.Stderr, "Error: Session ID %s is already in use.\n", fresh)
		os.Exit(1)
	}
	c.session = old + fresh
}

// keeps has the conversation be on disk.
func (c *claude) keeps() {
	path := file(c.session)
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	_ = os.WriteFile(path, nil, 0o600)
}

func (c *claude) say(m object) {
	data, _ := json.Marshal(m)
	c.out.Lock()
	defer c.out.Unlock()
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func (c *claude) system(kind string, more object) {
	m := object{"type": "system", "subtype": kind, "session_id": c.session}
	for name, value := range more {
		m[name] = value
	}
	c.say(m)
}

func (c *claude) fate(id, state string) {
	c.say(object{"type": "command_lifecycle", "command_uuid": id, "state": state})
}

func (c *claude) take(l line) {
	switch {
	case l.Type == "user":
		c.heard(said{l.UUID, l.Message.Content})
	case l.Type == "control_response":
		note("answers", string(must(json.Marshal(l.Response.Response))))
		c.mu.Lock()
		if to := c.asking[l.Response.RequestID]; to != nil {
			to <- l.Response.Response
			delete(c.asking, l.Response.RequestID)
		}
		c.mu.Unlock()
	case l.Type == "control_request":
		response := object{}
		switch l.Request.Subtype {
		case "initialize":
			response = c.greets(l)
		case "interrupt":
			response["still_queued"], response["cancelled"] = []string{}, c.interrupt()
		}
		c.say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": l.RequestID, "response": response}})
	}
}

func (c *claude) greets(l line) object {
	c.gated = len(l.Request.Hooks) > 0
	r := object{"claude_code_version": "2.1.332", "current_permission_mode": c.mode}
	if !there("older") {
		r["hooks_applied"], r["hook_on_failure_supported"] = true, true
	}
	return r
}

// interrupt breaks off what runs, and forgets what waits.
func (c *claude) interrupt() (cancelled []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.queue {
		cancelled = append(cancelled, s.id)
		c.fate(s.id, "cancelled")
	}
	c.queue = nil
	if c.turn != nil && !c.turn.stopped {
		c.turn.stopped = true
		close(c.turn.stop)
	}
	return cancelled
}

// heard takes a message: into the turn that runs, or to begin one with.
func (c *claude) heard(s said) {
	if there("refuse") {
		c.fate(s.id, "refused")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, s)
	c.fate(s.id, "queued")
	if c.turn != nil {
		select {
		case c.turn.more <- struct{}{}:
		default:
		}
		return
	}
	c.turn = newWorking(c)
	c.system("session_state_changed", object{"state": "running"})
	go c.work(c.turn)
}
