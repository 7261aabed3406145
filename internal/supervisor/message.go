package supervisor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A message is an execution whose key is the operation's id: it is stored, handed over, confirmed and answered as those are.
// Its place in the queue is taken in the write that checks lease and fence, and its order is given behind that. Killed in
// between, the place is nobody's, and the repeat gives the order.

// The ways of a message into its session.
const (
	whenQueue     = "queue"
	whenSteer     = "steer"
	whenInterrupt = "interrupt"
)

// maxText is the longest message, in bytes: a line of the wire has 4 MiB.
const maxText = 3 << 20

// post stores a message (F5, F6).
func (s *Supervisor) post(ctx context.Context, d *desk, client string, m api.Send) (effect, error) {
	sess, err := d.read()
	if err != nil {
		return effect{}, err
	}
	env, err := environmentOf(m.Environment, m.Secrets, m.Text)
	if err != nil {
		return effect{}, err
	}
	spec, err := s.message(sess, client, m, env)
	if err != nil {
		return effect{}, err
	}
	folder := session.Folder(spec.Controller, spec.ID)
	idle, err := s.place(ctx, d, client, spec, folder)
	if err != nil {
		return effect{}, err
	}
	claimed, err := s.store(ctx, spec, m)
	if err != nil {
		return effect{}, err
	}
	if m.Environment != nil {
		s.settleIn(d.id, env, true) // also for one before it that waits for values
		s.pokeAll()
	}
	at := claimed.Spec.Desired.At
	sent := api.Sent{
		Session: d.id, Execution: spec.ID, When: or(m.When, whenQueue), Fence: sess.Fence,
		Delivery: api.Delivery{State: "pending", StoredAt: &at},
	}
	e := effect{answer: sent, late: idle}
	e.then = func(ctx context.Context, _ any) (any, error) { return s.posted(ctx, claimed.Folder, sent, idle) }
	e.events, err = s.storing(claimed, sent, client)
	return e, err
}

// store gives the order for a message.
func (s *Supervisor) store(ctx context.Context, spec record.Spec, m api.Send) (record.Claimed, error) {
	claimed, err := record.Claim(ctx, s.dir, spec, 0, func(*record.Spec) error { return nil })
	if api.CodeOf(err) == api.CodeConflict { // killed before its receipt, it was another message
		err = api.E(api.CodeOperationConflict, "%w", err)
	}
	if err != nil {
		return claimed, err
	}
	crash.At("supervisor.stored")
	if m.Environment == nil {
		return claimed, nil
	}
	return claimed, s.bring(claimed.Folder, api.Create{ID: spec.ID, Environment: m.Environment, Secrets: m.Secrets})
}

// storing is the event of a message that is stored, if the journal has it not: killed before its receipt, it may have been told.
func (s *Supervisor) storing(claimed record.Claimed, sent api.Sent, client string) ([]journal.Event, error) {
	stored := event("message_stored", map[string]any{"when": sent.When, "client": client})
	stored.Execution = sent.Execution
	if claimed.New {
		return []journal.Event{stored}, nil
	}
	told, err := s.told(sent.Session, stored, *sent.Delivery.StoredAt)
	if told || err != nil {
		return nil, err
	}
	return []journal.Event{stored}, nil
}

// message is the order of one.
func (s *Supervisor) message(sess record.Session, client string, m api.Send, env environ.Environment) (record.Spec, error) {
	spec, err := s.templateOf(sess)
	if err := cmp.Or(err, someTime("timeoutMs", m.TimeoutMs), s.fits(sess, m)); err != nil {
		return spec, err
	}
	boot, err := proc.BootID()
	now := time.Now().UTC()
	spec.Version, spec.ID, spec.Controller, spec.CreatedAt = 0, or(m.OperationID, operationID()), session.Local, now
	spec.Payload.Prompt, spec.Payload.Session = m.Text, sess.ID
	spec.Tree, spec.Opening, spec.Client, spec.When, spec.Labels = nil, nil, client, m.When, m.Labels
	spec.Payload.Worktree, spec.Payload.Branch, spec.Payload.Base, spec.Payload.Checkout, spec.Payload.Pull, spec.Payload.Reuse = false, "", "", "", 0, ""
	spec.Desired = record.Desired{At: now, BootID: boot}
	spec.Limits.Archive, spec.Limits.Timeout, spec.Limits.Attended = false, time.Duration(m.TimeoutMs)*time.Millisecond, false
	if spec.Limits.Timeout > 0 {
		spec.Desired.Deadline = proc.BootClock() + spec.Limits.Timeout
	}
	if w, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(sess.Workspace)); err == nil {
		spec.Payload.Cwd = w.Cwd
	}
	spec.Environment.Inherit = m.Environment == nil
	if m.Environment != nil {
		spec.Environment.Values, spec.Environment.Names, spec.Environment.Secrets = env.Stored(), env.Names(), env.SecretNames()
	}
	return spec, err
}

