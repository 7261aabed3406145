package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// waitVerb is `pintle wait`.
type waitVerb struct {
	output
	selection
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
		go func() { results <- a.waitFor(ctx, d, t) }()
	}
	return v.collect(ctx, a, results, len(targets))
}

// waitFor waits for one run. One that has ended needs no supervisor.
func (a *app) waitFor(ctx context.Context, d *state.Dir, t target) (w waited) {
	if w.err = t.err; w.err != nil {
		return w
	}
	st, err := record.StatusOf(d, t.folder)
	if err == nil && session.Phase(st.Phase) == session.Ended {
		if w.execution, w.err = record.View(d, t.folder); session.Phase(w.execution.Phase) == session.Ended {
			return w
		}
	}
	w.err = a.call(ctx, d, nil, api.MethodWait, api.Wait{ID: t.id}, &w.execution)
	return w
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
	switch {
	case w.err != nil:
		return w.err
	case v.JSON:
		a.print(e)
	case e.ExitCode != nil:
		fmt.Fprintf(a.stdout, "%s\t%s\t%d\n", e.ID, e.Outcome, *e.ExitCode)
	}
	return codeOf(e)
}
