package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// link is a client that comes back: when its connection breaks, or another supervisor comes, it says hello with its token
// and is the same client, with the same lease, and its events go on behind the last that was taken in. Every request may be
// repeated, since those that change something are operations.
type link struct {
	a      *app
	d      *state.Dir
	hello  api.Hello
	attach api.Attach
	lease  api.Lease
	events chan journal.Event
	news   chan notice
	seen   atomic.Uint64 // the last sequence that was passed on
	wants  atomic.Int64  // requests that wait for a connection
	over   chan struct{} // closed when it will not come back
	err    error         // why; set before over is closed

	mu  sync.Mutex
	c   *rpc.Client   // nil while there is none
	was chan struct{} // closed when c is another one
}

// notice is something that happened to the link.
type notice struct {
	text string
	lost error // the lease is another's
}

func newLink(a *app, d *state.Dir, attach api.Attach) *link {
	attach.OperationID = operationID()
	return &link{
		a: a, d: d, hello: api.Hello{Client: comingID()}, attach: attach, events: make(chan journal.Event, 256), news: make(chan notice, 4),
		over: make(chan struct{}), was: make(chan struct{}),
	}
}

// comingID names a client that comes back: nobody else ever has the name.
func comingID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("attach-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// open attaches for the first time. It returns so many of the history's last rows; events come from behind them, or from
// behind a sequence.
func (l *link) open(ctx context.Context, rows int, after *uint64) ([]record.Row, error) {
	c, err := l.reach(ctx)
	if err != nil {
		return nil, err
	}
	var got api.Attached
	if err := l.first(ctx, c, api.MethodSessAttach, l.attach, &got); err != nil {
		return nil, err
	}
	l.lease = got.Lease
	page := record.Rows{UpTo: got.LastSeq}
	switch {
	case after != nil:
		page.UpTo = *after
	case rows > 0:
		err = l.first(ctx, c, api.MethodSessHistory, api.History{Session: l.attach.Session, Tail: true, Limit: rows}, &page)
	}
	if err != nil {
		return nil, err
	}
	l.seen.Store(page.UpTo)
	return page.Rows, l.subscribe(ctx, c)
}

// first makes a request of the first connection, whose end is the link's.
func (l *link) first(ctx context.Context, c *rpc.Client, method string, params, result any) error {
	err := c.Call(ctx, method, params, result)
	if err != nil {
		c.Close()
	}
	return err
}

// reach says hello.
func (l *link) reach(ctx context.Context) (*rpc.Client, error) {
	told := func(method string, params json.RawMessage) { l.told(ctx, method, params) }
	c, w, err := l.a.reachAs(ctx, l.d, func(dialing context.Context, d *state.Dir) (*rpc.Client, api.Welcome, error) {
		return dialAs(dialing, d, l.hello, told)
	})
	if err != nil {
		return nil, err
	}
	came := l.hello.ResumeToken != ""
	l.hello.ResumeToken = w.ResumeToken
	if came && !w.Resumed {
		if err := l.again(ctx, c); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// again is for a client whose time was over before it came back: it has no lease any more, and takes none from anybody.
func (l *link) again(ctx context.Context, c *rpc.Client) error {
	l.attach.OperationID, l.attach.TakeOver = operationID(), false
	var got api.Attached
	err := c.Call(ctx, api.MethodSessAttach, l.attach, &got)
	if code := api.CodeOf(err); code == api.CodeOwned || code == api.CodeBusy {
		l.tell(ctx, notice{lost: err})
		return nil
	}
	return err
}

// subscribe has events told from behind the last that was passed on, and has others use the connection.
func (l *link) subscribe(ctx context.Context, c *rpc.Client) error {
	after := l.seen.Load()
	err := c.Call(ctx, api.MethodSessSubscribe, api.Subscribe{Session: l.attach.Session, After: &after}, nil)
	if err != nil {
		c.Close()
		return err
	}
	l.use(c)
	return nil
}

func (l *link) use(c *rpc.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c = c
	close(l.was)
	l.was = make(chan struct{})
}

// told passes an event on. Of two connections the second tells again what the first had told and nobody had taken in. The
// one without a sequence is for who has not subscribed.
func (l *link) told(ctx context.Context, method string, params json.RawMessage) {
	var e journal.Event
	if method != api.NotifyEvent || json.Unmarshal(params, &e) != nil {
		return
	}
	select {
	case l.events <- e:
	case <-ctx.Done():
	}
}

// keep comes back whenever the connection has ended.
func (l *link) keep(ctx context.Context) {
	for {
		c, _ := l.current()
		select {
		case <-c.Done():
		case <-ctx.Done():
			return
		}
		l.use(nil)
		if code, _ := c.Reason(); code == rpc.CloseGoing {
			l.tell(ctx, notice{text: "the supervisor has left"})
			l.lurk(ctx)
		} else {
			l.tell(ctx, notice{text: "the connection to the supervisor broke"})
		}
		if err := l.back(ctx); err != nil {
			if ctx.Err() == nil {
				l.err = err
				close(l.over)
			}
			return
		}
		l.tell(ctx, notice{text: "back again"})
	}
}

// lurk waits for the next supervisor, behind one that was asked to leave: none is started for who only looks on.
func (l *link) lurk(ctx context.Context) {
	for ctx.Err() == nil && l.wants.Load() == 0 && !serving(ctx, l.d) {
		pause(ctx, retryMost)
	}
}

func (l *link) tell(ctx context.Context, n notice) {
	select {
	case l.news <- n:
	case <-ctx.Done():
	}
}

// back connects again, also if that breaks at once.
func (l *link) back(ctx context.Context) error {
	for {
		c, err := l.reach(ctx)
		if err == nil {
			err = l.subscribe(ctx, c)
		}
		if !broken(err) || c == nil { // reach has tried for long
			return err
		}
		pause(ctx, retryReach)
	}
}

// broken reports whether a request is to be made again, of another supervisor.
func broken(err error) bool {
	code := api.CodeOf(err)
	return code == api.CodeUnreachable || code == api.CodeStopping
}

func (l *link) current() (*rpc.Client, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.c, l.was
}

// call makes a request, over as many connections as it takes. While another operation of the client's is pending, an
// interrupt say, it is made again.
func (l *link) call(ctx context.Context, method string, params, result any) error {
	for {
		c, was := l.current()
		if c != nil {
			err := c.Call(ctx, method, params, result)
			if err != nil && ctx.Err() == nil && api.CodeOf(err) == api.CodeBusy && api.As(err).Retryable {
				pause(ctx, retryMost)
				continue
			}
			if !broken(err) || ctx.Err() != nil {
				return err
			}
		}
		if err := l.next(ctx, was); err != nil {
			return err
		}
	}
}

// next waits for another connection.
func (l *link) next(ctx context.Context, was <-chan struct{}) error {
	l.wants.Add(1)
	defer l.wants.Add(-1)
	select {
	case <-was:
		return nil
	case <-l.over:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the lease back and ends the client. Where that cannot be done in time its grace does it.
func (l *link) leave(ctx context.Context) error {
	c, _ := l.current()
	if c == nil {
		return api.E(api.CodeUnreachable, "there is no connection")
	}
	err := c.Call(ctx, api.MethodSessDetach, l.detach(), nil)
	if bye := c.Call(ctx, api.MethodGoodbye, nil, nil); bye == nil || broken(bye) {
		return nil // with its end the client has no lease any more
	}
	return err
}

func (l *link) detach() api.Detach {
	return api.Detach{Operation: api.Operation{OperationID: operationID()}, Session: l.attach.Session}
}

func (l *link) close() {
	if c, _ := l.current(); c != nil {
		c.Close()
	}
}

// fresh reports whether an event was not passed on before.
func (l *link) fresh(e journal.Event) bool {
	if e.Seq == 0 {
		return true
	}
	if e.Seq <= l.seen.Load() {
		return false
	}
	l.seen.Store(e.Seq)
	return true
}

// leaseChange is the data of an event that tells of a lease.
type leaseChange struct {
	Change, Client, Mode string
	Evicted              []session.Lease
}
