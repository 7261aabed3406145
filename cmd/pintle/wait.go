package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// selection is how verbs about several runs are told which.
type selection struct {
	IDs   []string `arg:"" optional:"" name:"id" help:"The runs."`
	Label []string `sep:"none" help:"All runs with this label." placeholder:"K=V"`
}

// target is one run that a verb is about, or why it cannot be found.
type target struct {
	id, folder string
	err        error
}

// targets finds the runs. open leaves out those that have ended, when they were chosen by label.
func (a *app) targets(s selection, all, open bool) (*state.Dir, []target, error) {
	want, err := labels(s.Label)
	if err != nil {
		return nil, nil, err
	}
	byLabel := all || len(want) > 0
	if byLabel == (len(s.IDs) > 0) {
		return nil, nil, usage("name runs, or choose them by --label")
	}
	d, err := a.existing()
	if err != nil || (d == nil && byLabel) {
		return nil, nil, err
	}
	if byLabel {
		found, err := a.labelled(d, want, open)
		return d, found, err
	}
	if d == nil {
		_, err := a.need(s.IDs[0])
		return nil, nil, err
	}
	var found []target
	for _, id := range s.IDs {
		folder, err := record.Find(d, id)
		found = append(found, target{id, folder, err})
	}
	return d, found, nil
}

func (a *app) labelled(d *state.Dir, want map[string]string, open bool) (found []target, err error) {
	rows, err := record.List(d)
	for _, row := range rows {
		ended := session.Phase(row.Execution.Phase) == session.Ended
		if row.Err == nil && supervisor.Matches(row.Execution.Labels, want) && !(open && ended) {
			found = append(found, target{row.Execution.ID, row.Folder, nil})
		}
	}
	return found, err
}

// each does something with every run at once, and returns the worst code. Errors of single runs are told
// as they come.
func (a *app) each(targets []target, do func(target) error) error {
	results := make(chan error, len(targets))
	slots := make(chan struct{}, 16)
	for _, t := range targets {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if t.err != nil {
				results <- t.err
				return
			}
			results <- do(t)
		}()
	}
	var worst error
	for range targets {
		err := <-results
		if err != nil && len(targets) > 1 {
			a.fail(err)
		}
		if err != nil && (worst == nil || typed(err).Code.Exit() > typed(worst).Code.Exit()) {
			worst = err
		}
	}
	if worst != nil && len(targets) > 1 {
		return exit(typed(worst).Code.Exit())
	}
	return worst
}

// waitVerb is `pintle wait`.
type waitVerb struct {
	output
	selection
	Any     bool          `help:"Return when the first has ended."`
	Timeout time.Duration `help:"Give up waiting after so long (exit 124); the runs go on." placeholder:"D"`
}

// Run prints a line for each run as it ends.
func (v *waitVerb) Run(a *app) error {
	d, targets, err := a.targets(v.selection, false, false)
	if err != nil || len(targets) == 0 {
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
	st, err := state.Read[record.Status](d, record.StatusFile(t.folder))
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
		err := w.err
		if err == nil {
			v.show(a, w.execution)
			err = codeOf(w.execution)
		} else if n > 1 {
			a.fail(err)
		}
		if v.Any || n == 1 {
			return err
		}
		if err != nil {
			worst = exit(1)
		}
	}
	return worst
}

func (v *waitVerb) show(a *app, e api.Execution) {
	switch {
	case v.JSON:
		a.print(e)
	case e.ExitCode != nil:
		fmt.Fprintf(a.stdout, "%s\t%s\t%d\n", e.ID, e.Outcome, *e.ExitCode)
	}
}
