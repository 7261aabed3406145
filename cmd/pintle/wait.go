package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// waitVerb is `pintle wait`.
type waitVerb struct {
	output
	selection
	Until   string        `enum:"ended,stored,handed_over,confirmed" default:"ended" help:"What to wait for: the end, or that the prompt is stored, handed over to the agent, or confirmed by it." placeholder:"FACT"`
	Any     bool          `help:"Return when the first has ended."`
	Timeout time.Duration `help:"Give up waiting after so long (exit 124); the runs go on." placeholder:"D"`
}

// Help is more of `pintle wait --help`.
func (v *waitVerb) Help() string { return noneFails }

// Run prints a line for each run as it ends.
func (v *waitVerb) Run(a *app) error {
	if v.Timeout < 0 {
		return usage("--timeout cannot be negative")
	}
	d, targets, err := a.targets(v.selection, false, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	if v.Timeout > 0 {
		ctx, cancel = context.WithTimeout(a.ctx, v.Timeout)
	}
	defer cancel()
	results := make(chan waited, len(targets))
	for _, t := range targets {
		go func() { results <- a.waitFor(ctx, d, t, v.Until) }()
	}
	return v.collect(ctx, a, results, len(targets))
}

// waitFor waits for one run, or for what becomes of its prompt. One that has ended needs no supervisor.
func (a *app) waitFor(ctx context.Context, d *state.Dir, t target, until string) (w waited) {
	if w.err = t.err; w.err == nil && until != "ended" {
		w.err = prompted(d, t, until)
	}
	if w.err != nil {
		return w
	}
	st, err := record.StatusOf(d, t.folder)
	if err == nil && session.Phase(st.Phase) == session.Ended {
		if w.execution, w.err = record.View(d, t.folder); session.Phase(w.execution.Phase) == session.Ended {
			return w
		}
	}
	w.err = a.call(ctx, d, nil, api.MethodWait, api.Wait{ID: t.id, Until: until}, &w.execution)
	return w
}

// prompted refuses to wait for a prompt that a command has not.
func prompted(d *state.Dir, t target, until string) error {
	e, err := record.View(d, t.folder)
	if err == nil && e.Provider == command.Name {
		return usage("--until %s: %s is a command's, which has no prompt", until, printable(t.id))
	}
	return err
}

func (v *waitVerb) collect(ctx context.Context, a *app, results <-chan waited, n int) error {
	var worst error
	for range n {
		w := <-results
		if ctx.Err() != nil && errors.Is(w.err, ctx.Err()) {
			return api.E(api.CodeTimeout, "not ended within %s; the runs go on", v.Timeout)
		}
		err := v.show(a, w)
		if v.Any || n == 1 {
			return err // which Main tells
		}
		if err != nil {
			a.tell(err)
			worst = exit(1)
		}
	}
	return worst
}

// show prints how the waiting for one run ended, and returns its code.
func (v *waitVerb) show(a *app, w waited) error {
	e := w.execution
	came := w.err == nil && v.came(e.Delivery)
	switch {
	case w.err != nil:
		return w.err
	case v.JSON:
		a.print(e)
	case came:
		fmt.Fprintf(a.stdout, "%s\t%s\t0\n", e.ID, v.Until)
	case e.ExitCode != nil:
		fmt.Fprintf(a.stdout, "%s\t%s\t%d\n", e.ID, e.Outcome, *e.ExitCode)
	}
	if came {
		return nil
	}
	return codeOf(e)
}

// came reports whether what is waited for of a prompt is a fact.
func (v *waitVerb) came(d *api.Delivery) bool {
	switch {
	case d == nil:
		return false
	case v.Until == "stored":
		return d.StoredAt != nil
	case v.Until == "handed_over":
		return d.HandedOverAt != nil
	}
	return v.Until == "confirmed" && d.ConfirmedAt != nil
}
