package main

import (
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// retryVerb is `pintle retry`.
type retryVerb struct {
	output
	selection
}

// Help is more of `pintle retry --help`.
func (v *retryVerb) Help() string { return noneFails }

// Run begins one more attempt of each run and returns; the environment is this verb's.
func (v *retryVerb) Run(a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	d, targets, err := a.targets(v.selection, false, false)
	if err != nil {
		return err
	}
	return a.each(targets, func(t target) error { return v.one(a, d, cfg, t) })
}

func (v *retryVerb) one(a *app, d *state.Dir, cfg config.Config, t target) error {
	spec, err := record.Retriable(d, t.folder)
	if err != nil {
		return err
	}
	env, err := again(a, cfg, spec)
	if err != nil {
		return err
	}
	boot, err := proc.BootID()
	if err != nil {
		return err
	}
	if err := record.Retry(a.ctx, d, t.folder, boot, proc.BootClock(), time.Now().UTC()); err != nil {
		return err
	}
	var e api.Execution
	if err := a.call(a.ctx, d, nil, api.MethodCreate, createOf(spec.ID, env), &e); err != nil {
		return err
	}
	if v.JSON {
		a.print(e)
		return nil
	}
	fmt.Fprintln(a.stdout, e.ID)
	return nil
}

// again composes the environment of a further attempt: the same names, this verb's values. What was given
// as NAME=VALUE is known by its hash alone, so it must be given anew, by a run with --attempt.
func again(a *app, cfg config.Config, spec record.Spec) (environ.Environment, error) {
	set, err := cfg.Env.Read()
	if err != nil {
		return environ.Environment{}, usage("%w", err)
	}
	p := environ.Policy{Pass: append(spec.Environment.Names, cfg.Env.Pass...), Set: set, Secrets: spec.Payload.Secret}
	env := p.Compose(a.environ())
	if missing := env.Lacks(spec.Environment.Names); len(missing) > 0 {
		return env, api.E(api.CodeWaiting, "%s needs %v in the environment", spec.ID, missing).
			WithNext("set them, or repeat the pintle run with --attempt")
	}
	return env, sendable(env)
}
