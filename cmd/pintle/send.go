package main

import (
	"slices"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
)

// sendVerb is `pintle send`.
type sendVerb struct {
	Session string   `arg:"" name:"id" help:"The session, or a run of it."`
	Words   []string `arg:"" optional:"" name:"prompt" help:"The prompt."`
	orderFlags
}

// Run is `pintle run --session ID`.
func (v *sendVerb) Run(a *app) error {
	if v.Session == "" {
		return usage("the session's id is empty")
	}
	return (&runVerb{Session: v.Session, Words: v.Words, orderFlags: v.orderFlags}).Run(a)
}

// converse finds the session that an order goes on in; none without --session. Its agent carries the order out.
func (v *runVerb) converse(a *app) (c record.Conversation, err error) {
	if v.Session == "" {
		return c, nil
	}
	d, err := a.need(v.Session)
	if err != nil {
		return c, err
	}
	c, err = record.FindConversation(d, v.Session)
	switch {
	case err != nil:
		return c, err
	case c.Provider == command.Name:
		return c, usage("%s: a command has no conversation that could go on", printable(v.Session))
	case v.Agent != "" && v.Agent != c.Provider:
		return c, usage("-a %s: the agent of %s is %s", printable(v.Agent), printable(v.Session), c.Provider)
	}
	v.Agent = c.Provider
	return c, nil
}

// fits refuses a new order of a session that would wait for a run which its agent was started for in another way: the
// one cannot go on in the process of the other (W2). Equal orders queue.
func (a *app) fits(order record.Spec) error {
	if order.Payload.Session == "" {
		return nil
	}
	d, err := a.existing()
	if err != nil {
		return err
	}
	rows, err := listed(d)
	if err != nil {
		return err
	}
	for _, row := range rows {
		e := row.Execution
		if row.Err != nil || e.Session != order.Payload.Session || e.ID == order.ID || session.Phase(e.Phase) == session.Ended {
			continue
		}
		spec, err := record.SpecOf(d, row.Folder)
		if err != nil {
			return err
		}
		if fields := material(spec.Payload.Differing(order.Payload)); len(fields) > 0 {
			return occupied(spec, fields)
		}
	}
	return nil
}

// material leaves the fields of an order that its agent's process is made from.
func material(fields []string) []string {
	return slices.DeleteFunc(fields, func(name string) bool {
		return !slices.Contains([]string{"agentArgs", "approve", "cwd", "model"}, name)
	})
}

func occupied(by record.Spec, fields []string) error {
	e := api.E(api.CodeBusy, "%s has not ended, and was given with another %s", by.ID, list(fields))
	e.Fields = fields
	return e.WithNext("pintle wait " + record.Quote(by.ID))
}
