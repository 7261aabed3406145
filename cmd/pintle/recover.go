package main

import (
	"github.com/pintle/pintle/rpc/api"
)

// recoverVerb is `pintle recover`.
type recoverVerb struct {
	output
	Probe      bool   `xor:"what" required:"" help:"Look again, and say what is known."`
	AssertDead bool   `name:"assert-dead" xor:"what" required:"" help:"Take the run's shim for dead: it is killed, and the run settled."`
	ID         string `arg:"" help:"The run."`
}

// Run decides an ownership that could not be decided by proof alone (R8).
func (v *recoverVerb) Run(a *app) error {
	e, d, _, err := a.look(v.ID)
	if err != nil {
		return err
	}
	if err := a.call(a.ctx, d, nil, api.MethodRecover, api.Recover{ID: v.ID, AssertDead: v.AssertDead}, &e); err != nil {
		return err
	}
	if v.JSON {
		a.print(e)
		return nil
	}
	return a.field(e, "phase")
}
