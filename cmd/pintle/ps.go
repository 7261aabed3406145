package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// psVerb is `pintle ps`.
type psVerb struct {
	output
	All     bool     `short:"a" help:"Those too whose keys were freed by rm."`
	Quiet   bool     `short:"q" help:"Ids only."`
	Label   []string `sep:"none" help:"Only runs with this label." placeholder:"K=V"`
	Outcome string   `help:"Only runs that ended so." placeholder:"OUTCOME"`
}

// outcomes are what --outcome may ask for.
var outcomes = []session.Outcome{
	session.Completed, session.Failed, session.Cancelled, session.TimedOut, session.Budget, session.AgentDied,
	session.HostDied, session.Denied, session.Unknown,
}

// Run lists runs, the oldest first. Times and ids are raw with --json.
func (v *psVerb) Run(a *app) error {
	want, err := labels(v.Label)
	if err != nil {
		return err
	}
	if v.Outcome != "" && !slices.Contains(outcomes, session.Outcome(v.Outcome)) {
		return usage("--outcome %s: there are %s", v.Outcome, strings.ReplaceAll(strings.Trim(fmt.Sprint(outcomes), "[]"), " ", ", "))
	}
	d, err := a.existing()
	if err != nil {
		return err
	}
	list := []api.Execution{}
	var damaged []record.Listed
	if d != nil {
		if list, damaged, err = v.list(d, want); err != nil {
			return err
		}
	}
	v.show(a, list)
	for _, row := range damaged {
		err = exit(a.fail(row.Err))
	}
	return err
}

// rows are the records to choose from, the oldest first.
func (v *psVerb) rows(d *state.Dir) ([]record.Listed, error) {
	rows, err := record.List(d)
	if err != nil || !v.All {
		return rows, err
	}
	archived, err := record.Archived(d)
	rows = append(rows, archived...)
	slices.SortStableFunc(rows, func(a, b record.Listed) int { return a.Execution.CreatedAt.Compare(b.Execution.CreatedAt) })
	return rows, err
}

func (v *psVerb) list(d *state.Dir, want map[string]string) ([]api.Execution, []record.Listed, error) {
	rows, err := v.rows(d)
	if err != nil {
		return nil, nil, err
	}
	list, damaged := []api.Execution{}, []record.Listed{}
	for _, row := range rows {
		switch e := row.Execution; {
		case row.Err != nil:
			damaged = append(damaged, row)
		case supervisor.Matches(e.Labels, want) && (v.Outcome == "" || v.Outcome == e.Outcome):
			list = append(list, e)
		}
	}
	return list, damaged, nil
}

func (v *psVerb) show(a *app, list []api.Execution) {
	out := bufio.NewWriter(a.stdout)
	defer out.Flush()
	switch {
	case v.Quiet:
		v.ids(a, out, list)
	case v.JSON:
		a.print(list)
	case len(list) > 0:
		table(out, list)
	}
}

// ids prints the ids alone: one a line, or with JSON a list.
func (v *psVerb) ids(a *app, out io.Writer, list []api.Execution) {
	ids := []string{}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	if v.JSON {
		a.print(ids)
		return
	}
	for _, id := range ids {
		fmt.Fprintln(out, id)
	}
}

func table(out io.Writer, list []api.Execution) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "ID\tAGENT\tSTATE\tCODE\tAGE\tDIRECTORY")
	for _, e := range slices.Backward(list) {
		code := "-"
		if e.ExitCode != nil {
			code = fmt.Sprint(*e.ExitCode)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(e.ID), e.Provider, stateWord(e), code, age(e.CreatedAt), printable(e.Cwd))
	}
}

// stateWord is how far a run has come, or how it ended, in a word.
func stateWord(e api.Execution) string {
	switch {
	case e.ArchivedAt != nil:
		return e.Outcome + " (archived)"
	case e.Outcome != "":
		return e.Outcome
	case e.WaitingFor != nil:
		return e.Phase + " (" + e.WaitingFor.Kind + ")"
	}
	return e.Phase
}

func age(t time.Time) string {
	d := time.Since(t)
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Minute).String()
}

// printable keeps a name from speaking to the terminal.
func printable(s string) string {
	q := fmt.Sprintf("%q", s)
	if q == `"`+s+`"` {
		return s
	}
	return q
}
