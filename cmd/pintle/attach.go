package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// attachVerb is `pintle attach`.
type attachVerb struct {
	output
	Exclusive bool    `help:"Hold the session alone: nobody else drives it meanwhile."`
	TakeOver  bool    `name:"take-over" help:"Take it from whoever holds it, who is told, and drives it no more; alone, as with --exclusive."`
	After     *uint64 `help:"Begin behind a sequence of its events, and not with what was said last." placeholder:"SEQ"`
	ID        string  `arg:"" help:"The session, or a run of it."`
}

// Help is more of `pintle attach --help`.
func (v *attachVerb) Help() string {
	return "At a terminal a line that is typed is a message; /help says what else can be typed, Ctrl-C interrupts the turn that runs, Ctrl-D leaves. " +
		"Elsewhere the lines of standard input are messages, and what is answered is printed. The session goes on in any case."
}

// lately is how many rows of the history are shown before what comes.
const lately = 10

// attachment is a session that one is attached to. All of it belongs to the loop, but for what the link and the work do.
type attachment struct {
	a          *app
	v          *attachVerb
	d          *state.Dir
	talk       record.Conversation
	link       *link
	tty        *tty // nil without a terminal
	view       *view
	work       chan func()       // operations, one after the other: a client has one at a time (L11)
	results    chan outcome      // of messages
	sent       []*message        // those that have no outcome yet, in their order
	own        map[string]string // how each was sent that ever was, by its execution
	lines      <-chan line       // closed at their end
	cancel     context.CancelFunc
	lost       error          // why nothing is sent any more: the lease was taken over
	last       uint64         // with JSON: the last event that is waited for, once all was answered
	worst      error          // of a message that did not complete, the first
	struck     time.Time      // the last Ctrl-C
	interrupts chan time.Time // one for each Ctrl-C
	signals    chan os.Signal
}

