package shim

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A supervisor that waits for an answer reads no events. However many come first, the answer does; of how far the spools
// have grown only the newest is told.
func TestControl_AnswersWhileNobodyReadsEvents(t *testing.T) {
	ours, theirs := net.Pipe() // without a buffer: what is not read holds the sender up
	c := newControl(newLink(ours))
	go c.listen()
	go playShim(t, newLink(theirs), 100)
	env, err := c.Environment(make(chan time.Time))
	if diff := cmp.Diff([]string{"A=1"}, env); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	agent := &Agent{State: Running}
	want := []Event{{Started: agent}, {Out: 100, Err: 10}, {Written: &Written{N: 1, Op: "a"}}, {Exit: &Exit{Out: 100}}}
	var got []Event
	for e := range c.Events() {
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// playShim says much before it answers what it is asked, and then goes.
func playShim(t *testing.T, l *link, many int64) {
	defer l.conn.Close()
	if m, err := l.receive(); err != nil || m.M != "env" {
		t.Errorf("%+v, %v", m, err)
	}
	say := []message{{M: "started", Agent: &Agent{State: Running}}}
	for i := range many {
		say = append(say, message{M: "data", Out: i + 1, Err: 10})
		if i == many/2 {
			say = append(say, message{M: "written", N: 1, Op: "a"})
		}
	}
	say = append(say, message{M: "exit", Exit: &Exit{Out: many}}, message{M: "env", Env: []string{"A=1"}})
	for _, m := range say {
		if err := l.send(m); err != nil {
			t.Errorf("%s: %v", m.M, err)
			return
		}
	}
}

// An answer that came too late for who asked is no obstacle to what comes after it.
func TestControl_LateAnswersHoldNothingUp(t *testing.T) {
	ours, theirs := net.Pipe()
	c := newControl(newLink(ours))
	go c.listen()
	shim := newLink(theirs)
	for _, value := range []string{"A=1", "A=2"} {
		if err := shim.send(message{M: "env", Env: []string{value}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := shim.send(message{M: "data", Out: 1}); err != nil {
		t.Fatal(err)
	}
	if e := <-c.Events(); e.Out != 1 {
		t.Errorf("%+v", e)
	}
	c.Close()
	c.Close()
	if e, ok := <-c.Events(); ok {
		t.Errorf("after Close: %+v", e)
	}
}

// Who lets go of a shim need not read what it had said.
func TestControl_CloseEndsWhatNobodyReads(t *testing.T) {
	ours, theirs := net.Pipe()
	c := newControl(newLink(ours))
	ended := make(chan struct{})
	go func() { c.listen(); close(ended) }()
	if err := newLink(theirs).send(message{M: "data", Out: 1}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	<-ended
}
