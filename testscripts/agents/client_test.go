//go:build agents

package agents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/providers/providertest"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A client drives sessions of a house's supervisor, over one connection.
type client struct {
	*house
	id    string
	c     *rpc.Client
	token string

	mu     sync.Mutex
	events []journal.Event
	news   chan struct{} // closed at the next event
}

// join connects as a client that comes back within a minute and a half. The first one has a supervisor started.
func (h *house) join(id string) *client {
	h.t.Helper()
	c := &client{house: h, id: id, news: make(chan struct{})}
	c.come()
	h.t.Cleanup(func() { c.c.Close() })
	return c
}

// come connects, to another supervisor if none answers, and is the same client.
func (c *client) come() {
	c.t.Helper()
	conn, err := c.reach()
	if err != nil {
		if r := c.pintle("", "supervise", "restart"); r.Code != 0 {
			c.t.Fatalf("%+v", r)
		}
		conn, err = c.reach()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.c = rpc.NewClient(conn, c.told)
	w := call[api.Welcome](c, api.MethodHello, api.Hello{Protocol: api.ProtocolVersion, Client: c.id, Version: "test", ResumeToken: c.token})
	c.token = w.ResumeToken
}

// reach connects to the supervisor that is on record.
func (h *house) reach() (net.Conn, error) {
	d, err := state.OpenExisting(h.home)
	if err != nil {
		return nil, err
	}
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err != nil {
		return nil, err
	}
	return rpc.Dial(h.t.Context(), rec.Socket)
}

// back has the client come back, and see all of a session again.
func (c *client) back(id string) {
	c.t.Helper()
	c.c.Close()
	c.come()
	c.watch(id)
}

// told keeps events.
func (c *client) told(method string, params json.RawMessage) {
	var e journal.Event
	if method != api.NotifyEvent || json.Unmarshal(params, &e) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	close(c.news)
	c.news = make(chan struct{})
}

// saw waits for an event of a kind, with words in it, that an execution has; "" is any.
func (c *client) saw(execution, kind string, words ...string) journal.Event {
	c.t.Helper()
	limit := time.After(patience)
	for {
		c.mu.Lock()
		i := slices.IndexFunc(c.events, func(e journal.Event) bool {
			return e.Type == kind && (execution == "" || e.Execution == execution) && has(string(e.Data), words)
		})
		news := c.news
		if i >= 0 {
			defer c.mu.Unlock()
			return c.events[i]
		}
		c.mu.Unlock()
		select {
		case <-news:
		case <-limit:
			c.t.Fatalf("no %s came with %q; it saw %s", kind, words, c.kinds())
		}
	}
}

func has(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// kinds are the types of what it saw.
func (c *client) kinds() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, e := range c.events {
		all = append(all, e.Type)
	}
	return strings.Join(all, " ")
}

// call makes a request that succeeds.
func call[T any](c *client, method string, params any) (result T) {
	c.t.Helper()
	result, err := try[T](c, method, params)
	if err != nil {
		c.t.Fatalf("%s %+v: %v", method, params, err)
	}
	return result
}

func try[T any](c *client, method string, params any) (result T, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*patience)
	defer cancel()
	err = c.c.Call(ctx, method, params, &result)
	return result, err
}

// refused makes a request that is refused with that code.
func (c *client) refused(code api.Code, method string, params any) *api.Error {
	c.t.Helper()
	answer, err := try[json.RawMessage](c, method, params)
	if api.CodeOf(err) != code {
		c.t.Fatalf("%s %+v: %v %s, want %s", method, params, err, answer, code)
	}
	var e *api.Error
	_ = errors.As(err, &e)
	return e
}

// operation is a new one, now.
func operation() api.Operation {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return api.Operation{OperationID: session.NewOperation(time.Now(), b)}
}

// creation is a session of Codex's, which asks as Codex is configured, or with approve nothing.
func (h *house) creation(approve string) api.CreateSession {
	vars := map[string]string{}
	for _, pair := range h.environment() {
		name, value, _ := strings.Cut(pair, "=")
		vars[name] = value
	}
	return api.CreateSession{Operation: operation(), Provider: h.agent, Cwd: h.dir, Approve: approve, Environment: vars}
}

// open creates a session, which the client sees from then on.
func (c *client) open(approve string) api.Session {
	c.t.Helper()
	made := call[api.Session](c, api.MethodSessCreate, c.creation(approve))
	c.watch(made.ID)
	return made
}

// hold has a client open a session.
func (h *house) hold() providertest.Held {
	h.t.Helper()
	c := h.join("holder")
	id := call[api.Session](c, api.MethodSessCreate, h.creation("")).ID
	return providertest.Held{
		Session: id,
		Send:    func(prompt string) string { return c.post(id, prompt, "").Execution },
		Leave:   func() { c.detach(id) },
	}
}

// watch subscribes to all of a session's events.
func (c *client) watch(id string) {
	c.t.Helper()
	call[api.Subscribed](c, api.MethodSessSubscribe, api.Subscribe{Session: id, After: new(uint64)})
}

