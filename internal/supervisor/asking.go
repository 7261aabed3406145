package supervisor

import (
	"context"
	"encoding/json"
	"os"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// asking is a request of a client's, as it came.
type asking struct {
	s      *Supervisor
	p      *rpc.Peer
	method string
	params json.RawMessage
}

// client is the id of who asks.
func (q asking) client() string {
	if c := q.s.clients.of(q.p); c != nil {
		return c.id
	}
	return ""
}

// drive carries out what changes a session.
func (q asking) drive(ctx context.Context) (any, error) {
	switch q.method {
	case api.MethodSessCreate:
		return call(ctx, q.params, q.createSession)
	case api.MethodSessAttach:
		return call(ctx, q.params, func(ctx context.Context, a api.Attach) (any, error) {
			o, err := q.operation(a.Session, a.Operation)
			o.begun = func(r record.Session) bool {
				return r.Leases.Begun(session.Ask{Client: o.client, Operation: a.OperationID})
			}
			o.lease = func(d *desk, r record.Session) error { return d.mayAttach(r, o.client, a) }
			return q.carryOut(ctx, o, err, func(ctx context.Context, d *desk) (effect, error) { return q.s.attach(ctx, d, o.client, a) })
		})
	case api.MethodSessDetach:
		return call(ctx, q.params, func(ctx context.Context, a api.Detach) (any, error) {
			o, err := q.operation(a.Session, a.Operation)
			return q.carryOut(ctx, o, err, func(ctx context.Context, d *desk) (effect, error) { return q.s.detach(ctx, d, o.client) })
		})
	case api.MethodSessSend:
		return call(ctx, q.params, func(ctx context.Context, m api.Send) (any, error) {
			o, err := q.operation(m.Session, m.Operation)
			o.lease, o.begun = q.mayWrite, func(record.Session) bool { return q.s.ordered(m.OperationID) }
			return q.carryOut(ctx, o, err, func(ctx context.Context, d *desk) (effect, error) { return q.s.post(ctx, d, o.client, m) })
		})
	}
	return call(ctx, q.params, func(ctx context.Context, i api.Interrupt) (any, error) {
		o, err := q.operation(i.Session, i.Operation)
		o.lease, o.begun = q.mayWrite, func(r record.Session) bool { return r.Interrupted(i.OperationID) != "" }
		return q.carryOut(ctx, o, err, func(ctx context.Context, d *desk) (effect, error) { return q.s.interruptSession(ctx, d, i) })
	})
}

// mayWrite refuses the asker if he may not drive the session.
func (q asking) mayWrite(d *desk, sess record.Session) error { return d.mayWrite(sess, q.client()) }

// operation is the one that is asked of a session, named by its own id or by a run of it.
func (q asking) operation(named string, op api.Operation) (operation, error) {
	id, err := q.s.sessionNamed(named)
	return operation{Operation: op, method: q.method, session: id, client: q.client(), params: q.params}, err
}

func (q asking) carryOut(ctx context.Context, o operation, err error, do func(context.Context, *desk) (effect, error)) (any, error) {
	if err != nil {
		return nil, err
	}
	return q.s.operate(ctx, o, do)
}

// about carries out what is asked of a run, or of its workspace, with the receipt in the journal of its session. Without an
// operation there is none, and nothing to check.
func (q asking) about(ctx context.Context, id string, op api.Operation, do func(context.Context) (any, error)) (any, error) {
	if op.OperationID == "" && op.ExpectedFence == nil && op.Fingerprint == "" {
		return do(ctx)
	}
	o, err := q.operation(id, op)
	if err != nil {
		return nil, err
	}
	return q.s.operate(ctx, o, func(context.Context, *desk) (effect, error) {
		return effect{late: true, then: func(ctx context.Context, _ any) (any, error) { return do(ctx) }}, nil
	})
}

// answer answers what an agent asks. Who may not drive the session may not answer for it.
func (q asking) answer(ctx context.Context, a api.Answer) (any, error) {
	folder, _, err := q.s.asked(a.ID)
	if err != nil && (folder == "" || a.OperationID == "") { // else it may be answered by this very operation
		return nil, err
	}
	st, err := record.StatusOf(q.s.dir, folder)
	if err != nil || st.Session == "" {
		return q.s.answerTo(ctx, a)
	}
	o, err := q.operation(st.Session, a.Operation)
	o.lease = q.mayWrite
	return q.carryOut(ctx, o, err, func(context.Context, *desk) (effect, error) {
		return effect{late: true, then: func(ctx context.Context, _ any) (any, error) {
			answered, err := q.s.answerTo(ctx, a)
			if was, mine := answeredBefore(err, a.OperationID); mine {
				return was, nil
			}
			return answered, err
		}}, nil
	})
}

// ordered reports whether an order is on record under a key.
func (s *Supervisor) ordered(key string) bool {
	if key == "" {
		return false
	}
	_, err := record.Locate(s.dir, record.FolderOf(key))
	return err == nil
}

// sessionNamed is the id of the session that is meant.
func (s *Supervisor) sessionNamed(named string) (string, error) {
	if _, err := os.Stat(s.dir.Path(record.SessionFile(named))); err == nil && session.Generated(named) {
		return named, nil
	}
	c, err := record.FindConversation(s.dir, named)
	return c.Session, err
}

// look answers what changes nothing.
func (q asking) look(ctx context.Context) (any, error) {
	switch q.method {
	case api.MethodSessList:
		return call(ctx, q.params, q.s.listSessions)
	case api.MethodSessGet:
		return call(ctx, q.params, q.s.getSession)
	case api.MethodSessHistory:
		return call(ctx, q.params, q.s.history)
	case api.MethodSessSubscribe:
		return call(ctx, q.params, q.subscribe)
	case api.MethodSessUnsubscribe:
		return call(ctx, q.params, q.unsubscribe)
	}
	return call(ctx, q.params, q.s.recoverSession)
}
