package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// createSession makes a session, held by its creator, and answers once its conversation stands (L2). Its id follows from
// the operation's, so that a repeat finds it.
func (q asking) createSession(ctx context.Context, c api.CreateSession) (any, error) {
	id, client := sessionID(c.OperationID), q.client()
	if c.ExpectedFence == nil {
		c.ExpectedFence = []byte("null")
	}
	o := operation{Operation: c.Operation, method: q.method, session: id, client: client, params: q.params, creates: true}
	return q.s.operate(ctx, o, func(ctx context.Context, d *desk) (effect, error) {
		spec, err := q.s.template(c) // not before: a repeat is answered from its receipt, whatever has become of the agent
		if err != nil {
			return effect{}, err
		}
		env, err := environmentOf(c.Environment, c.Secrets, c.AgentArgs...)
		if err != nil {
			return effect{}, err
		}
		spec.Environment.Values, spec.Environment.Names, spec.Environment.Secrets = env.Stored(), env.Names(), env.SecretNames()
		asked, err := session.Fingerprint(q.method, id, q.params)
		if err != nil {
			return effect{}, err
		}
		made := record.Session{Template: &spec, Policy: session.Policy(c.Restart), Operation: c.OperationID, Asked: asked}
		return q.s.convene(ctx, d, client, made, env)
	})
}

// sessionID is the id of the session that an operation makes.
func sessionID(operation string) string {
	if operation == "" {
		return newID("s")
	}
	sum := sha256.Sum256([]byte("session/create " + operation))
	return "s-" + hex.EncodeToString(sum[:8])
}

// template is what the messages of a new session are made from.
func (s *Supervisor) template(c api.CreateSession) (record.Spec, error) {
	if err := cmp.Or(s.creatable(c), someTime("warmMs", c.WarmMs)); err != nil {
		return record.Spec{}, err
	}
	program, err := s.o.Locate(c.Provider, c.Path, c.Cwd, c.Environment["PATH"])
	if err != nil {
		return record.Spec{}, err
	}
	if p, _ := s.provider(c.Provider, program.Kind); !p.Stdin {
		return record.Spec{}, api.E(api.CodeParams, "a %s has no conversation: give it with pintle run -a %s", c.Provider, c.Provider)
	}
	rules, err := s.rulesOf(c, program.Kind)
	if err != nil {
		return record.Spec{}, err
	}
	umask := 0o077
	if c.Umask != nil {
		umask = *c.Umask
	}
	return record.Spec{
		Version: record.Version, Controller: session.Local, CreatedAt: time.Now().UTC(), Program: program, Policy: rules,
		Payload: session.Payload{
			Provider: c.Provider, Model: c.Model, Mode: c.Mode, AgentArgs: c.AgentArgs, Cwd: c.Cwd, Approve: c.Approve, Unattended: or(c.Unattended, "park"),
		},
		Limits: record.Limits{
			Warm: time.Duration(c.WarmMs) * time.Millisecond, IdleTimeout: time.Duration(s.o.Config.Deadlines.Idle), Share: c.Share,
		},
		Environment: record.Environment{Umask: umask},
	}, nil
}

// creatable refuses a session that cannot be as it is asked for.
func (s *Supervisor) creatable(c api.CreateSession) error {
	info, err := os.Stat(c.Cwd)
	switch {
	case !filepath.IsAbs(c.Cwd) || err != nil || !info.IsDir():
		return api.E(api.CodeParams, "cwd %s: no such directory", record.Quote(c.Cwd))
	case !slices.Contains(policies, session.Policy(c.Restart)):
		return api.E(api.CodeParams, "restart %q: never, on-demand or on-crash", c.Restart)
	case !slices.Contains(approvals, c.Approve):
		return api.E(api.CodeParams, "approve %q: none, reads, edits or all", c.Approve)
	case !slices.Contains(absences, c.Unattended):
		return api.E(api.CodeParams, "unattended %q: fail, deny or park", c.Unattended)
	case c.Umask != nil && (*c.Umask < 0 || *c.Umask > 0o777):
		return api.E(api.CodeParams, "a umask of %d: from 0 to 511, which is 0777", *c.Umask)
	}
	return nil
}

// policies are those of restarts; "" is the default, as in the other two.
var policies = []session.Policy{"", session.Never, session.OnDemand, session.OnCrash}

// approvals are what an agent may do unasked, absences what becomes of a question with nobody there.
var (
	approvals = []string{"", "none", "reads", "edits", "all"}
	absences  = []string{"", "fail", "deny", "park"}
)

