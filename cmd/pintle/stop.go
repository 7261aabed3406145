package main

import (
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// stopVerb is `pintle stop`.
type stopVerb struct {
	output
	selection
	All    bool   `help:"Every run that has not ended."`
	Reason string `help:"Why; it is kept." placeholder:"TEXT"`
}

// Help is more of `pintle stop --help`.
func (v *stopVerb) Help() string { return noneIsFine }

// Run stops runs and returns once it is proven that nothing of them is left.
func (v *stopVerb) Run(a *app) error {
	return a.control(v.selection, v.All, "stop", api.MethodStop, v.Reason, v.JSON)
}

// interruptVerb is `pintle interrupt`.
type interruptVerb struct {
	output
	selection
	Reason string `help:"Why; it is kept." placeholder:"TEXT"`
}

// Help is more of `pintle interrupt --help`.
func (v *interruptVerb) Help() string { return noneIsFine }

// Run interrupts runs and returns once no turn of theirs runs.
func (v *interruptVerb) Run(a *app) error {
	return a.control(v.selection, false, "interrupt", api.MethodInterrupt, v.Reason, v.JSON)
}

func (a *app) control(s selection, all bool, action, method, reason string, asJSON bool) error {
	d, targets, err := a.targets(s, all, true)
	if err != nil {
		return a.content(err, asJSON, map[string]any{"action": action, "success": true})
	}
	if len(targets) > 1 {
		a.forestall(d, targets, action, reason)
	}
	return a.each(targets, func(t target) error {
		answer, err := a.controlOne(d, t, action, method, reason)
		if err == nil && asJSON {
			a.print(answer)
		}
		return err
	})
}

// forestall records the end of those that wait for a slot before any other is ended, whose slot they would get. What
// cannot be recorded is said by whoever tries it next.
func (a *app) forestall(d *state.Dir, targets []target, action, reason string) {
	for _, t := range targets {
		e, err := record.View(d, t.folder)
		if t.err == nil && err == nil && e.Phase == string(session.Queued) {
			_, _ = record.Cancel(a.ctx, d, t.folder, api.Cancel{Action: action, Reason: reason, RequestedAt: time.Now().UTC()})
		}
	}
}

// controlOne records the wish, which stands from then on, and has it carried out. What has ended is
// stopped already: success, and a notice (case 33). Where it cannot be told how the run is, nothing could be
// dispatched: that is refused before it is recorded, or the run would be cancelled once its records are mended,
// by a stop that had failed, and the next one's reason would not count (K2).
func (a *app) controlOne(d *state.Dir, t target, action, method, reason string) (api.Controlled, error) {
	done := api.Controlled{ExecutionID: t.id, Action: action, Success: true}
	e, err := record.View(d, t.folder)
	if err != nil {
		return done, err
	}
	if settled(e) {
		a.say("%s has ended already: %s", t.id, e.Outcome)
		return done, a.closeKept(d, e, t, action)
	}
	_, err = record.Cancel(a.ctx, d, t.folder, api.Cancel{Action: action, Reason: reason, RequestedAt: time.Now().UTC()})
	if err != nil {
		return done, err
	}
	err = a.call(a.ctx, d, nil, method, api.Control{ID: t.id, Reason: reason}, &done)
	return done, err
}

// closeKept has the agent's process closed that is kept for the next run of the session, if this one was the last.
func (a *app) closeKept(d *state.Dir, e api.Execution, t target, action string) error {
	for _, r := range supervisor.Runtimes(d) {
		if action == "stop" && slices.Contains(r.Sessions, e.Session) {
			return a.call(a.ctx, d, nil, api.MethodStop, api.Control{ID: t.id}, nil)
		}
	}
	return nil
}
