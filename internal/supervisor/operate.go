package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// operation is a request that changes something in a session.
type operation struct {
	api.Operation
	method  string
	session string
	client  string
	params  json.RawMessage
	lease   func(*desk, record.Session) error // what of the leases stands against it; nil if nothing can
	creates bool                              // it makes it
	begun   func(record.Session) bool         // its effect is on record already, without its receipt; nil if that cannot be
}

// effect is what an operation comes to: its answer, and the events that say so. What is to be done once they are on record
// is done then.
type effect struct {
	answer any
	events []journal.Event
	then   func(ctx context.Context, answer any) (any, error)
	late   bool // the answer is known, and recorded, after that
}

// operationLimit is how long an operation may take that waits for nothing but records (L8).
func (s *Supervisor) operationLimit() time.Duration {
	return time.Duration(s.o.Config.Deadlines.Operation)
}

// operate carries an operation out, once. The order of the checks is F2's: fingerprint, receipts, lease, fence. The effect
// is on record before the receipt, and an effect that is repeated finds itself: killed in between, the repeat gets the
// answer that was about to be given.
func (s *Supervisor) operate(ctx context.Context, o operation, do func(context.Context, *desk) (effect, error)) (answer any, err error) {
	if s.isStopping() {
		return nil, api.E(api.CodeStopping, "the supervisor is being stopped")
	}
	d, done := s.desk(o.session)
	defer done()
	alone, err := d.alone(ctx, o.OperationID)
	if err != nil {
		return nil, err
	}
	defer alone()
	came, joined, left, err := d.come(ctx, session.Pending{Client: o.client, Method: o.method, Operation: o.OperationID})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			answer = nil
		}
		left(answer)
	}()
	if joined != nil {
		do = func(context.Context, *desk) (effect, error) { return effect{answer: joined}, nil }
	}
	answer, err = d.seeThrough(came, o, do)
	if errors.Is(err, context.Canceled) && came.Err() != nil && ctx.Err() == nil {
		err = api.E(api.CodeAbandoned, "session %s: %s was called off by another operation of this client", d.id, o.method)
	}
	return answer, err
}

// seeThrough carries an operation out to its end.
func (d *desk) seeThrough(ctx context.Context, o operation, do func(context.Context, *desk) (effect, error)) (any, error) {
	e, answer, err := d.carryOut(ctx, o, do)
	if err != nil || e.then == nil {
		return answer, err
	}
	if answer, err = e.then(ctx, answer); err != nil || !e.late {
		return answer, err
	}
	return answer, d.conclude(ctx, o, answer)
}

// conclude records the answer of an operation that took its time: also if the asker has gone, since it was carried out.
func (d *desk) conclude(ctx context.Context, o operation, answer any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.s.operationLimit())
	defer cancel()
	done, err := d.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	return d.tell(o, effect{answer: answer})
}

// carryOut has the turn from the first check to the receipt.
func (d *desk) carryOut(ctx context.Context, o operation, do func(context.Context, *desk) (effect, error)) (e effect, answer any, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.s.operationLimit())
	defer cancel()
	done, err := d.take(ctx)
	if err != nil {
		return e, nil, err
	}
	defer done()
	receipt, err := d.check(o)
	if err != nil {
		return e, nil, err
	}
	if receipt != nil {
		return e, receipt.Answer, replayed(receipt)
	}
	if e, err = do(ctx, d); err != nil {
		return e, nil, err
	}
	if e.late {
		return e, nil, d.tellEvents(e.events)
	}
	return e, e.answer, d.tell(o, e)
}

// check goes through what a mutating request is checked for.
func (d *desk) check(o operation) (*session.Receipt, error) {
	m, err := mutation(o)
	if err != nil {
		return nil, err
	}
	sess, err := d.read()
	exists := err == nil && (!o.creates || sess.Operation == "" || sess.Operation != o.OperationID) // else it is being made
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return nil, err
	}
	if err == nil {
		if err := d.open(); err != nil {
			return nil, err
		}
	}
	st := session.Standing{Exists: exists, Fence: sess.Fence, Begun: o.begun != nil && o.begun(sess)}
	if o.lease != nil && exists && !st.Begun {
		st.Lease = o.lease(d, sess)
	}
	receipts := d.receipts
	if receipts == nil {
		receipts = &session.Receipts{}
	}
	receipt, err := session.Check(m, receipts, st, time.Now())
	if err == nil && receipt == nil && o.creates && sess.Asked != "" && sess.Asked != m.Computed {
		err = fmt.Errorf("%w: %s asked for another session", session.ErrOperationConflict, o.OperationID)
	}
	return receipt, d.refused(err, sess)
}

