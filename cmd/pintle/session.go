package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// sessionVerb is `pintle session`.
type sessionVerb struct {
	Ls      sessionLs      `cmd:"" help:"List sessions."`
	Show    sessionShow    `cmd:"" help:"Show one: who has its runtime, who holds it, what is in its queue."`
	History sessionHistory `cmd:"" help:"Print what was said and done in one."`
}

type sessionLs struct {
	output
	All bool `short:"a" help:"Archived ones too."`
}

// Run lists sessions, the newest first; with JSON the oldest. It starts nothing.
func (v *sessionLs) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	list := a.sessions(d, v.All)
	if v.JSON {
		a.print(list)
		return nil
	}
	out := bufio.NewWriter(a.stdout)
	defer out.Flush()
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	defer w.Flush()
	if len(list) > 0 {
		fmt.Fprintln(w, "ID\tAGENT\tSTATE\tOWNERSHIP\tHELD BY\tFENCE\tDIRECTORY")
	}
	for i := range list {
		s := list[len(list)-1-i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", s.ID, s.Provider, s.State, s.Ownership.State, holders(s), s.Fence, printable(s.Cwd))
	}
	return nil
}

// holders are who holds a session: clients, and runs in its queue.
func holders(s api.Session) string {
	var names []string
	for _, l := range s.Leases {
		name := printable(l.Client)
		if l.Mode == "exclusive" {
			name += " (exclusive)"
		}
		names = append(names, name)
	}
	for _, q := range s.Queue {
		names = append(names, printable(q.Execution))
	}
	return orDash(strings.Join(names, ", "))
}

// sessions are those that the supervisor knows, or, if none answers, those on record.
func (a *app) sessions(d *state.Dir, all bool) []api.Session {
	list := []api.Session{}
	if d == nil {
		return list
	}
	if asked(a.ctx, d, api.MethodSessList, api.List{All: all}, &list) == nil {
		return list
	}
	list = []api.Session{}
	for _, s := range supervisor.Sessions(d, all) {
		list = append(list, supervisor.SessionOf(d, s))
	}
	return list
}

// asked asks the supervisor that is there for what is on no record. It starts none.
func asked(ctx context.Context, d *state.Dir, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	c, _, err := dial(ctx, d)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Call(ctx, method, params, result)
}

type sessionShow struct {
	output
	ID string `arg:"" help:"The session, or a run of it."`
}

// Run prints one session. It starts nothing.
func (v *sessionShow) Run(a *app) error {
	d, id, err := a.session(v.ID)
	if err != nil {
		return err
	}
	var s api.Session
	if asked(a.ctx, d, api.MethodSessGet, api.SessionTarget{Session: id}, &s) != nil {
		rec, err := state.Read[record.Session](d, record.SessionFile(id))
		if err != nil {
			return err
		}
		s = supervisor.SessionOf(d, rec)
	}
	if v.JSON {
		a.print(s)
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, a.shown(string(data)))
	return nil
}

// session finds a session by its id, a unique prefix of that, or a run in it.
func (a *app) session(id string) (*state.Dir, string, error) {
	d, err := a.need(id)
	if err != nil {
		return nil, "", err
	}
	c, err := record.FindConversation(d, id)
	return d, c.Session, err
}

type sessionHistory struct {
	output
	Before *uint64 `xor:"page" help:"The newest rows that begin before a sequence." placeholder:"SEQ"`
	After  *uint64 `xor:"page" help:"The oldest rows that begin behind a sequence." placeholder:"SEQ"`
	Tail   bool    `xor:"page" help:"The newest rows; so without a flag."`
	Limit  int     `help:"How many rows, 40 if not given and 200 at most." placeholder:"N"`
	ID     string  `arg:"" help:"The session, or a run of it."`
}

// Run prints a page, from the journal alone (R4, R10).
func (v *sessionHistory) Run(a *app) error {
	if v.Limit < 0 {
		return usage("--limit cannot be negative")
	}
	d, id, err := a.session(v.ID)
	if err != nil {
		return err
	}
	page, err := record.History(d, id, record.Page{Tail: v.Tail, Before: v.Before, After: v.After, Limit: v.Limit})
	switch {
	case errors.Is(err, record.ErrPage):
		return usage("%w", err)
	case err != nil:
		return err
	case v.JSON:
		a.print(page)
		return nil
	}
	out := bufio.NewWriter(a.stdout)
	for _, row := range page.Rows {
		fmt.Fprint(out, a.shown(rowText(row)))
	}
	_ = out.Flush()
	if page.More && v.After != nil {
		a.say("hint: pintle session history %s --after %d", id, page.Last)
	} else if page.More {
		a.say("hint: pintle session history %s --before %d", id, page.First)
	}
	return nil
}
