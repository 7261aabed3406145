package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

// Whatever clients do with one session, in whatever order, and whenever the supervisor is killed: the rules of
// internal/session say who is refused, the fence never falls, a repeat is answered as the first time, and what was accepted
// reaches the agent once. -rapid.seed repeats a sequence, PINTLE_LONG=1 tries many.
func TestModel_L1_L2_L3_L6_L9_F1_F2_F6_ClientsOfOneSession(t *testing.T) {
	checks, steps := "4", "25"
	if os.Getenv("PINTLE_LONG") != "" {
		checks, steps = "60", "60"
	}
	defer set(t, "rapid.checks", checks)()
	defer set(t, "rapid.steps", steps)()
	defer set(t, "rapid.nofailfile", "true")()
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t, "")
		defer s.strike()
		w := newTable(s)
		defer func() {
			if rt.Failed() || t.Failed() {
				log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log"))
				t.Logf("the sequence:\n%s\nsupervisor.log:\n%s", strings.Join(w.steps, "\n"), log)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(rt *rapid.T) { w.look(rt) },
			"attach":  w.attach,
			"take":    w.takeOver,
			"detach":  w.detach,
			"send":    w.send,
			"hold":    w.hold,
			"release": w.release,
			"repeat":  w.repeat,
			"lose":    w.lose,
			"back":    w.comeBack,
			"goodbye": w.goodbye,
			"kill":    w.kill,
		})
		w.settle(rt)
	})
}

// message is one that was accepted.
type message struct {
	client, text, id string
	rejected         bool
}

// table is a session with its clients, as they must be.
type table struct {
	s       *stage
	id      string
	clients []*guest
	leases  session.Leases
	fence   int64
	queue   []*message // the first one runs
	holds   []string
	sent    []*message
	past    []demand
	changes []string
	serial  int
	steps   []string
}

// guest is a client: an insister that may be away.
type guest struct {
	*insister
	away bool
}

func newTable(s *stage) *table {
	w := &table{s: s}
	s.serving()
	for _, name := range []string{"x", "y", "z"} {
		c := &guest{insister: &insister{driver: &driver{s: s, id: name, news: make(chan struct{})}}}
		c.come()
		w.clients = append(w.clients, c)
	}
	made := w.clients[0].open()
	w.id, w.fence = made.ID, made.Fence
	w.took(session.Lease{Client: "x", Mode: session.Exclusive})
	return w
}

func (w *table) name(c *guest) string { return c.driver.id }

