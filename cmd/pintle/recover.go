package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// recoverVerb is `pintle recover`.
type recoverVerb struct {
	output
	Probe      bool   `xor:"what" help:"Look again, and say what is known; so without a flag."`
	AssertDead bool   `name:"assert-dead" xor:"what" help:"Take the shim for dead: it is killed, and what it ran settled."`
	ID         string `arg:"" help:"The session, or a run."`
}

// Run decides an ownership that could not be decided by proof alone (R8), and has a parked session be started again (R2).
func (v *recoverVerb) Run(a *app) error {
	if sessionID(v.ID) {
		return v.session(a)
	}
	return v.run(a)
}

// sessionID reports whether an id is a session's, and not a run's key.
func sessionID(id string) bool { return strings.HasPrefix(id, "s-") && session.Generated(id) }

// run decides that of a run. Where the end is on record there is nothing to decide, and no supervisor is started for it.
func (v *recoverVerb) run(a *app) error {
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
	if err := a.field(e, "phase", false); err != nil {
		return err
	}
	sess, err := state.Read[record.Session](d, record.SessionFile(e.Session))
	if err == nil { // else it has none
		if ok, why := sess.Restart.MayStart(); !ok {
			a.say("hint: its session is parked (%s): pintle recover %s", why, sess.ID)
		}
	}
	return nil
}

// session decides that of a session, and says how it is then.
func (v *recoverVerb) session(a *app) error {
	d, err := a.need(v.ID)
	if err != nil {
		return err
	}
	c, err := record.FindConversation(d, v.ID)
	if err != nil {
		return err
	}
	var s api.Session
	err = a.call(a.ctx, d, nil, api.MethodSessRecover, api.RecoverSession{Session: c.Session, AssertDead: v.AssertDead}, &s)
	if err != nil {
		return err
	}
	still := stuck(s)
	if v.JSON {
		a.print(s)
		if still != nil {
			return exit(still.Code.Exit())
		}
		return nil
	}
	fmt.Fprintln(a.stdout, s.Ownership.State)
	if still != nil {
		return still
	}
	if s.Ownership.Next != "" {
		a.say("hint: %s", s.Ownership.Next)
	}
	return nil
}

// stuck is why a session still takes no message; nil if it does.
func stuck(s api.Session) *api.Error {
	refuse := func(code api.Code, format string, args ...any) *api.Error {
		return api.E(code, "session "+s.ID+" "+format, args...).WithNext(cmp.Or(s.Next, s.Ownership.Next))
	}
	switch {
	case s.State == "archived":
		return refuse(api.CodeArchived, "is archived")
	case s.Ownership.State == string(session.Conflicted):
		return refuse(api.CodeOwned, "is conflicted: %s", s.Ownership.Reason)
	case s.Restart != nil && s.Restart.Parked != "":
		return refuse(api.CodeCrashLooping, "is parked: %s", s.Restart.Parked)
	case s.Ownership.State == string(session.Uncertain):
		e := refuse(api.CodeWaiting, "is uncertain: %s", s.Ownership.Reason)
		return e.WithNext("pintle recover " + s.ID + " --assert-dead")
	}
	return nil
}

// settled reports whether a run has ended and its end is on record, not only seen.
func settled(e api.Execution) bool {
	return session.Phase(e.Phase) == session.Ended && e.EndedAt != nil
}
