//go:build agents

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/rpc/api"
)

// held is a session of real Codex's with a turn in it, in a house of its own, and the client that holds it.
func held(t *testing.T, model, approve string) (*client, string) {
	t.Helper()
	t.Parallel()
	h := newHouse(t, model)
	h.patient(t)
	c := h.join("a")
	id := c.open(approve).ID
	c.send(id, opener, "first")
	return c, id
}

// works reports whether a command of an agent's is there.
func (h *house) works(words string) bool {
	for _, p := range h.alive() {
		if line := strings.Join(p.Args, " "); strings.Contains(line, words) && filepath.Base(p.Args[0]) != "codex" {
			return true
		}
	}
	return false
}

// busy gives a session a turn whose command waits for proceed.
func (c *client) busy(id string) api.Sent {
	c.t.Helper()
	sent := c.post(id, gated, "")
	c.until("the command runs", func() bool { return c.works("until test") })
	return sent
}

func (h *house) proceed() {
	h.t.Helper()
	if err := os.Mkdir(filepath.Join(h.dir, "go"), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// asks are what the model was asked, without repetitions.
func (h *house) asks() (prompts []string) {
	for _, r := range h.model.Requests() {
		if !r.Retry {
			prompts = append(prompts, r.Prompt)
		}
	}
	return prompts
}

func (h *house) wantAsks(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.asks()); diff != "" {
		h.t.Errorf("the model was asked (-want +got)\n%s", diff)
	}
}

func (c *client) wantTurns(id string, want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.turns(id)); diff != "" {
		c.t.Errorf("turns (-want +got)\n%s", diff)
	}
}

// A message that steers is in the model's next request, and in no turn of its own.
func TestF6_SteerWhileAToolRuns(t *testing.T) {
	for _, model := range []string{"gpt-5.5", "gpt-6.2-sol"} {
		t.Run(model, func(t *testing.T) {
			c, id := held(t, model, "all")
			host := c.busy(id)
			const prompt = "respond with exactly: steered"
			steered := c.post(id, prompt, "steer")
			if steered.When != "steer" || steered.Execution == host.Execution {
				t.Errorf("%+v", steered)
			}
			call[api.Execution](c, api.MethodWait, api.Wait{ID: steered.Execution, Until: "handed_over"})
			c.proceed()
			e, h := c.wait(steered.Execution), c.wait(host.Execution)
			if e.Outcome != "completed" || e.Delivery.State != "accepted" || e.Delivery.HandedOverAt == nil || h.Outcome != "completed" {
				t.Errorf("ended as %+v, %+v; its host as %+v", e, e.Delivery, h)
			}
			c.saw(host.Execution, "agent_message_chunk", "steered")
			c.wantTurns(id, "completed", "completed")
			c.wantAsks(opener, gated, prompt)
			c.refused(api.CodeSteer, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: "late", When: "steer"})
			c.send(id, "respond with exactly: next", "next")
		})
	}
}

// A message in the place of the turn that runs ends that, and nothing of it is left.
func TestF6_InterruptReplacesTheTurn(t *testing.T) {
	c, id := held(t, "gpt-5.5", "all")
	first := c.busy(id)
	behind := c.post(id, "respond with exactly: behind", "")
	instead := c.post(id, "respond with exactly: instead", "interrupt")
	if e := c.wait(first.Execution); e.Outcome != "cancelled" {
		t.Errorf("ended as %+v", e)
	}
	if e, last := c.wait(instead.Execution), c.wait(behind.Execution); e.Outcome != "completed" || last.Outcome != "completed" {
		t.Errorf("ended as %+v and %+v", e, last)
	}
	if c.works("until test") {
		t.Error("its command goes on")
	}
	c.wantTurns(id, "completed", "cancelled", "completed", "completed")
	c.wantAsks(opener, gated, "respond with exactly: instead", "respond with exactly: behind")
}

// An interrupt answers once no turn runs, and the process stays.
func TestF6_Interrupt(t *testing.T) {
	c, id := held(t, "gpt-5.5", "all")
	before := c.get(id)
	first := c.busy(id)
	call[api.Controlled](c, api.MethodSessInterrupt, api.Interrupt{Operation: operation(), Session: id})
	if e := c.wait(first.Execution); e.Outcome != "cancelled" || c.works("until test") {
		t.Errorf("ended as %+v", e)
	}
	c.send(id, "respond with exactly: next", "next")
	if now := c.get(id); now.Fence != before.Fence || now.Ownership.Runtime.PID != before.Ownership.Runtime.PID {
		t.Errorf("it is %+v, it was %+v", now.Ownership, before.Ownership)
	}
}

// Messages to a busy session come in their order, each as a turn.
func TestF6_QueueKeepsItsOrder(t *testing.T) {
	c, id := held(t, "gpt-5.5", "all")
	c.busy(id)
	want := []string{opener, gated, gated} // and with what came out of the command
	var last api.Sent
	for _, word := range []string{"one", "two", "three"} {
		want = append(want, "respond with exactly: "+word)
		last = c.post(id, want[len(want)-1], "queue")
		if last.Delivery.HandedOverAt != nil || last.Delivery.State != "pending" {
			t.Errorf("to a busy one: %+v", last.Delivery)
		}
	}
	c.proceed()
	c.wait(last.Execution)
	c.wantAsks(want...)
	c.wantTurns(id, "completed", "completed", "completed", "completed", "completed")
}

