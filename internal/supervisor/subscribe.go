package supervisor

import (
	"context"
	"sync"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// A subscription reads a session's journal, at the pace of who reads it: the session is never held up by a reader, nothing is
// kept in memory for one, and nothing is lost to him. It is a connection's; one that a client opens beside another gets what
// that one gets (C2), and one that comes back is silent until it names a cursor (C1).

// feeds are the subscriptions of all connections.
type feeds struct {
	mu   sync.Mutex
	of   map[*rpc.Peer]map[string]context.CancelFunc // by connection and session
	news map[string]chan struct{}                    // by session: closed when something was appended
}

func newFeeds() *feeds {
	return &feeds{of: map[*rpc.Peer]map[string]context.CancelFunc{}, news: map[string]chan struct{}{}}
}

// tell wakes those who wait for events of a session.
func (f *feeds) tell(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if news, ok := f.news[session]; ok {
		close(news)
		delete(f.news, session)
	}
}

// awaited is closed when the next events are there. It is asked for before one looks.
func (f *feeds) awaited(session string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, ok := f.news[session]
	if !ok {
		news = make(chan struct{})
		f.news[session] = news
	}
	return news
}

// add has a connection get a session's events; a subscription that it has ends. The context ends with it.
func (f *feeds) add(ctx context.Context, p *rpc.Peer, session string) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[p] == nil {
		f.of[p] = map[string]context.CancelFunc{}
	}
	if old := f.of[p][session]; old != nil {
		old()
	}
	f.of[p][session] = cancel
	return ctx
}

// remove ends a connection's subscription to a session.
func (f *feeds) remove(p *rpc.Peer, session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.of[p][session]; cancel != nil {
		cancel()
		delete(f.of[p], session)
	}
}

// lose ends all subscriptions of a connection that has ended.
func (f *feeds) lose(p *rpc.Peer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.of[p] {
		cancel()
	}
	delete(f.of, p)
}

// sessions are those that a connection is subscribed to.
func (f *feeds) sessions(p *rpc.Peer) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.of[p] {
		ids = append(ids, id)
	}
	return ids
}

// subscribe has the events of a session told to the asker, from behind a sequence, and to the client's other connections from
// now on.
func (q asking) subscribe(_ context.Context, a api.Subscribe) (any, error) {
	id, err := q.s.sessionNamed(a.Session)
	if err != nil {
		return nil, err
	}
	b, err := q.s.openBook(id) // so that the last sequence is the last
	if err != nil {
		return nil, err
	}
	last := b.w.Last()
	if err := b.close(); err != nil {
		return nil, err
	}
	after := last
	if a.After != nil {
		after = min(*a.After, last)
	}
	return rpc.Then{Result: api.Subscribed{Session: id, LastSeq: last}, Do: func() {
		q.s.feed(q.p, id, after)
		for _, other := range q.s.clients.peersOf(q.client()) {
			if other != q.p {
				q.s.feed(other, id, last)
			}
		}
	}}, nil
}

// feed begins a subscription.
func (s *Supervisor) feed(p *rpc.Peer, session string, after uint64) {
	ctx := s.feeds.add(s.ctx, p, session)
	s.work.Go(func() {
		if err := s.pump(ctx, p, session, after); err != nil {
			s.log.Printf("session %s: tell its events: %v", session, err)
		}
	})
}

// pump tells events as long as somebody listens.
func (s *Supervisor) pump(ctx context.Context, p *rpc.Peer, session string, after uint64) error {
	r := journal.NewReader(s.dir.Path(record.JournalDir(session)), after)
	defer r.Close()
	for ctx.Err() == nil {
		news := s.feeds.awaited(session)
		events, err := r.Next()
		if err != nil {
			return err
		}
		for i := range events {
			events[i].Commit = nil // how far the spool was taken in is nobody's business
			if ctx.Err() != nil || tell(p, events[i]) != nil {
				return nil // it has gone
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
	return nil
}

// join has a further connection of a client get what its others get.
func (s *Supervisor) join(p *rpc.Peer) {
	c := s.clients.of(p)
	if c == nil {
		return
	}
	for _, other := range s.clients.peersOf(c.id) {
		if other == p {
			continue
		}
		for _, id := range s.feeds.sessions(other) {
			s.feed(p, id, s.lastSequence(id))
		}
	}
}

// unsubscribe ends a client's subscription to a session.
func (q asking) unsubscribe(_ context.Context, t api.SessionTarget) (any, error) {
	id, err := q.s.sessionNamed(t.Session)
	if err != nil {
		return nil, err
	}
	q.s.feeds.remove(q.p, id)
	for _, p := range q.s.clients.peersOf(q.client()) {
		q.s.feeds.remove(p, id)
	}
	return struct{}{}, nil
}

// gone is told of each connection that has ended.
func (s *Supervisor) peerGone(p *rpc.Peer) {
	s.feeds.lose(p)
	s.clients.lost(p)
}
