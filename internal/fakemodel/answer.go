package fakemodel

import (
	"context"
	"net/http"
	"time"
)

// A question is what any API's request asks.
type question struct {
	model   string
	thread  string
	prompt  string   // the last text of the user
	earlier []string // the texts before that: how many there are tells equal prompts of a thread apart
	outputs []string // what tools answered since
	side    bool     // it is of no turn: a title, a classifier. It is answered plainly and not noted
}

// An answer is under way to a client. What ends one early panics with http.ErrAbortHandler, by which net/http
// breaks the connection.
type answer struct {
	ctx   context.Context // until the client is gone or the server closes
	w     http.ResponseWriter
	flush func() error
	id    func(kind string) string
}

// write sends bytes at once.
func (a *answer) write(b []byte) {
	if _, err := a.w.Write(b); err != nil || a.flush() != nil {
		a.cut()
	}
}

// cut breaks the connection.
func (a *answer) cut() { panic(http.ErrAbortHandler) }

// hang says nothing more.
func (a *answer) hang() {
	<-a.ctx.Done()
	a.cut()
}

func (a *answer) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ctx.Done():
		a.cut()
	}
}
