package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// answered is what verbs that answer are told.
type answered struct {
	output
	IDs []string `arg:"" name:"id" help:"What is asked for, or the run that asks for one thing."`
}

// allowVerb is `pintle allow`.
type allowVerb struct {
	answered
	Always bool `help:"Allow it for the rest of the session: the same command line; the same tool on files of its directory."`
}

// Run lets agents do what they ask for, this once or in all of the session.
func (v *allowVerb) Run(a *app) error { return v.give(a, "allow", v.Always) }

// denyVerb is `pintle deny`.
type denyVerb struct{ answered }

// Run refuses agents what they ask for; their turns go on.
func (v *denyVerb) Run(a *app) error { return v.give(a, "deny", false) }

// give answers each. What is asked for is looked up before: afterwards it is asked for no more.
func (v *answered) give(a *app, decision string, always bool) error {
	d, err := a.need(v.IDs[0])
	if err != nil {
		return err
	}
	open, _, _ := pending(d)
	return a.each(askers(d, v.IDs), func(t target) error {
		done, err := a.answer(d, t.id, decision, always)
		switch {
		case err != nil:
			return err
		case v.JSON:
			a.print(done)
		default:
			a.say("%s %s", verdict(api.Answered{Decision: decision}), subject(open, done.Permission))
		}
		return nil
	})
}

// askers finds what is to be answered, each once. What is no run may be a permission, which the supervisor knows, also
// if it has its answer.
func askers(d *state.Dir, ids []string) (found []target) {
	for _, t := range named(d, ids) {
		if t.err != nil && permissionID(t.id) {
			t.err = nil
		}
		if !slices.ContainsFunc(found, func(o target) bool { return o.id == t.id }) {
			found = append(found, t)
		}
	}
	return found
}

// permissionID reports whether id has the form of what an agent asks for, whole or as a prefix.
func permissionID(id string) bool {
	digits, ok := strings.CutPrefix(id, "p-")
	return ok && len(digits) >= 4 && len(digits) <= 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// answer gives one answer. The error of one that came too late says whose counts; it may be this one, whose confirmation
// was lost with a supervisor.
func (a *app) answer(d *state.Dir, id, decision string, always bool) (done api.Answered, err error) {
	calls, by := 0, a.user()
	if always {
		by += ", for the session"
	}
	err = a.call(a.ctx, d, func(*rpc.Client) error { calls++; return nil }, api.MethodAnswer,
		api.Answer{ID: id, Decision: decision, By: by, Always: always}, &done)
	if err == nil {
		return done, nil
	}
	if w, late := winner(err); late {
		w.Permission = cmp.Or(w.Permission, id)
		if calls > 1 && w.Decision == decision && w.By == by {
			return w, nil
		}
		return done, beaten(w, err)
	}
	return done, err
}

// winner is the answer that counts, from the refusal of another one.
func winner(err error) (w api.Answered, ok bool) {
	e := api.As(err)
	if e.Code != api.CodeResolved {
		return w, false
	}
	data, err := json.Marshal(e.Data["winner"])
	return w, err == nil && json.Unmarshal(data, &w) == nil && w.Decision != ""
}

// beaten says whose answer counts (R11).
func beaten(w api.Answered, err error) error {
	when := fmt.Sprintf("at %s (%s ago)", w.At.Local().Format(time.DateTime), age(w.At))
	e := api.E(api.CodeResolved, "%s was %s %s", w.Permission, verdict(api.Answered{Decision: w.Decision, By: w.By}), when)
	if w.Decision == "lapsed" {
		e = api.E(api.CodeResolved, "%s lapsed %s: the agent asks for it no more", w.Permission, when)
	}
	e.Data = api.As(err).Data
	return e
}

// subject names what was asked for, and says what it is if that is known.
func subject(open []approval, id string) string {
	for _, p := range open {
		if p.Permission == id {
			return id + ": " + asks(p.Title, p.Reason)
		}
	}
	return id
}
