package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pintle/pintle/rpc/api"
)

// attended reports whether somebody sits at a terminal and answers what the agent asks for.
func (v *runVerb) attended(a *app) bool {
	return !v.Detach && !v.JSON && !v.Quiet && terminal(a.stdin) && terminal(a.stderr)
}

// asker puts to whoever sits at the terminal what the agent asks for, one question after the other. It belongs to the
// loop that follows the run; only a line is read beside it.
type asker struct {
	f       *follower
	open    []api.Permission // neither resolved nor answered here, as they came
	stands  bool             // the first of open is on the terminal and waits for a line
	reading bool             // a line is being read: that ends with the line, whatever became of the question
	lines   chan string
	results chan answer
}

// answer is what became of an answer that was given here.
type answer struct {
	to  api.Permission
	err error
}

func newAsker(f *follower) *asker {
	return &asker{f: f, lines: make(chan string, 1), results: make(chan answer)}
}

// line and result are what the loop waits for; nothing without a terminal.
func (k *asker) line() <-chan string {
	if k == nil {
		return nil
	}
	return k.lines
}

func (k *asker) result() <-chan answer {
	if k == nil {
		return nil
	}
	return k.results
}

// add has something asked once all that is known by now was taken in: it may have its answer already.
func (k *asker) add(p api.Permission) {
	if k != nil {
		k.open = append(k.open, p)
	}
}

// settle forgets what has its answer. Who did not give it is told whose it is.
func (k *asker) settle(r api.Answered) {
	if k == nil {
		return
	}
	i := slices.IndexFunc(k.open, func(p api.Permission) bool { return p.ID == r.Permission })
	if i < 0 {
		return
	}
	if i == 0 && k.stands {
		k.withdraw()
		k.f.a.say("%s", verdict(r))
	}
	k.open = slices.Delete(k.open, i, i+1)
}

// withdraw leaves the line of a question that nobody answers any more.
func (k *asker) withdraw() {
	if k != nil && k.stands {
		k.stands = false
		fmt.Fprintln(k.f.a.stderr)
	}
}

// next asks, unless something is being asked, or the run is being stopped.
func (k *asker) next() {
	if k == nil || k.stands || len(k.open) == 0 || k.f.signal != nil {
		return
	}
	k.stands = true
	p, a := k.open[0], k.f.a
	k.f.breakLine()
	forget(a.stdin) // what was typed before does not answer it
	fmt.Fprintf(a.stderr, "pintle: %s asks %s. allow? [y/N/a always/d details] ", k.f.c.Spec.Payload.Provider, mute(asks(p.Title, p.Reason)))
	if !k.reading {
		k.reading = true
		go k.read()
	}
}

// read reads a line. A terminal gives one at a time; at its end it gives none, which is no yes.
func (k *asker) read() {
	line := make([]byte, 4096)
	n, _ := k.f.a.stdin.Read(line)
	k.lines <- string(line[:n])
}

// heard takes in a line. What was typed for a question that was withdrawn answers no other one.
func (k *asker) heard(line string) {
	k.reading = false
	if !k.stands {
		return
	}
	k.stands = false
	if line == "" {
		fmt.Fprintln(k.f.a.stderr)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		k.give("allow", false)
	case "a", "always":
		k.give("allow", true)
	case "", "n", "no":
		k.give("deny", false)
	case "d", "details":
		k.detail(k.open[0])
	}
	k.next()
}

// give has the first question answered, beside the loop: a supervisor may have to be started for it.
func (k *asker) give(decision string, always bool) {
	p := k.open[0]
	k.open = k.open[1:]
	go func() {
		_, err := k.f.a.answer(k.f.d, p.ID, decision, always)
		select {
		case k.results <- answer{p, err}:
		case <-k.f.a.ctx.Done():
		}
	}()
}

// given takes in what became of an answer. Unless another one counts, what failed is asked once more.
func (k *asker) given(r answer) {
	if r.err == nil {
		return
	}
	k.withdraw()
	k.f.a.tell(r.err)
	if api.CodeOf(r.err) != api.CodeResolved {
		k.open = append(k.open, r.to)
	}
	k.next()
}

// detail says all that is known of what is asked for.
func (k *asker) detail(p api.Permission) {
	for _, row := range [][2]string{
		{"it asks", p.Title}, {"reason", p.Reason}, {"kind", p.Kind}, {"run", k.f.c.Spec.ID}, {"directory", k.f.c.Spec.Payload.Cwd},
		{"elsewhere", "pintle allow " + p.ID + ", or pintle deny " + p.ID},
	} {
		if row[1] != "" {
			k.f.a.say("%s: %s", row[0], row[1])
		}
	}
}
