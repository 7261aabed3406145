package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// thread is a conversation that is loaded.
type thread struct {
	*server
	id      string
	lock    *os.File // nil if there is no home
	atOnce  bool     // it is unloaded as soon as nobody wants it
	deaf    bool     // its client has unsubscribed
	used    [2]int
	turn    *turning // that runs
	running int      // turns, one but for an overlap
}

// granted is what a sandbox is called in answers.
var granted = map[string]string{"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}

func (s *server) open(m message) {
	var p struct {
		ThreadID, ApprovalPolicy, Sandbox, Model string
		Ephemeral                                bool
		Config                                   struct {
			Delay *int `json:"thread_unload_delay_secs"`
		}
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
		s.refuse(m, "no rollout found for thread id "+id)
		return
	case there("slow"):
		go s.openLater(m)
		return
	case there("other"):
		id += "-other"
	}
	if !p.Ephemeral && !s.load(id, p.Config.Delay != nil && *p.Config.Delay == 0) {
		s.refuse(m, "thread "+id+" already has an active writer")
		return
	}
	s.answer(m, map[string]any{
		"thread": map[string]any{"id": id, "ephemeral": p.Ephemeral, "cliVersion": "0.171.0"}, "model": "m", "modelProvider": "p",
		"approvalPolicy": p.ApprovalPolicy, "approvalsReviewer": "user", "sandbox": map[string]any{"type": granted[p.Sandbox]},
	})
}

// openLater resumes a thread once that is to be quick again.
func (s *server) openLater(m message) {
	note("resuming", strconv.Itoa(os.Getpid()))
	for there("slow") {
		time.Sleep(5 * time.Millisecond)
	}
	s.open(m)
}

// load has a thread loaded and locked, and its client hear of it.
func (s *server) load(id string, atOnce bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[id]; t != nil {
		t.deaf = false
		return true
	}
	t := &thread{server: s, id: id, atOnce: atOnce}
	if home := os.Getenv("CODEX_HOME"); home != "" {
		f, err := os.OpenFile(home+"/thread-writer-locks/"+id+".lock", os.O_RDWR|os.O_CREATE, 0o600) // where there is no such directory it does without
		if err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = f.Close()
			return false
		}
		t.lock = f
	}
	s.threads[id] = t
	return true
}

// loaded is the thread that a request is about, nil if it is not loaded.
func (s *server) loaded(m message) *thread {
	var p struct{ ThreadID string }
	_ = json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.threads[p.ThreadID]
}

func (s *server) unsubscribe(m message) {
	t := s.loaded(m)
	if t == nil {
		s.answer(m, map[string]string{"status": "notLoaded"})
		return
	}
	s.mu.Lock()
	t.deaf = true
	s.mu.Unlock()
	s.answer(m, map[string]string{"status": "unsubscribed"})
	t.unload()
}

// unload does so if nobody wants the thread. Every client is told.
func (t *thread) unload() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.deaf || !t.atOnce || t.running > 0 || t.threads[t.id] != t {
		return
	}
	delete(t.threads, t.id)
	if t.lock != nil {
		_ = t.lock.Close() // which frees it
	}
	note("closed", t.id)
	t.send(message{Method: "thread/status/changed", Params: must(json.Marshal(map[string]any{"threadId": t.id, "status": map[string]string{"type": "notLoaded"}}))})
	t.send(message{Method: "thread/closed", Params: must(json.Marshal(map[string]string{"threadId": t.id}))})
}

// tell is a notification about the thread, for whoever has subscribed to it.
func (t *thread) tell(method string, params map[string]any) {
	t.mu.Lock()
	deaf := t.deaf
	t.mu.Unlock()
	params["threadId"] = t.id
	if !deaf {
		t.send(message{Method: method, Params: must(json.Marshal(params))})
	}
}

func (s *server) begin(m message) {
	var p struct{ Input []struct{ Text string } }
	_ = json.Unmarshal(m.Params, &p)
	t := s.loaded(m)
	if t == nil {
		s.refuse(m, "thread not found: "+strings.TrimSpace(string(m.Params)))
		return
	}
	prompt := string(must(json.Marshal(p.Input[0].Text)))
	note("prompts", prompt)
	note("prompts-"+t.id, prompt)
	if os.Remove("deaf") == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	turn := &turning{thread: t, id: fmt.Sprintf("U%d", lines("prompts")), stop: make(chan struct{}), more: make(chan struct{}, 1)}
	turn.starts()
	s.answer(m, map[string]any{"turn": map[string]any{"id": turn.id, "status": "inProgress"}})
	t.tell("turn/started", map[string]any{"turn": map[string]any{"id": turn.id, "rootTurnId": turn.id, "status": "inProgress"}})
	go func() {
		status, failure := turn.run(p.Input[0].Text)
		end := map[string]any{"id": turn.id, "rootTurnId": turn.id, "status": status}
		if failure != nil {
			end["error"] = failure
		}
		turn.ends(end)
	}()
}

// starts notes that the turn runs, and whether another one of its thread does, in this process or in one that lives.
func (t *turning) starts() {
	t.mu.Lock()
	defer t.mu.Unlock()
	busy, pid := "busy-"+t.thread.id, 0
	if data, err := os.ReadFile(busy); err == nil {
		_, _ = fmt.Sscan(string(data), &pid)
	}
	if pid > 0 && syscall.Kill(pid, 0) == nil {
		note("overlaps", t.id)
	}
	_ = os.WriteFile(busy, fmt.Append(nil, os.Getpid()), 0o600)
	_ = os.Mkdir("busy", 0o700) // one that is there is of a process that has died, or of another thread's turn
	t.turns++
	t.running++
	t.thread.turn = t
}

// ends tells the end, behind which nothing is taken into the turn any more.
func (t *turning) ends(end map[string]any) {
	t.mu.Lock()
	if t.thread.turn == t {
		t.thread.turn = nil
	}
	t.turns--
	t.running--
	if t.turns == 0 {
		_ = os.Remove("busy")
	}
	if t.running == 0 {
		_ = os.Remove("busy-" + t.thread.id)
	}
	t.mu.Unlock()
	t.tell("turn/completed", map[string]any{"turn": end})
	t.unload()
}

// active is the turn that a request names, or why there is none.
func (s *server) active(m message, what string) (*turning, string) {
	var p struct{ TurnID, ExpectedTurnID string }
	_ = json.Unmarshal(m.Params, &p)
	t := s.loaded(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := p.TurnID + p.ExpectedTurnID
	switch {
	case t == nil || t.turn == nil:
		return nil, "no active turn to " + what
	case wanted != t.turn.id:
		return nil, fmt.Sprintf("expected active turn id `%s` but found `%s`", wanted, t.turn.id)
	}
	return t.turn, ""
}

func (s *server) interrupt(m message) {
	t, why := s.active(m, "interrupt")
	if t == nil {
		s.refuse(m, why)
		return
	}
	t.once.Do(func() { close(t.stop) })
	s.answer(m, struct{}{})
}

func (s *server) steer(m message) {
	var p struct {
		Client string `json:"clientUserMessageId"`
		Input  []struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &p)
	t, why := s.active(m, "steer")
	if t == nil || !t.given(steered{p.Client, p.Input[0].Text}) {
		s.refuse(m, why+map[bool]string{true: "no active turn to steer"}[t != nil])
		return
	}
	s.answer(m, map[string]string{"turnId": t.id})
}