func mutation(o operation) (session.Mutation, error) {
	computed, err := session.Fingerprint(o.method, o.session, o.params)
	if err != nil {
		return session.Mutation{}, api.E(api.CodeParams, "parameters: %w", err)
	}
	expected, err := session.ParseExpected(o.ExpectedFence)
	if err != nil {
		return session.Mutation{}, api.E(api.CodeParams, "%w", err)
	}
	return session.Mutation{Operation: o.OperationID, Fingerprint: o.Fingerprint, Computed: computed, Expected: expected}, nil
}

// refused gives a refusal its code on the wire.
func (d *desk) refused(err error, sess record.Session) error {
	codes := map[error]api.Code{
		session.ErrParams: api.CodeParams, session.ErrOperation: api.CodeOperationInvalid, session.ErrOperationExpired: api.CodeOperationExpired,
		session.ErrOperationConflict: api.CodeOperationConflict, session.ErrStaleFence: api.CodeStaleFence,
	}
	if errors.Is(err, session.ErrNoSession) {
		return unknownSession(d.id)
	}
	for sentinel, code := range codes {
		if !errors.Is(err, sentinel) {
			continue
		}
		e := api.E(code, "session %s: %w", d.id, err).WithNext("pintle session show " + d.id)
		if code == api.CodeStaleFence {
			e.Data = map[string]any{"currentFence": sess.Fence}
		}
		return e
	}
	return err
}

// tellEvents puts events into the journal of a session, which may have just been made, behind what is owed.
func (d *desk) tellEvents(events []journal.Event) error {
	if err := d.open(); err != nil {
		return err
	}
	sess, err := d.read()
	if err != nil {
		return err
	}
	events = append(d.events(sess.Fence), events...)
	for i := range events {
		events[i].Session, events[i].Fence = d.id, sess.Fence
	}
	if len(events) == 0 {
		return nil
	}
	if err := d.book.append(events, journal.Commit{}, true); err != nil {
		return err
	}
	d.settle(events)
	return nil
}

// tell puts the events of an operation and its receipt into the journal, in one append.
func (d *desk) tell(o operation, e effect) error {
	events, at := e.events, time.Now().UTC()
	var receipt session.Receipt
	if o.OperationID != "" {
		answer, err := json.Marshal(e.answer)
		if err != nil {
			return err
		}
		computed, _ := session.Fingerprint(o.method, o.session, o.params) // it could before
		receipt = session.Receipt{Operation: o.OperationID, Method: o.method, Fingerprint: computed, At: at, Answer: answer}
		data, err := json.Marshal(receipt)
		if err != nil {
			return err
		}
		events = append(events, journal.Event{Type: receiptEvent, Data: data})
	}
	if err := d.tellEvents(events); err != nil {
		return err
	}
	if o.OperationID != "" {
		d.receipts.Add(receipt)
	}
	return nil
}

// receiptEvent is the type of a receipt in the journal.
const receiptEvent = "receipt"

// replayed is the error of a receipt, if that is one of a refusal.
func replayed(r *session.Receipt) error {
	if r.Code == "" {
		return nil
	}
	return &api.Error{Code: api.Code(r.Code), Message: r.Message}
}

// readReceipts reads a session's receipts from its journal, as far back as they count.
func (s *Supervisor) readReceipts(id string, now time.Time) (*session.Receipts, error) {
	events, err := journal.Scan(s.dir.Path(record.JournalDir(id)), now.Add(-session.ReceiptAge), receiptEvent)
	if err != nil {
		return nil, err
	}
	receipts := &session.Receipts{}
	for _, e := range events {
		var r session.Receipt
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return nil, err
		}
		receipts.Add(r)
	}
	return receipts, nil
}
