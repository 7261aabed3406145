package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// message is one that was sent from here.
type message struct {
	api.Send
	brought bool // its environment
	left    bool // to the session's own rule, what its agent asks
	ended   bool
	outcome
}

// outcome is what became of a message.
type outcome struct {
	of        *message
	execution api.Execution
	err       error
}

// commands is what can be typed besides messages.
const commands = `/steer TEXT       into the turn that runs
/interrupt TEXT   in place of the turn that runs
/interrupt        end the turn that runs
/allow ID, /deny ID   answer what the agent asks for
//TEXT            a message that begins with one /
Ctrl-C interrupts the turn, Ctrl-D leaves: the session goes on`

// heard takes in a line.
func (t *attachment) heard(ctx context.Context, l line) {
	if l.err != nil {
		t.failed(usage("standard input: %w", l.err))
		return
	}
	line := strings.TrimSuffix(l.text, "\r")
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.TrimSpace(line) == "":
	case strings.HasPrefix(line, "//"):
		t.send(ctx, line[1:], "")
	case !strings.HasPrefix(line, "/"):
		t.send(ctx, line, "")
	case word == "/steer" && rest != "", word == "/interrupt" && rest != "":
		t.send(ctx, rest, word[1:])
	case word == "/interrupt":
		go t.interrupt(ctx)
	case (word == "/allow" || word == "/deny") && rest != "":
		t.answer(ctx, rest, word[1:])
	case slices.Contains([]string{"/steer", "/allow", "/deny"}, word):
		t.failed(usage("%s needs something behind it; /help says what", word))
	case word == "/help":
		t.a.say("%s", commands)
	default:
		t.failed(usage("%s is no command; /help lists them, and //TEXT is a message that begins with /", printable(word)))
	}
}

// failed tells of an error that ends nothing.
func (t *attachment) failed(err error) {
	if t.view != nil {
		t.view.flush()
	}
	t.a.tell(err)
	if t.worst == nil {
		t.worst = exit(typed(err).Code.Exit())
	}
}

// send gives the session a message. What becomes of it is waited for.
func (t *attachment) send(ctx context.Context, text, when string) {
	switch {
	case t.lost != nil:
		t.failed(t.lost)
		return
	case !utf8.ValidString(text):
		t.failed(usage("the message is not valid UTF-8"))
		return
	}
	m := &message{Send: api.Send{
		Operation: api.Operation{OperationID: operationID()}, Session: t.talk.Session, Text: text, When: when,
	}}
	t.sent, t.own[m.OperationID] = append(t.sent, m), cmp.Or(when, "queue")
	t.work <- func() {
		var sent api.Sent
		if err := t.link.call(ctx, api.MethodSessSend, m.Send, &sent); err != nil {
			t.tell(ctx, outcome{of: m, err: err})
			return
		}
		go func() { t.tell(ctx, t.await(ctx, m)) }()
	}
}

func (t *attachment) tell(ctx context.Context, o outcome) {
	select {
	case t.results <- o:
	case <-ctx.Done():
	}
}

// await waits for the end of a message's turn. If nothing has the environment of the session's agent any more, that is
// brought. What the agent asks is left to who holds the session: nobody does who is not there to answer.
func (t *attachment) await(ctx context.Context, m *message) (o outcome) {
	o.of = m
	for {
		o.err = t.link.call(ctx, api.MethodWait, api.Wait{ID: m.OperationID, Answers: t.tty != nil}, &o.execution)
		w := o.execution.WaitingFor
		switch {
		case o.err != nil || w == nil:
			return o
		case w.Kind == "needs_env" && !m.brought:
			m.brought, o.err = true, t.bring(ctx, m)
		case w.Kind == "needs_approval" && t.tty == nil && !m.left:
			m.left, o.err = true, t.link.call(ctx, api.MethodSessDetach, t.link.detach(), nil)
		default:
			return o
		}
		if o.err != nil {
			return o
		}
		o.execution = api.Execution{}
	}
}

// provide brings the environment to those that wait for it, since nobody is there who would later.
func (t *attachment) provide(ctx context.Context, sent []*message) {
	for _, m := range sent {
		var e api.Execution
		if t.link.call(ctx, api.MethodGet, api.Target{ID: m.OperationID}, &e) != nil || e.WaitingFor == nil || e.WaitingFor.Kind != "needs_env" {
			continue
		}
		if err := t.bring(ctx, m); err != nil {
			t.a.say("%s was not given its environment: %v", m.OperationID, err)
		}
	}
}