// Run attaches, and stays until whoever sits there leaves.
func (v *attachVerb) Run(a *app) error {
	d, err := a.need(v.ID)
	if err != nil {
		return err
	}
	talk, err := record.FindConversation(d, v.ID)
	switch {
	case err != nil:
		return err
	case talk.Provider == command.Name:
		return usage("%s: a command has no conversation", printable(v.ID))
	case talk.Refused != nil:
		return talk.Refused
	}
	t := &attachment{
		a: a, v: v, d: d, talk: talk, work: make(chan func(), 1024), results: make(chan outcome, 16), own: map[string]string{},
		interrupts: make(chan time.Time, 4), signals: make(chan os.Signal, 4),
	}
	signal.Notify(t.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(t.signals)
	return t.run()
}

func (t *attachment) run() error {
	ctx, cancel := context.WithCancel(t.a.ctx)
	defer cancel()
	t.cancel = cancel
	t.link = newLink(t.a, t.d, api.Attach{Session: t.talk.Session, Mode: t.mode(), TakeOver: t.v.TakeOver})
	past, err := t.link.open(ctx, t.rows(), t.v.After)
	if err != nil {
		return err
	}
	defer t.link.close()
	if t.seated() {
		if t.tty, err = sit(t); err != nil {
			return err
		}
		defer t.tty.leave()
	} else {
		t.lines = linesOf(t.a.stdin)
	}
	t.view = newView(t)
	t.greet(past)
	go t.link.keep(ctx)
	go t.labour(ctx)
	return t.follow(ctx)
}

func (t *attachment) mode() string {
	if t.v.Exclusive {
		return "exclusive"
	}
	return ""
}

// rows is how many rows of the history are shown.
func (t *attachment) rows() int {
	if t.v.After != nil || t.v.JSON || !t.seated() {
		return 0
	}
	return lately
}

// seated reports whether somebody sits at a terminal.
func (t *attachment) seated() bool {
	return !t.v.JSON && terminal(t.a.stdin) && terminal(t.a.stdout)
}

// greet shows what was said last, and where one is.
func (t *attachment) greet(past []record.Row) {
	if t.tty == nil {
		return
	}
	for _, row := range past {
		fmt.Fprint(t.a.stdout, legible(rowText(row)))
	}
	for _, text := range t.view.open() {
		fmt.Fprintln(t.a.stdout, legible(text))
	}
	t.a.say("attached to %s (%s in %s), %s; /help says what can be typed, Ctrl-D leaves", t.talk.Session, t.talk.Provider, printable(t.talk.Cwd), t.link.lease.Mode)
}

// follow takes in what comes, until it is over.
func (t *attachment) follow(ctx context.Context) error {
	for {
		if t.done() {
			return t.leave(t.end())
		}
		select {
		case e := <-t.link.events:
			if err := t.take(e); err != nil {
				return t.leave(err)
			}
		case l, ok := <-t.taking():
			if !ok {
				t.lines = nil
				continue
			}
			t.heard(ctx, l)
		case o := <-t.results:
			if err := t.answered(o); err != nil {
				return t.leave(err)
			}
		case n := <-t.link.news:
			t.moved(n)
		case at := <-t.interrupts:
			if t.strike(ctx, at) {
				return t.leave(exit(130))
			}
		case s := <-t.signals:
			return t.leave(exit(128 + int(s.(syscall.Signal)))) //nolint:errcheck // signals are of no other type
		case <-t.link.over:
			return t.link.err
		}
	}
}

// taking is where lines come from; nowhere while many wait to be sent: the loop never waits for the work.
func (t *attachment) taking() <-chan line {
	if len(t.work) > cap(t.work)/2 || len(t.sent) >= cap(t.work)/2 {
		return nil
	}
	return t.lines
}

// done reports whether nothing is waited for: whoever typed has left, or, elsewhere, what was sent was answered, too, and the
// events of that have come.
func (t *attachment) done() bool {
	switch {
	case t.lines != nil || t.tty == nil && len(t.sent) > 0:
		return false
	case !t.v.JSON:
		return true
	case t.last == 0:
		page, _ := record.History(t.d, t.talk.Session, record.Page{Tail: true, Limit: 1}) // unreadable: what has come is all
		t.last = page.UpTo
	}
	return t.link.seen.Load() >= t.last
}

// end is how the verb ends without a terminal: by what did not complete, or with what could not be sent.
func (t *attachment) end() error {
	switch {
	case t.tty != nil:
		return nil
	case t.lost != nil:
		return t.lost
	}
	return t.worst
}

// take takes in an event.
func (t *attachment) take(e journal.Event) error {
	if !t.link.fresh(e) {
		return nil
	}
	if e.Type == "lease_changed" {
		t.evicted(e)
	}
	switch {
	case e.Seq == 0: // the journal's own one comes, too
	case t.v.JSON:
		t.a.event(e)
	case t.tty != nil:
		return t.view.show(e)
	}
	return nil
}

// moved tells how the connection is, and that the lease is gone.
func (t *attachment) moved(n notice) {
	if n.lost != nil {
		t.lose(n.lost)
	}
	if t.tty != nil && n.text != "" {
		t.view.flush()
		t.a.say("%s", n.text)
	}
}

// strike is a Ctrl-C: it interrupts the turn that runs, and a second one within a second leaves.
func (t *attachment) strike(ctx context.Context, at time.Time) (leaves bool) {
	if at.Sub(t.struck) < time.Second {
		return true
	}
	t.struck = at
	t.a.say("interrupting; Ctrl-C once more leaves")
	go t.interrupt(ctx)
	return false
}

// leave gives the lease back and says goodbye. The session goes on.
func (t *attachment) leave(why error) error {
	ctx, cancel := context.WithTimeout(t.a.ctx, leaveLimit)
	defer cancel()
	if t.view != nil {
		t.view.flush()
	}
	if t.tty != nil {
		t.hurry(ctx)
	}
	t.cancel()
	if err := t.link.leave(ctx); err != nil {
		t.a.say("the lease could not be given back, it ends with its grace: %v", err)
	}
	return why
}

// leaveLimit is how long leaving may take; the client's grace does the rest.
const leaveLimit = 5 * time.Second

// hurry has what was typed be stored before one leaves, with the environment that it waits for.
func (t *attachment) hurry(ctx context.Context) {
	stored, sent := make(chan struct{}), t.sent
	select {
	case t.work <- func() { t.provide(ctx, sent); close(stored) }:
	default:
		return
	}
	select {
	case <-stored:
	case <-ctx.Done():
		t.a.say("what was typed last may not have been sent")
	}
}

// labour carries out operations, one after the other.
func (t *attachment) labour(ctx context.Context) {
	for {
		select {
		case do := <-t.work:
			do()
		case <-ctx.Done():
			return
		}
	}
}
