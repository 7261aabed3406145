package main

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// askLimit is how long a supervisor may take to say what is on no record; then the record has to do.
const askLimit = 2 * time.Second

// now is a run that has not ended as its supervisor knows it: why it waits may be on no record, and its place in a line is
// not. It starts no supervisor.
func (a *app) now(d *state.Dir, folder string, e api.Execution) api.Execution {
	ctx, cancel := context.WithTimeout(a.ctx, askLimit)
	defer cancel()
	if told, err := sight(ctx, d, folder, e.ID); err == nil {
		e = told
	}
	if e.EndedAt == nil {
		e.Owner = ownerOf(d, folder, e)
		overdue(d, folder, &e)
	}
	return e
}

// overdue says until when a run waits that would wait for ever but for its deadline.
func overdue(d *state.Dir, folder string, e *api.Execution) {
	boot, _ := proc.BootID()
	spec, err := record.SpecOf(d, folder)
	if err != nil || e.WaitingFor == nil || e.WaitingFor.Until != nil || spec.Desired.Deadline == 0 || spec.Desired.BootID != boot {
		return
	}
	at := time.Now().Add(spec.Desired.Deadline - proc.BootClock()).Truncate(time.Second).UTC()
	e.WaitingFor.Until = &at
}

// ownerOf says who drives a run. Only locks prove who lives.
func ownerOf(d *state.Dir, folder string, e api.Execution) *api.Owner {
	st, err := state.Read[record.Status](d, record.StatusFile(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &api.Owner{Kind: "uncertain"}
	}
	if supervised(d) && (e.WaitingFor == nil || e.WaitingFor.Kind != "uncertain") {
		rec, _ := supervisorOf(d) // unreadable: it lives all the same
		return &api.Owner{Kind: "supervisor", PID: rec.PID, Epoch: rec.Epoch}
	}
	return shimOf(d, st.RuntimeID, e.WaitingFor)
}

// shimOf says what is known of the shim of a run that no supervisor drives, or that does not answer its supervisor.
func shimOf(d *state.Dir, runtime string, w *api.WaitingFor) *api.Owner {
	if runtime == "" {
		return &api.Owner{Kind: "nobody"}
	}
	unlock, err := shim.SeenDead(d, runtime)
	switch {
	case err == nil:
		unlock()
		return &api.Owner{Kind: "nobody"}
	case errors.Is(err, fs.ErrNotExist):
		return &api.Owner{Kind: "nobody"} // it was not begun
	case !errors.Is(err, state.ErrLocked):
		return &api.Owner{Kind: "uncertain"}
	}
	agent, _ := state.Read[shim.Agent](d, shim.AgentFile(runtime)) // not there yet: it is starting
	o := &api.Owner{Kind: "shim", PID: agent.Shim.PID}
	if w != nil && w.Kind == "uncertain" {
		o.Kind = "uncertain"
	}
	return o
}