// bring brings the environment that a run of this verb's would have, and what else the session's agent was given, as far as
// this verb has it.
func (t *attachment) bring(ctx context.Context, m *message) error {
	cfg, err := t.a.config()
	if err != nil {
		return err
	}
	spec, err := record.SpecOf(t.d, record.FolderOf(m.OperationID))
	if err != nil {
		return err
	}
	v := &runVerb{Agent: t.talk.Provider}
	v.Env = spec.Environment.Names
	v.Secret = slices.DeleteFunc(slices.Clone(spec.Environment.Secrets), func(name string) bool { return t.a.getenv(name) == "" })
	env, err := v.environment(t.a, cfg)
	if err != nil {
		return err
	}
	return t.link.call(ctx, api.MethodCreate, createOf(m.OperationID, env), nil)
}

// answered takes in what became of a message. Elsewhere than at a terminal answers are printed in the order of the messages.
func (t *attachment) answered(o outcome) error {
	o.of.ended, o.of.outcome = true, o
	for i := 0; i < len(t.sent); {
		m := t.sent[i]
		if !m.ended {
			if t.tty == nil {
				return nil
			}
			i++
			continue
		}
		t.sent = slices.Delete(t.sent, i, i+1)
		if err := t.conclude(m); err != nil {
			return err
		}
	}
	return nil
}

// conclude says what became of a message.
func (t *attachment) conclude(m *message) error {
	e := m.execution
	switch {
	case m.err != nil:
		if api.CodeOf(m.err) == api.CodeOwned {
			t.lose(m.err)
		}
		t.failed(m.err)
		return nil
	case e.ExitCode == nil && t.tty == nil:
		return waitsFor(e)
	case t.tty != nil:
		return nil // its events have told it
	}
	if !t.v.JSON {
		text, err := record.Text(t.d, record.FolderOf(e.ID))
		if err != nil {
			return err
		}
		if err := printText(t.a.stdout, e.Provider, text); err != nil {
			return err
		}
	}
	if *e.ExitCode != 0 {
		if !t.v.JSON {
			t.a.say("%s", verdictLine(e))
		}
		if t.worst == nil {
			t.worst = exit(*e.ExitCode)
		}
	}
	return nil
}

// interrupt has the turn that runs end. It may overtake what is being sent (L11).
func (t *attachment) interrupt(ctx context.Context) {
	var done api.Controlled
	i := api.Interrupt{Operation: api.Operation{OperationID: operationID()}, Session: t.talk.Session, Reason: "interrupted by " + t.a.user()}
	err := t.link.call(ctx, api.MethodSessInterrupt, i, &done)
	n := notice{}
	switch {
	case err != nil:
		n.text = oneLine(typed(err).Message)
	case done.ExecutionID == "":
		n.text = "no turn runs"
	}
	t.link.tell(ctx, n)
}

// answer answers what the agent asks for.
func (t *attachment) answer(ctx context.Context, id, decision string) {
	by := t.a.user()
	t.work <- func() {
		a := api.Answer{Operation: api.Operation{OperationID: operationID()}, ID: id, Decision: decision, By: by}
		err := t.link.call(ctx, api.MethodAnswer, a, nil)
		if err == nil {
			return
		}
		if w, late := winner(err); late {
			err = beaten(w, err)
		}
		t.link.tell(ctx, notice{text: oneLine(typed(err).Message)})
	}
}

// evicted looks whether a lease that was taken over was ours.
func (t *attachment) evicted(e journal.Event) {
	var change leaseChange
	if json.Unmarshal(e.Data, &change) != nil || change.Client == t.link.hello.Client {
		return
	}
	if slices.ContainsFunc(change.Evicted, func(l session.Lease) bool { return l.Client == t.link.hello.Client }) {
		t.lose(api.E(api.CodeOwned, "client %s has taken session %s over, %s", record.Quote(change.Client), t.talk.Session, change.Mode).
			WithNext("pintle attach " + t.talk.Session + " --take-over"))
	}
}

// lose notes, and says once, that the session is another's: from then on it is only looked at.
func (t *attachment) lose(why error) {
	if t.lost != nil {
		return
	}
	t.lost = why
	if t.tty != nil {
		t.view.flush()
		t.a.say("%s; read-only from here on", oneLine(typed(why).Message))
		t.a.say("hint: %s", typed(why).Next)
	}
}
