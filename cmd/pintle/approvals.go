package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// approvalsVerb is `pintle approvals`.
type approvalsVerb struct{ output }

// approval is what an agent asks for, and which one.
type approval struct {
	Permission string    `json:"permission"`
	Execution  string    `json:"execution"`
	Session    string    `json:"session,omitempty"`
	Provider   string    `json:"provider"`
	Title      string    `json:"title"`
	Kind       string    `json:"kind"`
	Reason     string    `json:"reason,omitempty"`
	AskedAt    time.Time `json:"askedAt"`
}

// Run lists what waits for an answer, the oldest first, from the records alone.
func (v *approvalsVerb) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	list, damaged, err := pending(d)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.stdout)
	switch {
	case v.JSON:
		a.print(list)
	case len(list) > 0:
		tabulate(out, list)
	}
	_ = out.Flush()
	if len(list) > 0 && !v.JSON {
		a.say("hint: pintle allow PERMISSION, or pintle deny PERMISSION")
	}
	for _, row := range damaged {
		err = exit(a.fail(row.Err))
	}
	return err
}

// pending has what the agents of all runs ask for, and the records that cannot be read.
func pending(d *state.Dir) (list []approval, damaged []record.Listed, err error) {
	rows, err := listed(d)
	list = []approval{}
	for _, row := range rows {
		if row.Err != nil {
			damaged = append(damaged, row)
		}
		list = append(list, approvalsOf(row.Execution)...)
	}
	slices.SortStableFunc(list, func(a, b approval) int { return a.AskedAt.Compare(b.AskedAt) })
	return list, damaged, err
}

// approvalsOf has what one run asks for; of what is over nothing is asked any more.
func approvalsOf(e api.Execution) (list []approval) {
	if session.Phase(e.Phase) == session.Ended {
		return nil
	}
	for _, p := range e.Permissions {
		list = append(list, approval{
			Permission: p.ID, Execution: e.ID, Session: e.Session, Provider: e.Provider,
			Title: p.Title, Kind: p.Kind, Reason: p.Reason, AskedAt: p.AskedAt,
		})
	}
	return list
}

func tabulate(out io.Writer, list []approval) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "PERMISSION\tRUN\tSESSION\tAGENT\tASKED\tWHAT")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Permission, printable(p.Execution), orDash(p.Session), p.Provider, age(p.AskedAt), mute(asks(p.Title, p.Reason)))
	}
}