// Two clients share a session: they see the same, and of two answers one counts.
func TestR11_TwoClients(t *testing.T) {
	a, id := held(t, "gpt-5.5", "edits")
	a.detach(id)
	a.attach(id, "shared")
	b := a.house.join("b")
	b.attach(id, "shared")
	b.watch(id)
	const prompt = "shell-escalated: echo x >> ran"
	sent := b.post(id, prompt, "")
	var asked struct{ Permission string }
	decode(t, a.saw(sent.Execution, "permission_requested").Data, &asked)
	b.saw(sent.Execution, "permission_requested")
	won := a.contend(b, id, asked.Permission)
	if e := a.ended(sent.Execution); e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	ran, _ := os.ReadFile(filepath.Join(a.dir, "ran"))
	if (won == "allow") != (string(ran) == "x\n") {
		t.Errorf("%s won, and the command left %q", won, ran)
	}
	end := a.saw(sent.Execution, "turn_ended")
	b.saw(sent.Execution, "turn_ended")
	if diff := cmp.Diff(a.upTo(end.Seq), b.upTo(end.Seq)); diff != "" {
		t.Errorf("they saw other things (-a +b)\n%s", diff)
	}
	a.wantTurns(id, "completed", "completed")
	a.send(id, "respond with exactly: a's", "a's")
	b.send(id, "respond with exactly: b's", "b's")
	if now := a.get(id); len(now.Leases) != 2 {
		t.Errorf("it is held by %+v", now.Leases)
	}
}

// contend has both answer at once, a with allow and b with deny, and returns which of these counts.
func (c *client) contend(b *client, id, permission string) (won string) {
	c.t.Helper()
	answers := make(chan error, 2)
	for who, decision := range map[*client]string{c: "allow", b: "deny"} {
		go func() {
			_, err := try[api.Answered](who, api.MethodAnswer, api.Answer{Operation: operation(), ID: permission, Decision: decision})
			answers <- err
		}()
	}
	for _, err := range []error{<-answers, <-answers} {
		if err != nil && api.CodeOf(err) != api.CodeResolved {
			c.t.Error(err)
		}
	}
	var all []string
	for _, e := range c.journalled(id, "permission_resolved") {
		var r struct{ Decision string }
		decode(c.t, e.Data, &r)
		all = append(all, r.Decision)
	}
	if len(all) != 1 {
		c.t.Fatalf("answers that count: %q", all)
	}
	return all[0]
}

// A conversation that was stopped in good order is gone on with by the next message (R3).
func TestR3_AConversationOutlivesItsSupervisor(t *testing.T) {
	c, id := held(t, "gpt-5.5", "")
	was := c.get(id)
	if r := c.pintle("", "supervise", "stop"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	c.until("nothing is left", func() bool { return len(c.alive()) == 0 })
	c.back(id)
	now := c.get(id)
	if now.Ownership.State != "free" || now.Ownership.Runtime != nil || now.Conversation != was.Conversation || was.Conversation == "" {
		t.Errorf("it is %+v, it was %+v", now, was)
	}
	c.wantTurns(id, "completed")
	e := c.send(id, "respond with exactly: next", "next")
	if e.Conversation != was.Conversation || e.Fence <= was.Fence {
		t.Errorf("%+v, it was %+v", e, was)
	}
	c.knows("respond with exactly: next", opener)
	c.wantTurns(id, "completed", "completed")
}

// knows wants a prompt to have come behind others.
func (h *house) knows(prompt string, earlier ...string) {
	h.t.Helper()
	asked := h.prompts(prompt)
	if len(asked) != 1 {
		h.t.Fatalf("the model was asked %d times for %q", len(asked), prompt)
	}
	for _, text := range earlier {
		if !slices.Contains(asked[0].Earlier, text) {
			h.t.Errorf("asked for %q it does not know of %q", prompt, text)
		}
	}
}

// One conversation, whoever gives the next word: run, a client at the socket, send.
func TestR3_FromRunOverTheSocketToSend(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "gpt-5.5")
	const second, third, fourth = "respond with exactly: second", "respond with exactly: third", "respond with exactly: fourth"
	if r := h.pintle("", "run", "--id", "k", "-a", "codex", opener); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	run := h.show("k")
	c := h.join("a")
	c.attach(run.Session, "shared")
	c.watch(run.Session)
	e := c.send(run.Session, second, "second")
	if e.Conversation != run.Conversation {
		t.Errorf("%+v, it was %+v", e, run)
	}
	if r := h.pintle("", "send", "--id", "l", "k", third); r.Code != 0 || r.Out != "third\n" {
		t.Errorf("%+v", r)
	}
	c.saw("l", "agent_message_chunk", "third")
	if sent := h.show("l"); sent.Conversation != run.Conversation || sent.Fence != e.Fence {
		t.Errorf("%+v, it was %+v", sent, e)
	}
	c.detach(run.Session)
	if r := h.pintle("", "send", "k", fourth); r.Code != 0 || r.Out != "fourth\n" {
		t.Errorf("%+v", r)
	}
	h.knows(fourth, opener, second, third)
	c.wantTurns(run.Session, "completed", "completed", "completed", "completed")
}
