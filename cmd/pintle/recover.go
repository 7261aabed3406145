package main

import (
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

// recoverVerb is `pintle recover`.
type recoverVerb struct {
	output
	Probe      bool   `xor:"what" required:"" help:"Look again, and say what is known."`
	AssertDead bool   `name:"assert-dead" xor:"what" required:"" help:"Take the run's shim for dead: it is killed, and the run settled."`
	ID         string `arg:"" help:"The run."`
}

// Run decides an ownership that could not be decided by proof alone (R8). Where the end is on record there is
// nothing to decide, and no supervisor is started for it.
func (v *recoverVerb) Run(a *app) error {
	e, d, _, err := a.look(v.ID)
	if err != nil {
		return err
	}
	if !settled(e) {
		err := a.call(a.ctx, d, nil, api.MethodRecover, api.Recover{ID: e.ID, AssertDead: v.AssertDead}, &e)
		if err != nil {
			return err
		}
	}
	if v.JSON {
		a.print(e)
		return nil
	}
	return a.field(e, "phase", false)
}

// settled reports whether a run has ended and its end is on record, not only seen.
func settled(e api.Execution) bool {
	return session.Phase(e.Phase) == session.Ended && e.EndedAt != nil
}
