package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pintle/pintle/providers"
)

// result is what a fold made of an output: the text by type of event, its frames, and what it knows in the end.
type result struct {
	Text   map[string]string
	Frames []providers.Frame
	About  providers.About
}

// A sitting is one fold and what it is given. An agent gets orders, one after the other, and answers.
type sitting struct {
	testing.TB
	provider providers.Provider
	run      run
	fold     providers.Fold
	got      result
	ops      map[string]bool // of all frames: none may come twice in the life of a process
	buf      []byte
	offset   int64
	frames   int // heard
	begun    int // orders
	answered int
	left     bool
}

// piece is more of the output. final says that nothing comes after it.
func (s *sitting) piece(data []byte, final bool) {
	s.Helper()
	s.buf = append(s.buf, data...)
	for len(s.buf) > 0 {
		n := s.provider.Split(providers.Stdout, s.buf, final)
		if n < 0 || n > len(s.buf) {
			s.Fatalf("split returns %d of %d bytes", n, len(s.buf))
		}
		if n == 0 {
			return
		}
		s.hears(bytes.Clone(s.buf[:n]))
		s.offset, s.buf = s.offset+int64(n), s.buf[n:]
	}
}

func (s *sitting) hears(frame []byte) {
	s.Helper()
	events, frames := s.fold.Receive(providers.Chunk{Stream: providers.Stdout, Offset: s.offset, Data: frame})
	for _, e := range events {
		s.event(e)
	}
	s.made(frames)
	s.frames++
	s.attend()
	if s.run.again {
		state := s.fold.State()
		s.fold = restore(s, s.provider, state)
		if got := s.fold.State(); !bytes.Equal(got, state) {
			s.Errorf("the state %s is restored as %s", state, got)
		}
	}
}

// decisions are given in turn to what an agent asks.
var decisions = []providers.Decision{providers.Allow, providers.Deny, providers.Fail}

// attend gives an agent what it may be given by now.
func (s *sitting) attend() {
	s.Helper()
	a, ok := s.fold.(providers.Agent)
	if !ok || s.left {
		return
	}
	if s.run.leave > 0 && s.frames == s.run.leave {
		s.left = true
		s.made(a.Leave())
		s.made(a.Leave())
		return
	}
	if s.begun == 0 || a.About().End != nil && s.begun < orders {
		s.begun++
		o := Order(s.begun)
		o.Open, o.Shared = s.run.open && s.begun == 1, s.run.shared
		s.made(a.Begin(o))
	}
	if s.run.interrupt > 0 && s.frames == s.run.interrupt {
		s.made(a.Interrupt())
	}
	if s.run.steer > 0 && s.frames%s.run.steer == 0 {
		s.steer(a)
	}
	// Every second one has to wait for the next frame.
	if asked := a.About().Pending; len(asked) > 0 && s.frames%2 == 0 {
		s.made(a.Answer(asked[0].ID, decisions[s.answered%len(decisions)]))
		s.answered++
		if more := a.Answer(asked[0].ID, providers.Allow); more != nil {
			s.Errorf("%s is answered twice, by %s", asked[0].ID, more[0].Data)
		}
	}
}

// steer puts a message into the turn, twice under one name.
func (s *sitting) steer(a providers.Agent) {
	s.Helper()
	op := fmt.Sprintf("steer-%d", s.frames)
	frames, ok := a.Steer(op, "a message")
	s.made(frames)
	if more, known := a.Steer(op, "a message"); len(more) > 0 || known != ok {
		s.Errorf("%s is given twice: %v, %v, %v", op, ok, known, more)
	}
}

// made takes in frames: each is a message of one line, with an operation of its own.
func (s *sitting) made(frames []providers.Frame) {
	s.Helper()
	for _, f := range frames {
		if f.Op == "" || s.ops[f.Op] {
			s.Errorf("operation %q is made again by %s", f.Op, f.Data)
		}
		s.ops[f.Op] = true
		if bytes.IndexByte(f.Data, '\n') != len(f.Data)-1 || !json.Valid(f.Data) {
			s.Errorf("a frame is no line of JSON: %.200q", f.Data)
		}
	}
	s.got.Frames = append(s.got.Frames, frames...)
}

func (s *sitting) event(e providers.Event) {
	s.Helper()
	if e.Type == "" || len(e.Data) > 0 && (!json.Valid(e.Data) || bytes.ContainsRune(e.Data, '\n')) {
		s.Errorf("event %q has data that is no JSON on one line: %.200s", e.Type, e.Data)
	}
	s.got.Text[e.Type] += textOf(e.Data)
}

func restore(t testing.TB, p providers.Provider, state json.RawMessage) providers.Fold {
	t.Helper()
	f, err := p.New(state)
	if err != nil {
		t.Fatalf("restore from %s: %v", state, err)
	}
	return f
}

// textOf is a chunk's text, byte for byte, or the data of what is no chunk.
func textOf(data json.RawMessage) string {
	var c struct {
		Content *struct{ Text string }
		Bytes   []byte
	}
	switch err := json.Unmarshal(data, &c); {
	case err != nil || c.Content == nil:
		return fmt.Sprintf("%s\n", data)
	case c.Bytes != nil:
		return string(c.Bytes)
	}
	return c.Content.Text
}