func (w *table) step(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

func (w *table) took(l session.Lease) {
	w.leases = append(w.leases, l)
	w.changes = append(w.changes, "taken "+l.Client+" "+string(l.Mode))
}

// one draws a client that is connected.
func (w *table) one(rt *rapid.T) *guest {
	here := slices.DeleteFunc(slices.Clone(w.clients), func(c *guest) bool { return c.away })
	if len(here) == 0 {
		rt.Skip()
	}
	return here[rapid.IntRange(0, len(here)-1).Draw(rt, "client")]
}

// busy are the executions that hold the session.
func (w *table) busy() (all []session.Busy) {
	for _, m := range w.queue {
		all = append(all, session.Busy{Execution: m.id, Since: time.Now()})
	}
	return all
}

// ask has a client ask for something, and the supervisor killed meanwhile, perhaps: then the client asks once more.
func (w *table) ask(rt *rapid.T, c *guest, method string, params map[string]any) (json.RawMessage, error) {
	params["operationId"] = operation().OperationID
	dies := rapid.IntRange(0, 4).Draw(rt, "dies") == 0
	w.step("%s: %s %v, killed meanwhile: %v", w.name(c), method, params, dies)
	var answer json.RawMessage
	var err error
	if dies {
		asked := ask[json.RawMessage](c.driver, method, params)
		w.murder()
		<-asked // it may have been answered
	}
	if answer, err = try[json.RawMessage](c.driver, method, params); err == nil {
		w.past = append(w.past, demand{method, params, answer})
	}
	return answer, err
}

// murder kills the supervisor, and has its clients come to the next one.
func (w *table) murder() {
	w.s.slay(w.s.supervising(w.s.t).PID)
	w.s.serving()
	for _, c := range w.clients {
		if !c.away {
			c.come()
		}
	}
}

// judge compares a refusal with what the rules say.
func (w *table) judge(rt *rapid.T, err error, refusal *session.Refusal) (done bool) {
	code := api.CodeOf(err)
	switch {
	case refusal == nil && err == nil:
		return true
	case refusal != nil && code == api.CodeOwned:
		return false
	}
	rt.Fatalf("answered %v, the rules say %v", err, refusal)
	return false
}

func (w *table) attach(rt *rapid.T) {
	c := w.one(rt)
	mode := session.Mode(rapid.SampledFrom([]string{"shared", "shared", "exclusive"}).Draw(rt, "mode"))
	got, refusal := w.leases.Attach(session.Ask{Client: w.name(c), Mode: mode}, w.busy())
	_, err := w.ask(rt, c, api.MethodSessAttach, map[string]any{"session": w.id, "mode": string(mode)})
	if w.judge(rt, err, refusal) && got.Changed {
		w.took(got.Lease)
	}
}

func (w *table) takeOver(rt *rapid.T) {
	c := w.one(rt)
	was := w.fence
	answer, err := w.ask(rt, c, api.MethodSessAttach, map[string]any{"session": w.id, "takeOver": true})
	var got api.Attached
	_ = json.Unmarshal(answer, &got)
	if w.judge(rt, err, nil); got.Fence <= was {
		rt.Fatalf("taken over at the fence %d, it was %d", got.Fence, was)
	}
	w.leases = nil
	w.took(session.Lease{Client: w.name(c), Mode: session.Exclusive})
}

func (w *table) detach(rt *rapid.T) {
	c := w.one(rt)
	_, err := w.ask(rt, c, api.MethodSessDetach, map[string]any{"session": w.id})
	w.judge(rt, err, nil)
	w.leaves(w.name(c))
}

// leaves takes a client's lease away.
func (w *table) leaves(client string) {
	if l, held := w.leases.Of(client); held {
		w.changes = append(w.changes, "given_back "+client+" "+string(l.Mode))
	}
	w.leases = w.leases.Without(client)
}

func (w *table) send(rt *rapid.T) { w.post(rt, "say") }
func (w *table) hold(rt *rapid.T) { w.post(rt, "hold") }

func (w *table) post(rt *rapid.T, what string) {
	c := w.one(rt)
	w.serial++
	text := fmt.Sprintf("%s m%d", what, w.serial)
	answer, err := w.ask(rt, c, api.MethodSessSend, map[string]any{"session": w.id, "text": text})
	if !w.judge(rt, err, w.leases.MayWrite(w.name(c))) {
		return
	}
	var sent api.Sent
	_ = json.Unmarshal(answer, &sent)
	m := &message{client: w.name(c), text: text, id: sent.Execution}
	w.sent, w.queue = append(w.sent, m), append(w.queue, m)
	if what == "hold" {
		w.holds = append(w.holds, fmt.Sprintf("m%d", w.serial))
	} else if len(w.queue) == 1 {
		w.drain(rt)
	}
}

// release lets all go on, so that nothing is in the queue behind it. Who may not write any more is refused when his message
// leaves the queue.
func (w *table) release(rt *rapid.T) {
	for _, m := range w.queue[min(1, len(w.queue)):] {
		m.rejected = w.leases.MayWrite(m.client) != nil
	}
	w.step("release %d", len(w.queue))
	for _, file := range w.holds {
		w.s.touch(file)
	}
	w.holds = nil
	w.drain(rt)
}

func (w *table) drain(rt *rapid.T) {
	c := w.someone()
	for _, m := range w.queue {
		var e api.Execution
		_ = json.Unmarshal(c.insist(api.MethodWait, api.Wait{ID: m.id}), &e)
		want := map[bool]string{false: "completed accepted", true: "failed rejected"}[m.rejected]
		if got := e.Outcome + " " + e.Delivery.State; got != want && !(m.rejected && e.Delivery.State == "rejected" && e.Cause != nil && e.Cause.Code == string(api.CodeOwned)) {
			rt.Fatalf("%q of %s ended as %s (%+v), want %s", m.text, m.client, got, e.Cause, want)
		}
	}
	w.queue = nil
}

// someone is a client that is there; one comes if need be.
func (w *table) someone() *guest {
	for _, c := range w.clients {
		if !c.away {
			return c
		}
	}
	w.clients[0].away = false
	w.clients[0].come()
	return w.clients[0]
}

// repeat asks once more what was answered, whoever asks now.
func (w *table) repeat(rt *rapid.T) {
	c := w.one(rt)
	if len(w.past) == 0 {
		rt.Skip()
	}
	was := w.past[rapid.IntRange(0, len(w.past)-1).Draw(rt, "which")]
	w.step("%s: again %s %v", w.name(c), was.method, was.params)
	if again := c.insist(was.method, was.params); string(again) != string(was.answer) {
		rt.Fatalf("answered %s, first %s", again, was.answer)
	}
}

func (w *table) lose(rt *rapid.T) {
	c := w.one(rt)
	w.step("%s loses its connection", w.name(c))
	c.c.Close()
	c.away = true
}

func (w *table) comeBack(rt *rapid.T) {
	away := slices.DeleteFunc(slices.Clone(w.clients), func(c *guest) bool { return !c.away })
	if len(away) == 0 {
		rt.Skip()
	}
	c := away[rapid.IntRange(0, len(away)-1).Draw(rt, "client")]
	w.step("%s comes back", w.name(c))
	c.away = false
	c.come()
}

func (w *table) goodbye(rt *rapid.T) {
	c := w.one(rt)
	w.step("%s says goodbye", w.name(c))
	_, _ = try[any](c.driver, api.MethodGoodbye, nil)
	w.leaves(w.name(c))
	c.token = ""
	c.come() // as another client of that id: once what the old one held is free
}

func (w *table) kill(*rapid.T) {
	w.step("the supervisor is killed")
	w.murder()
}

// look compares the session with the model.
func (w *table) look(rt *rapid.T) {
	c := w.someone()
	var now api.Session
	_ = json.Unmarshal(c.insist(api.MethodSessGet, api.SessionTarget{Session: w.id}), &now)
	var got, want []string
	for _, l := range now.Leases {
		got = append(got, l.Client+" "+l.Mode)
	}
	for _, l := range w.leases {
		want = append(want, l.Client+" "+string(l.Mode))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || strings.Contains(strings.Join(got, ","), "exclusive") && len(got) > 1 {
		rt.Fatalf("leases %q, want %q", got, want)
	}
	if now.Fence < w.fence {
		rt.Fatalf("the fence fell from %d to %d", w.fence, now.Fence)
	}
	w.fence = now.Fence
}

// settle lets all end, and looks at what reached the agent and the journal.
func (w *table) settle(rt *rapid.T) {
	w.someone()
	w.release(rt)
	for _, was := range w.past {
		if again := w.someone().insist(was.method, was.params); string(again) != string(was.answer) {
			rt.Fatalf("%s answered %s, first %s", was.method, again, was.answer)
		}
	}
	for _, c := range w.clients {
		if c.away {
			c.away = false
			c.come()
		}
		_, _ = try[any](c.driver, api.MethodGoodbye, nil)
		w.leaves(w.name(c))
	}
	var want, got []string
	for _, m := range w.sent {
		if !m.rejected {
			want = append(want, m.text)
		}
	}
	if w.s.lines("prompts") > 0 {
		got = w.s.prompted()
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("the agent got %q, want %q", got, want)
	}
	w.s.until("all leases are told", func() bool {
		return slices.Equal(w.s.leaseChanges(w.id), w.changes) || len(w.s.leaseChanges(w.id)) > len(w.changes)
	})
	w.s.changed(w.id, w.changes...)
	w.s.quiet()
	w.s.fences(w.id)
}
