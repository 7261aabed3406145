package main

import (
	"errors"
	"slices"
	"strings"

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

// none is why a choice of runs came out empty.
type none string

func (n none) Error() string { return string(n) }

// targets finds the runs, each once. open leaves out those that have ended, unless they were named.
//
// That no run has a label is an error (4) for verbs that owe an answer about one: a wait that succeeds for a
// misspelt label has a script go on before the work is done. Verbs that only see to it that nothing is there
// pass the error through content.
func (a *app) targets(s selection, all, open bool) (*state.Dir, []target, error) {
	want, err := labels(s.Label)
	if err != nil {
		return nil, nil, err
	}
	if !alone(all, len(want) > 0, len(s.IDs) > 0) {
		return nil, nil, usage("name runs, or choose them by --label")
	}
	d, err := a.existing()
	switch {
	case err != nil:
		return nil, nil, err
	case len(s.IDs) == 0:
		found, err := a.labelled(d, s.Label, want, open)
		return d, found, err
	case d == nil:
		_, err := a.need(s.IDs[0])
		return nil, nil, err
	}
	return d, named(d, s.IDs), nil
}

// alone reports whether exactly one of the ways to choose runs was taken.
func alone(ways ...bool) bool {
	taken := slices.DeleteFunc(ways, func(way bool) bool { return !way })
	return len(taken) == 1
}

// named finds runs by their ids. Two ids may mean one run: it is retried once, say.
func named(d *state.Dir, ids []string) (found []target) {
	for _, id := range ids {
		folder, err := record.Find(d, id)
		if err != nil || !slices.ContainsFunc(found, func(t target) bool { return t.folder == folder }) {
			found = append(found, target{called(d, id, folder), folder, err})
		}
	}
	return found
}

// called is the run's own id where a session's was given: that may mean another run a moment later.
func called(d *state.Dir, id, folder string) string {
	if folder == "" || !session.Generated(id) {
		return id
	}
	if spec, err := record.SpecOf(d, folder); err == nil {
		return spec.ID
	}
	return id
}

// labelled finds the runs that have all labels that are wanted. Which labels an unreadable record has cannot be
// told: it is only spoken of, but if all runs are meant, it is one of them.
func (a *app) labelled(d *state.Dir, words []string, want map[string]string, open bool) (found []target, err error) {
	rows, err := listed(d)
	if err != nil {
		return nil, err
	}
	have := 0
	for _, row := range rows {
		switch {
		case row.Err != nil && len(want) == 0:
			found = append(found, target{row.Folder, row.Folder, row.Err})
		case row.Err != nil:
			a.say("%v", row.Err)
		case supervisor.Matches(row.Execution.Labels, want):
			have++
			if !open || session.Phase(row.Execution.Phase) != session.Ended {
				found = append(found, target{row.Execution.ID, row.Folder, nil})
			}
		}
	}
	if len(found) == 0 {
		return nil, api.E(api.CodeNotFound, "%w", nothing(words, have))
	}
	return found, nil
}

// listed is record.List; without a state directory there are none.
func listed(d *state.Dir) ([]record.Listed, error) {
	if d == nil {
		return nil, nil
	}
	return record.List(d)
}

// nothing says why no run was found: have is how many have the labels, and have ended.
func nothing(words []string, have int) none {
	with := "label " + printable(strings.Join(words, " and "))
	switch {
	case len(words) == 0:
		return "no run goes on"
	case have > 0:
		return none("every run with " + with + " has ended already")
	}
	return none("no run has " + with)
}

// What --help of verbs about several runs says of a label that none has.
const (
	noneFails  = "A label that no run has is an error: exit 4."
	noneIsFine = "A label that no run has is no error: there is nothing to do, and standard error says so."
)

// content makes success, and a notice, of a choice that came out empty: scripts that clean up run stop, interrupt
// and rm without knowing whether there is anything.
//
// With JSON, where there is a value for every run, comes one that is about none: empty, and why.
func (a *app) content(err error, asJSON bool, empty map[string]any) error {
	var why none
	if !errors.As(err, &why) {
		return err
	}
	a.say("%s", why)
	if asJSON {
		empty["message"] = string(why)
		a.print(empty)
	}
	return nil
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
