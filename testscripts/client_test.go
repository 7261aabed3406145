package testscripts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// driver is a client of a supervisor's, over one connection.
type driver struct {
	s     *stage
	id    string
	c     *rpc.Client
	token string
	grace *int64 // in milliseconds; nil: as long as the server has it

	mu     sync.Mutex
	events []journal.Event
	news   chan struct{} // closed at the next event
}

// join connects as a client that comes back within a minute and a half.
func (s *stage) join(id string) *driver { return s.joinAs(id, "") }

// joinAs connects as a client that has a token.
func (s *stage) joinAs(id, token string) *driver { s.t.Helper(); return s.joinFor(id, token, nil) }

// joinFor connects as a client that outlives its connection by so many milliseconds.
func (s *stage) joinFor(id, token string, grace *int64) *driver {
	s.t.Helper()
	d := &driver{s: s, id: id, token: token, grace: grace, news: make(chan struct{})}
	if err := d.connect(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.c.Close() })
	return d
}

// connect says hello on another connection, and is the same client.
func (d *driver) connect() error {
	conn, err := rpc.Dial(d.s.t.Context(), d.s.socket())
	if err != nil {
		return err
	}
	d.c = rpc.NewClient(conn, d.told)
	var w api.Welcome
	if err := d.c.Call(d.s.t.Context(), api.MethodHello, api.Hello{Protocol: api.ProtocolVersion, Client: d.id, Version: "test", ResumeToken: d.token, GraceMs: d.grace}, &w); err != nil {
		return err
	}
	d.token = w.ResumeToken
	return nil
}

// told keeps events.
func (d *driver) told(method string, params json.RawMessage) {
	var e journal.Event
	if method != api.NotifyEvent || json.Unmarshal(params, &e) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	close(d.news)
	d.news = make(chan struct{})
}

// saw waits for an event of a kind that says what is wanted.
func (d *driver) saw(kind string, is func(journal.Event) bool) journal.Event {
	d.s.t.Helper()
	limit := time.After(patience)
	for {
		d.mu.Lock()
		i := slices.IndexFunc(d.events, func(e journal.Event) bool { return e.Type == kind && (is == nil || is(e)) })
		news := d.news
		if i >= 0 {
			defer d.mu.Unlock()
			return d.events[i]
		}
		d.mu.Unlock()
		select {
		case <-news:
		case <-limit:
			d.s.t.Fatalf("no %s came", kind)
		}
	}
}

// call makes a request that succeeds.
func call[T any](d *driver, method string, params any) (result T) {
	d.s.t.Helper()
	result, err := try[T](d, method, params)
	if err != nil {
		d.s.t.Fatalf("%s %+v: %v", method, params, err)
	}
	return result
}

// try makes a request.
func try[T any](d *driver, method string, params any) (result T, err error) {
	ctx, cancel := context.WithTimeout(d.s.t.Context(), patience)
	defer cancel()
	err = d.c.Call(ctx, method, params, &result)
	return result, err
}

// refused makes a request that is refused with that code.
func (d *driver) refused(code api.Code, method string, params any) *api.Error {
	d.s.t.Helper()
	answer, err := try[json.RawMessage](d, method, params)
	if api.CodeOf(err) != code {
		d.s.t.Fatalf("%s %+v: %v %s, want %s", method, params, err, answer, code)
	}
	var e *api.Error
	_ = errors.As(err, &e)
	return e
}

// operation is a new operation, now.
func operation() api.Operation {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return api.Operation{OperationID: session.NewOperation(time.Now(), b)}
}

// creation is a session with the stand-in.
func (s *stage) creation() api.CreateSession {
	return api.CreateSession{
		Operation: operation(), Provider: "codex", Cwd: s.work,
		Environment: map[string]string{"PATH": filepath.Join(s.dir, "bin") + ":/usr/bin:/bin", "HOME": s.dir},
	}
}

// open creates a session.
func (d *driver) open() api.Session {
	d.s.t.Helper()
	return call[api.Session](d, api.MethodSessCreate, d.s.creation())
}

// send sends a message to a session, and waits for the end of its turn.
func (d *driver) send(id, text string) (api.Sent, api.Execution) {
	d.s.t.Helper()
	sent := call[api.Sent](d, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: text})
	return sent, call[api.Execution](d, api.MethodWait, api.Wait{ID: sent.Execution})
}

func TestL2_CreatingASessionGivesAnExclusiveLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	made := a.open()
	if made.State != "ready" || made.Lease == nil || made.Lease.Mode != "exclusive" || made.Lease.Client != "a" || made.Fence == 0 {
		t.Fatalf("made %+v", made)
	}
	if made.Ownership.State != "live" || made.Conversation != "" {
		t.Errorf("its runtime is %+v, its conversation %q", made.Ownership, made.Conversation)
	}
	sent, e := a.send(made.ID, "say hello")
	if e.Outcome != "completed" || sent.Delivery.State != "pending" || sent.Delivery.HandedOverAt == nil || e.Delivery.State != "accepted" {
		t.Errorf("sent %+v, ended as %+v", sent, e)
	}
	if got := s.lines("launches"); got != 1 {
		t.Errorf("%d processes for one session", got)
	}
	call[api.Detached](a, api.MethodSessDetach, api.Detach{Session: made.ID})
	s.quiet()
}
