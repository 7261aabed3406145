package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// desk is where what clients want of one session comes in. Of two operations one comes first: who has the turn checks and
// records, and the other finds what it left. A hand-over to the agent takes the turn too, so that lease and fence are then
// as they were checked.
type desk struct {
	s    *Supervisor
	id   string
	turn chan struct{} // of capacity 1: a lock that can be waited for with a context

	// Guarded by the supervisor's mutex.
	users   int
	pending map[string]*pending      // by client (L11)
	flight  map[string]chan struct{} // by operation: closed once it was answered

	// Guarded by the turn.
	book     *book                // nil while it is closed
	receipts *session.Receipts    // nil until they are needed
	owed     []record.LeaseChange // on record, and not in the journal
}

// pending is a client's operation that has not been answered.
type pending struct {
	session.Pending
	cancel context.CancelFunc
	done   chan struct{}
	answer any // once done, if it succeeded
}

// desk is the one of a session, until done is called. It is kept as long as somebody is at it or holds a lease.
func (s *Supervisor) desk(id string) (d *desk, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.desks[id]
	if !ok {
		d = &desk{s: s, id: id, turn: make(chan struct{}, 1), pending: map[string]*pending{}, flight: map[string]chan struct{}{}}
		s.desks[id] = d
	}
	d.users++
	return d, d.release
}

// release gives the desk up. The last one takes its journal with it, if nobody holds the session.
func (d *desk) release() {
	d.s.mu.Lock()
	d.users--
	last := d.users == 0 && len(d.s.leases[d.id]) == 0
	if last {
		delete(d.s.desks, d.id)
	}
	d.s.mu.Unlock()
	if last && d.book != nil { // nobody else can have come to it
		if err := d.book.close(); err != nil {
			d.s.log.Printf("session %s: %v", d.id, err)
		}
	}
}

// take takes the turn.
func (d *desk) take(ctx context.Context) (done func(), err error) {
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open opens the session's journal, and reads its receipts from it.
func (d *desk) open() (err error) {
	if d.book == nil {
		if d.book, err = d.s.openBook(d.id); err != nil {
			return err
		}
	}
	if d.receipts != nil {
		return nil
	}
	receipts, err := d.s.readReceipts(d.id, time.Now())
	if err != nil {
		return err
	}
	if err := d.recall(); err != nil {
		return err
	}
	d.receipts = receipts
	return nil
}

// come notes that a client has begun an operation. What becomes of it while another of his is pending in the session is
// L11's: it may be refused as busy with the name of that one, or wait for it, or call it off. Joined is the answer of the one
// that it is part of (L3). left takes its own.
func (d *desk) come(ctx context.Context, next session.Pending) (came context.Context, joined any, left func(answer any), err error) {
	for {
		was, came, left := d.enter(ctx, next)
		if was == nil {
			return came, joined, left, nil
		}
		meeting := was.Meets(next)
		switch meeting {
		case session.Blocked:
			return ctx, nil, nil, pendingError(d.id, was.Pending)
		case session.Cancels:
			was.cancel()
		}
		select {
		case <-was.done:
		case <-ctx.Done():
			return ctx, nil, nil, ctx.Err()
		}
		if meeting == session.Joins {
			joined = was.answer
		}
	}
}

// enter notes it as pending, unless another stands against that, which comes back.
func (d *desk) enter(ctx context.Context, next session.Pending) (was *pending, came context.Context, left func(answer any)) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if was := d.pending[next.Client]; was != nil {
		if was.Meets(next) != session.Passes {
			return was, nil, nil
		}
		return nil, ctx, func(any) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &pending{Pending: next, cancel: cancel, done: make(chan struct{})}
	d.pending[next.Client] = p
	return nil, ctx, func(answer any) { d.left(p, answer) }
}

// left notes that a client's operation was answered, nil if it was refused.
func (d *desk) left(p *pending, answer any) {
	p.cancel()
	d.s.mu.Lock()
	delete(d.pending, p.Client)
	d.s.mu.Unlock()
	p.answer = answer
	close(p.done)
}

func pendingError(id string, p session.Pending) error {
	name := p.Method
	if p.Operation != "" {
		name += " " + p.Operation
	}
	e := api.E(api.CodeBusy, "session %s: another operation of this client is pending: %s", id, name)
	e.Data, e.Retryable = map[string]any{"pending": map[string]string{"method": p.Method, "operationId": p.Operation}}, true
	return e
}

// alone has an operation be carried out once, also while it is given twice at once: the second waits for the first, and
// finds its receipt.
func (d *desk) alone(ctx context.Context, operation string) (done func(), err error) {
	for operation != "" {
		d.s.mu.Lock()
		flight, twice := d.flight[operation]
		if !twice {
			flight = make(chan struct{})
			d.flight[operation] = flight
			d.s.mu.Unlock()
			return func() {
				d.s.mu.Lock()
				delete(d.flight, operation)
				d.s.mu.Unlock()
				close(flight)
			}, nil
		}
		d.s.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}

// change changes the session's record. fs.ErrNotExist: there is none.
func (d *desk) change(ctx context.Context, fn func(*record.Session) error) error {
	return state.Update(ctx, d.s.dir, record.SessionFile(d.id), func(s *record.Session) error {
		if s.Version == 0 {
			return unknownSession(d.id)
		}
		return fn(s)
	})
}

func unknownSession(id string) error {
	return api.E(api.CodeNotFound, "no session is called %s", record.Quote(id)).WithNext("pintle session ls")
}

// read reads the session's record.
func (d *desk) read() (record.Session, error) {
	sess, err := state.Read[record.Session](d.s.dir, record.SessionFile(d.id))
	if nowhere(err) {
		return sess, unknownSession(d.id)
	}
	if err != nil {
		err = fmt.Errorf("session %s: %w", d.id, err)
	}
	return sess, err
}
