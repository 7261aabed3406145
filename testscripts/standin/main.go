// Standin stands in for `codex app-server`, or for Claude Code if it is called claude or that is its first argument, or for pi if
// that is, for what the real ones cannot be made to do. A prompt is what it does, step by step, with "; " between them; the directory that it
// runs in has what it did, and what it waits for:
//
//	say TEXT        a message; without any, the turn ends with "said N", N counting the turns of all processes
//	env NAME        says what is in its environment under the name
//	hold FILE       waits until the file is there, or the turn is interrupted
//	steer           waits until a message is put into the turn, and says "steered MESSAGE"
//	ask COMMAND     asks for the permission to run it, and says "ran COMMAND" if it may
//	tool COMMAND    a tool call, with its end
//	begin COMMAND   a tool call without one
//	usage IN OUT    tells what the conversation has cost: a request of so many tokens more
//	flood N [RATE]  N pieces of a message, as fast as they go, or RATE a second
//	fail INFO       ends the turn as failed, with that for codexErrorInfo
//	notice INFO     an error that it goes on from
//	die, mute, exit N  SIGKILL of itself, silence, leaving
//
// With the file deaf it dies of a prompt that it has not confirmed, with lost it knows no thread that goes on, with other it
// resumes another one than was asked for, and with slow none until that file is gone; resuming has the pids that waited so.
// With CODEX_HOME it locks its threads there, as the real one does, each from when it is loaded until it is unloaded: that
// is when its client has unsubscribed, its turn has ended, and thread/start or thread/resume has said that there is to be
// no delay. A message that is put into a turn is taken in, and told as the real one tells it, at the end of the step that
// runs; what an interrupt comes before it is forgotten.
// A step that begins with "once " is done by the first process that comes to it. Files: launches has a line for each
// process, requests each line that it was sent, prompts each prompt, prompts-THREAD those of one thread, steers each
// message that it took into a turn, answers each answer, overlaps a line for each turn that was begun while another of its
// thread ran; busy is there while any runs, closed has each thread that was unloaded, pid is its process.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	out sync.Mutex

	mu      sync.Mutex
	threads map[string]*thread // those that are loaded
	asking  map[string]chan message
	asked   int
	turns   int // that run
}

func main() {
	if filepath.Base(os.Args[0]) == "claude" || len(os.Args) > 1 && os.Args[1] == "claude" {
		beClaude(os.Args)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "acp" {
		beACP()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "pi" {
		bePi(os.Args[1:])
		return
	}
	note("launches", "x")
	_ = os.WriteFile("pid", fmt.Appendln(nil, os.Getpid()), 0o600)
	s := &server{threads: map[string]*thread{}, asking: map[string]chan message{}}
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

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func must(data []byte, _ error) []byte { return data }

func (s *server) send(m message) {
	data, _ := json.Marshal(m)
	s.out.Lock()
	defer s.out.Unlock()
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func (s *server) answer(m message, result any) { s.send(message{ID: m.ID, Result: result}) }

func (s *server) refuse(m message, why string) {
	s.send(message{ID: m.ID, Error: map[string]any{"code": -32600, "message": why}})
}

func (s *server) take(m message) {
	switch m.Method {
	case "initialize":
		s.answer(m, map[string]string{"userAgent": "pintle/0.171.0 (standin)"})
	case "config/read":
		s.answer(m, map[string]any{"config": map[string]any{}})
	case "thread/start", "thread/resume":
		s.open(m)
	case "thread/unsubscribe":
		s.unsubscribe(m)
	case "turn/start":
		s.begin(m)
	case "turn/steer":
		s.steer(m)
	case "turn/interrupt":
		s.interrupt(m)
	case "":
		note("answers", string(must(json.Marshal(m))))
		s.answered(m)
	default:
		if m.ID != nil {
			s.answer(m, struct{}{})
		}
	}
}

// answered gives an answer to the turn that asked.
func (s *server) answered(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.asking[string(m.ID)]; c != nil {
		c <- m
		delete(s.asking, string(m.ID))
	}
}