// fits refuses a message that no session, or not this one, can be given.
func (s *Supervisor) fits(sess record.Session, m api.Send) error {
	provider, _ := s.provider(sess.Provider, sess.Kind)
	switch {
	case m.Text == "":
		return api.E(api.CodeParams, "the text is empty")
	case len(m.Text) > maxText:
		return api.E(api.CodeParams, "a text of %d bytes: %d at most", len(m.Text), maxText)
	case m.When != "" && !slices.Contains([]string{whenQueue, whenSteer, whenInterrupt}, m.When):
		return api.E(api.CodeParams, "when %q: queue, steer or interrupt", m.When)
	case !provider.Stdin:
		return api.E(api.CodeParams, "session %s is a %s's, which has no conversation", sess.ID, sess.Provider)
	case m.When == whenSteer && !steers(provider):
		return api.E(api.CodeSteer, "%s cannot be steered", sess.Provider).WithNext("pintle send --when queue " + sess.ID + " PROMPT")
	}
	return nil
}

// environmentOf is what came with a request. Recorded are words of it that go on record, where no secret may be (E5).
func environmentOf(vars map[string]string, secrets []string, recorded ...string) (environ.Environment, error) {
	env, err := environ.Brought(vars, secrets)
	if err != nil {
		return env, api.E(api.CodeParams, "%w", err)
	}
	if name := env.Tells(recorded...); name != "" {
		return env, api.E(api.CodeParams, "the request holds the value of the secret %s: have the agent read it from its environment", name)
	}
	return env, nil
}

// place takes the message's place, unless it was taken: killed behind that, the order is there, and may have ended since. idle:
// nobody is before it.
func (s *Supervisor) place(ctx context.Context, d *desk, client string, spec record.Spec, folder string) (idle bool, err error) {
	if !s.ordered(spec.ID) {
		idle, err = s.reserveTurn(ctx, d, client, spec, folder)
		crash.At("supervisor.enqueued")
		return idle, err
	}
	first, err := s.turnOf(d.id)
	return spec.When != whenSteer && (first == "" || first == folder), err
}

// reserveTurn takes the message's place in the queue, in the write that checks that it may come. idle: it is the first.
func (s *Supervisor) reserveTurn(ctx context.Context, d *desk, client string, spec record.Spec, folder string) (idle bool, err error) {
	busy, err := d.busy()
	if err != nil {
		return false, err
	}
	void := d.voided()
	err = d.change(ctx, func(r *record.Session) error {
		if r.ArchivedAt != nil {
			return archivedSession(*r)
		}
		if refusal := without(r.Leases, void).MayWrite(client); refusal != nil {
			return d.owned(refusal)
		}
		if ok, why := r.Restart.MayStart(); !ok {
			return Parked(d.id, why)
		}
		if len(d.owed) == 0 {
			r.Changed = nil // it is in the journal
		}
		others := busy(*r)
		idle = len(others) == 0
		if spec.When == whenSteer {
			if idle {
				return api.E(api.CodeSteer, "session %s: no turn runs that could be steered", d.id).WithNext("pintle send --when queue " + d.id + " PROMPT")
			}
			return nil
		}
		r.Enqueue(record.Turn{Folder: folder, At: spec.Desired.At, Next: spec.When == whenInterrupt}, s.vacant)
		return nil
	})
	return idle, err
}

