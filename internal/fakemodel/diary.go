package fakemodel

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"
)

// Request is one that the server was asked.
type Request struct {
	Time     time.Time `json:"time"`
	Model    string    `json:"model,omitempty"`
	Thread   string    `json:"thread,omitempty"`
	Prompt   string    `json:"prompt,omitempty"`   // the last text of the user
	Earlier  []string  `json:"earlier,omitempty"`  // the user's texts before, as the agent tells them
	FollowUp bool      `json:"followUp,omitempty"` // a tool has answered since
	Output   string    `json:"output,omitempty"`   // with what, the last one
	Retry    bool      `json:"retry,omitempty"`    // the same was asked before, in the same place of the thread
	Mistake  string    `json:"mistake,omitempty"`  // why it should not have been asked
}

// A place is where in a thread something is asked.
type place struct {
	thread, prompt string
	turn, outputs  int
}

// diary keeps what was asked.
type diary struct {
	mu        sync.Mutex
	file      *os.File // nil without
	err       error    // the first of the file
	requests  []Request
	asked     map[place]int
	answering int
	changed   chan struct{} // closed at the next change
}

// open begins it; an empty path is no file.
func (d *diary) open(path string) (err error) {
	d.asked = map[place]int{}
	d.changed = make(chan struct{})
	if path != "" {
		d.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	return err
}

func (d *diary) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		if err := d.file.Close(); d.err == nil {
			d.err = err
		}
		d.file = nil
	}
	err := d.err
	d.err = nil
	return err
}

// add notes a request that is being answered from now on, until done, and returns how often the same was
// asked before.
func (d *diary) add(q question, mistake string) (before int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mistake == "" {
		at := place{q.thread, q.prompt, len(q.earlier), len(q.outputs)}
		before = d.asked[at]
		d.asked[at]++
	}
	r := Request{
		Time: time.Now(), Model: q.model, Thread: q.thread, Prompt: q.prompt, Earlier: q.earlier,
		FollowUp: len(q.outputs) > 0, Retry: before > 0, Mistake: mistake,
	}
	if r.FollowUp {
		r.Output = q.outputs[len(q.outputs)-1]
	}
	d.requests = append(d.requests, r)
	d.answering++
	d.write(r)
	d.tell()
	return before
}

// write appends r to the file, in one write: servers may share one.
func (d *diary) write(r Request) {
	if d.file == nil {
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = d.file.Write(append(line, '\n'))
	}
	if d.err == nil {
		d.err = err
	}
}

func (d *diary) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answering--
	d.tell()
}

func (d *diary) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *diary) look() (requests []Request, answering int, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests), d.answering, d.changed
}

// Requests are all so far, in order.
func (s *Server) Requests() []Request {
	requests, _, _ := s.diary.look()
	return requests
}

// Mistakes are what should not have been asked.
func (s *Server) Mistakes() (found []string) {
	for _, r := range s.Requests() {
		if r.Mistake != "" {
			found = append(found, r.Mistake)
		}
	}
	return found
}

// Wait returns when cond holds of the requests so far and of how many of them are being answered, or with the
// context's error.
func (s *Server) Wait(ctx context.Context, cond func(requests []Request, answering int) bool) error {
	for {
		requests, answering, changed := s.diary.look()
		if cond(requests, answering) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