// post sends a message and does not wait for its end.
func (c *client) post(id, text, when string) api.Sent {
	c.t.Helper()
	return call[api.Sent](c, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: text, When: when})
}

// wait waits for the end of an execution.
func (c *client) wait(key string) api.Execution {
	c.t.Helper()
	return call[api.Execution](c, api.MethodWait, api.Wait{ID: key})
}

// ended waits for the end of an execution that may wait for an answer meanwhile.
func (c *client) ended(key string) (e api.Execution) {
	c.t.Helper()
	c.until(key+" has ended", func() bool {
		e = call[api.Execution](c, api.MethodGet, api.Target{ID: key})
		return e.EndedAt != nil // before, it is only said how it probably ended
	})
	return e
}

// send has a turn carried out that must complete, and in which the agent says a word.
func (c *client) send(id, prompt, word string) api.Execution {
	c.t.Helper()
	e := c.wait(c.post(id, prompt, "").Execution)
	if e.Outcome != string(session.Completed) || e.Delivery == nil || e.Delivery.State != "accepted" {
		c.t.Fatalf("%q ended as %+v, %+v, %+v", prompt, e, e.Cause, e.Delivery)
	}
	c.saw(e.ID, "agent_message_chunk", word)
	return e
}

func (c *client) get(id string) api.Session {
	c.t.Helper()
	return call[api.Session](c, api.MethodSessGet, api.SessionTarget{Session: id})
}

// comes waits until a session is as it is to be.
func (c *client) comes(id, what string, is func(api.Session) bool) (now api.Session) {
	c.t.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if now = c.get(id); is(now) {
			return now
		}
		if time.Now().After(limit) {
			c.t.Fatalf("never came true: %s; it is %+v, %+v", what, now, now.Ownership)
		}
	}
}

// replaced waits until a session's agent is another process, in which its conversation stands.
func (c *client) replaced(id string, pid int) api.Session {
	c.t.Helper()
	return c.comes(id, "the agent is another process", func(s api.Session) bool {
		return s.Ownership.State == "live" && s.Ownership.Runtime != nil && s.Ownership.Runtime.PID != pid && len(s.Queue) == 0
	})
}

func (c *client) detach(id string) {
	c.t.Helper()
	call[api.Detached](c, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
}

func (c *client) attach(id, mode string) api.Attached {
	c.t.Helper()
	return call[api.Attached](c, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: mode})
}

// turns are how the turns in a session's history ended.
func (c *client) turns(id string) (outcomes []string) {
	c.t.Helper()
	for _, row := range call[record.Rows](c, api.MethodSessHistory, api.History{Session: id, Limit: 200}).Rows {
		var v struct{ Outcome string }
		if row.Type == "turn_ended" {
			_ = json.Unmarshal(row.Data, &v)
			outcomes = append(outcomes, v.Outcome)
		}
	}
	return outcomes
}

// supervising is supervisor.json.
func (h *house) supervising() supervisor.Record {
	h.t.Helper()
	rec, err := state.Read[supervisor.Record](h.records(), supervisor.File)
	if err != nil {
		h.t.Fatal(err)
	}
	return rec
}

func (h *house) records() *state.Dir {
	h.t.Helper()
	d, err := state.OpenExisting(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// journalled are the events of a kind in a session's journal.
func (h *house) journalled(id, kind string) []journal.Event {
	h.t.Helper()
	events, err := journal.Scan(filepath.Join(h.home, record.JournalDir(id)), time.Time{}, kind)
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

// runtime is that of a session.
func (h *house) runtime(id string) api.RuntimeSummary {
	h.t.Helper()
	all := supervisor.Runtimes(h.records())
	i := slices.IndexFunc(all, func(r api.RuntimeSummary) bool { return slices.Contains(r.Sessions, id) })
	if i < 0 {
		h.t.Fatalf("session %s has no runtime", id)
	}
	return all[i]
}

// freeze stops a process (SIGSTOP), which is killed or goes on later.
func (h *house) freeze(pid int) {
	h.t.Helper()
	id, err := proc.Identify(pid)
	if err == nil {
		err = proc.Signal(id, syscall.SIGSTOP)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.until("it stands still", func() bool {
		data, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
		return err != nil || strings.Contains(string(data), ") T ")
	})
}

// until waits for a fact.
func (h *house) until(what string, fact func() bool) {
	h.t.Helper()
	for limit := time.Now().Add(patience); !fact(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("never came true: %s; alive are %v", what, h.alive())
		}
	}
}

// upTo is what it saw, up to a sequence, each once.
func (c *client) upTo(last uint64) (all []journal.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Seq <= last {
			all = append(all, e)
		}
	}
	return all
}

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

func itoa(n int) string {
	data, _ := json.Marshal(n)
	return string(data)
}

// patient has Codex wait for the model for as long as it takes.
func (h *house) patient(t *testing.T) {
	t.Helper()
	path := filepath.Join(h.lab.home, "config.toml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "stream_idle_timeout_ms = 4000", "stream_idle_timeout_ms = 600000", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
