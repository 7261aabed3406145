package main

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// sendVerb is `pintle send`.
type sendVerb struct {
	Session string   `arg:"" name:"id" help:"The session, or a run of it."`
	Words   []string `arg:"" optional:"" name:"prompt" help:"The prompt."`
	When    string   `enum:"queue,steer,interrupt" default:"queue" help:"queue: in its turn; steer: into the turn that runs; interrupt: in place of that." placeholder:"HOW"`
	orderFlags
}

// Run is `pintle run --session ID`, under the id of an operation (F5).
func (v *sendVerb) Run(a *app) error {
	if v.Session == "" {
		return usage("the session's id is empty")
	}
	r := &runVerb{Session: v.Session, Words: v.Words, orderFlags: v.orderFlags, sends: true}
	if v.When != "queue" {
		r.when = v.When
	}
	return r.Run(a)
}

// operationID is a new operation.
func operationID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return session.NewOperation(time.Now(), random)
}

// drives refuses a new order of a session that another client holds for itself, or whose agent nothing starts, and a message
// for which no turn runs. Only the supervisor knows whether who holds it still does.
func (a *app) drives(order record.Spec) error {
	d, err := a.existing()
	if err != nil || d == nil || order.Payload.Session == "" {
		return err
	}
	sess, err := state.Read[record.Session](d, record.SessionFile(order.Payload.Session))
	if err != nil {
		return ignoreAbsent(err)
	}
	if slices.ContainsFunc(sess.Leases, exclusive) {
		var now api.Session
		if err := a.call(a.ctx, d, nil, api.MethodSessGet, api.SessionTarget{Session: sess.ID}, &now); err != nil {
			return err
		}
		for _, l := range now.Leases {
			if l.Mode == string(session.Exclusive) {
				return supervisor.Held(sess.ID, l)
			}
		}
	}
	if ok, why := sess.Restart.MayStart(); !ok {
		return supervisor.Parked(sess.ID, why)
	}
	if order.When == "steer" {
		return steerable(d, sess)
	}
	return nil
}

func exclusive(l session.Lease) bool { return l.Mode == session.Exclusive }

// steerable refuses a message into a turn where none runs, or whose agent takes none.
func steerable(d *state.Dir, sess record.Session) error {
	why := ""
	switch {
	case !drivers()[cmp.Or(sess.Kind, sess.Provider)].Steers:
		why = sess.Provider + " cannot be steered"
	case len(supervisor.SessionOf(d, sess).Queue) == 0:
		why = "no turn runs that could be steered"
	default:
		return nil
	}
	return api.E(api.CodeSteer, "session %s: %s", sess.ID, why).WithNext("pintle send --when queue " + sess.ID + " PROMPT")
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
	if order.Payload.Session == "" || order.When == "steer" { // which no process is started for
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