// vacant reports whether a place in a queue is nobody's: its execution has ended, or there is none, since a death came between
// the two, or the order is about to come. Then it has not begun.
func (s *Supervisor) vacant(folder string) bool {
	open, err := s.unended(folder)
	return !open && (err == nil || nowhere(err))
}

// Parked is the refusal of what would start the agent of a session that is parked.
func Parked(id, why string) error {
	return api.E(api.CodeCrashLooping, "session %s is parked: %s", id, why).WithNext("pintle recover " + id)
}

// posted answers a send: to an idle session after the hand-over, to a busy one at once.
func (s *Supervisor) posted(ctx context.Context, folder string, sent api.Sent, idle bool) (any, error) {
	r := s.ensure(folder)
	if !idle {
		return sent, nil
	}
	if err := r.reach(ctx, deliveredOrWaits); err != nil {
		return nil, err
	}
	if e, err := r.view(); err == nil && e.Delivery != nil {
		sent.Delivery, sent.Fence = *e.Delivery, max(sent.Fence, e.Fence)
	}
	if sent.Delivery.State == "accepted" { // in this instant: whether it is told must not hang on that
		sent.Delivery.State, sent.Delivery.ConfirmedAt = "pending", nil
	}
	return sent, nil
}

// told reports whether a session's journal has an execution's event since then.
func (s *Supervisor) told(session string, e journal.Event, since time.Time) (bool, error) {
	events, err := journal.Scan(s.dir.Path(record.JournalDir(session)), since, e.Type)
	return slices.ContainsFunc(events, func(was journal.Event) bool { return was.Execution == e.Execution }), err
}

// interruptRun has an execution's turn end, and does not wait for it.
func (s *Supervisor) interruptRun(ctx context.Context, folder, reason string) error {
	_, err := record.Cancel(ctx, s.dir, folder, api.Cancel{Action: "interrupt", Reason: reason, RequestedAt: time.Now().UTC()})
	s.ensure(folder).wake()
	return err
}

// running is the folder of the execution whose turn it is in a session, "" if it is nobody's.
func (s *Supervisor) running(id string) (string, error) {
	sess, err := state.Read[record.Session](s.dir, record.SessionFile(id))
	if err != nil {
		return "", err
	}
	for _, t := range sess.Queue {
		if open, err := s.unended(t.Folder); open || err != nil && !nowhere(err) {
			return t.Folder, nil
		}
	}
	return "", nil
}

// turnOf is running for who means a turn, which an opening is not.
func (s *Supervisor) turnOf(id string) (string, error) {
	folder, err := s.running(id)
	if err != nil || folder == "" {
		return "", err
	}
	if spec, err := record.SpecOf(s.dir, folder); err == nil && spec.Opening != nil {
		return "", nil
	}
	return folder, nil
}

// interruptSession has the turn that runs end, and answers once it has. Whose turn that is goes on record first, so that a
// repeat whose first answer was not heard has no other one end.
func (s *Supervisor) interruptSession(ctx context.Context, d *desk, i api.Interrupt) (effect, error) {
	answer := api.Controlled{Action: "interrupt", Success: true}
	folder, err := d.interrupts(ctx, i.OperationID)
	if err != nil || folder == "" {
		return effect{answer: answer}, err
	}
	spec, err := record.SpecOf(s.dir, folder)
	if err != nil {
		return effect{}, err
	}
	answer.ExecutionID = spec.ID
	if open, err := s.unended(folder); !open {
		return effect{answer: answer}, err
	}
	return effect{late: true, then: func(ctx context.Context, _ any) (any, error) {
		if err := s.interruptRun(ctx, folder, i.Reason); err != nil {
			return nil, err
		}
		return answer, s.ended(ctx, folder)
	}}, nil
}

// interrupts is the folder of the execution whose turn an operation has end; "" if none runs.
func (d *desk) interrupts(ctx context.Context, operation string) (string, error) {
	sess, err := d.read()
	if err != nil {
		return "", err
	}
	if folder := sess.Interrupted(operation); folder != "" {
		return folder, nil
	}
	folder, err := d.s.turnOf(d.id)
	if err != nil || folder == "" || operation == "" {
		return folder, err
	}
	return folder, d.change(ctx, func(r *record.Session) error {
		r.Interrupt(operation, folder)
		return nil
	})
}