// someTime refuses milliseconds that are no time, or more than a Duration holds.
func someTime(name string, ms int64) error {
	if ms < 0 || ms > int64(math.MaxInt64/time.Millisecond) {
		return api.E(api.CodeParams, "%s is %d: a time is not negative, and not longer than 292 years", name, ms)
	}
	return nil
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// convene puts the session on record, held by its creator, and then has its conversation opened. If that cannot be, the
// session is nobody's; the answer says why.
func (s *Supervisor) convene(ctx context.Context, d *desk, client string, made record.Session, env environ.Environment) (effect, error) {
	if err := s.clients.note(ctx, client, d.id); err != nil {
		return effect{}, err
	}
	crash.At("supervisor.client_noted")
	lease := session.Lease{Client: client, Mode: session.Exclusive, Since: time.Now().UTC(), Operation: made.Operation}
	sess, err := s.found(ctx, d, lease, made)
	if err != nil {
		return effect{}, err
	}
	crash.At("supervisor.convened")
	d.mirror(sess.Leases)
	s.mu.Lock()
	s.homes[d.id] = env
	s.mu.Unlock()
	r, err := s.openSession(ctx, sess, sess.Openings)
	if err != nil {
		return effect{}, err
	}
	if was, held := sess.Leases.Of(client); held { // killed before it was answered
		lease = was
	}
	e := effect{late: true, then: func(ctx context.Context, _ any) (any, error) { return s.convened(ctx, d, r, lease) }}
	return e, nil
}

// found writes the record of a new session, its journal's directory first.
func (s *Supervisor) found(ctx context.Context, d *desk, lease session.Lease, made record.Session) (sess record.Session, err error) {
	if err := s.dir.Mkdir("sessions", d.id); err != nil {
		return sess, err
	}
	if err := os.Mkdir(s.dir.Path(record.JournalDir(d.id)), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return sess, state.Full(err)
	}
	boot, err := proc.BootID()
	if err != nil {
		return sess, err
	}
	var taken []record.LeaseChange
	err = state.Update(ctx, s.dir, record.SessionFile(d.id), func(r *record.Session) error {
		if r.Version == 0 {
			*r = made
			r.Version, r.ID, r.Fence, r.BootID, r.CreatedAt = record.Version, d.id, 1, boot, lease.Since
			r.Workspace, r.Provider, r.Kind = newID("w"), made.Template.Payload.Provider, made.Template.Kind
		}
		if len(r.Leases) == 0 { // it is new, or could not be opened before
			r.Leases, r.Openings = session.Leases{lease}, r.Openings+1
			taken = []record.LeaseChange{{Change: leaseTaken, Lease: lease, At: lease.Since}}
			d.changed(r, taken)
		}
		sess = *r
		return nil
	})
	if err == nil {
		d.owed = append(d.owed, taken...)
	}
	return sess, err
}

// convened waits for the opening and tells how the session is.
func (s *Supervisor) convened(ctx context.Context, d *desk, r *run, lease session.Lease) (any, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	st, err := record.StatusOf(s.dir, r.folder)
	if s.ctx.Err() != nil && session.Phase(st.Phase) != session.Ended {
		return nil, api.E(api.CodeStopping, "the supervisor leaves") // the next one goes on with the opening: nothing has failed
	}
	if err != nil {
		return nil, err
	}
	if st.Outcome != string(session.Completed) {
		return nil, errors.Join(openingError(d.id, st), s.forsake(d, lease.Client))
	}
	view, err := s.viewSession(d.id)
	own := s.leaseOf(lease)
	view.Lease = &own
	return view, err
}

// openingError is why a conversation does not stand.
func openingError(id string, st record.Status) error {
	code, message := api.CodeNoAgent, "it ended as "+st.Outcome
	if st.Cause != nil {
		message = st.Cause.Message
	}
	switch session.Outcome(st.Outcome) {
	case session.Cancelled:
		code = api.CodeCancelled
	case session.HostDied:
		code = api.CodeHostDied
	}
	return api.E(code, "the agent of session %s could not be started: %s", id, message).WithNext("pintle doctor")
}

// forsake gives up a session whose agent could not be started: its creator does not hold it any more.
func (s *Supervisor) forsake(d *desk, client string) error {
	release, err := d.take(s.ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := s.dropLeases(s.ctx, d, client); err != nil {
		return err
	}
	return d.tellEvents(nil)
}

// operationID is one for what comes without.
func operationID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return session.NewOperation(time.Now(), b)
}
