package supervisor

import (
	"time"

	"github.com/pintle/pintle/rpc"
)

// freeDelay is how long it is waited until what could not be freed is tried again.
const freeDelay = time.Second

// lost takes a connection that has ended from its client. With the last one its grace begins, or, without any, its end.
func (r *registry) lost(p *rpc.Peer) {
	if c := r.detach(p); c != nil {
		_ = r.finish(c)
	}
}

// leave is lost for who has a turn.
func (r *registry) leave(p *rpc.Peer) {
	c := r.detach(p)
	if c == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arm(c, 0, func(int) { _ = r.finish(c) })
}

// detach is lost, and leaves what follows from an end to the caller: it returns the client that has ended.
func (r *registry) detach(p *rpc.Peer) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byPeer[p]
	delete(r.byPeer, p)
	if c == nil {
		return nil
	}
	delete(c.peers, p)
	if len(c.peers) > 0 || c.phase != clientLiving || r.closed || r.ctx.Err() != nil {
		return nil
	}
	if c.grace == 0 {
		c.end()
		return c
	}
	r.await(c)
	return nil
}

// await begins the grace of a client; the caller holds the registry's mutex.
func (r *registry) await(c *client) {
	c.until = r.clock.Now().Add(c.grace)
	r.arm(c, c.grace, func(timer int) {
		if r.expire(c, timer) {
			_ = r.finish(c)
		}
	})
}

// expire ends a client whose grace is over, if no hello was first.
func (r *registry) expire(c *client, timer int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.timer != timer || c.phase != clientLiving {
		return false
	}
	c.end()
	return true
}

// end is the end of a client, from which nothing leads back; the caller holds the registry's mutex.
func (c *client) end() {
	c.disarm()
	c.phase, c.until = clientEnded, time.Time{}
}

// goodbye ends the client of a connection at once, whatever others it has (C15): they are returned, with p. What it held is
// freed by finish.
func (r *registry) goodbye(p *rpc.Peer) (peers []*rpc.Peer, finish func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byPeer[p]
	if c == nil {
		return []*rpc.Peer{p}, func() {}
	}
	if c.phase == clientLiving {
		c.end()
	}
	for other := range c.peers {
		peers = append(peers, other)
	}
	return peers, func() { _ = r.finish(c) }
}

// finish has the leases of a client that has ended freed, and its id. What fails is tried again every second; meanwhile
// the id is refused with the error.
func (r *registry) finish(c *client) error {
	err := r.free(c)
	if err == nil || r.ctx.Err() != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.failure != err.Error() {
		c.failure = err.Error()
		r.log.Printf("client %q has ended and its leases are not free yet: %v", c.id, err)
	}
	r.arm(c, freeDelay, func(int) { _ = r.finish(c) })
	return err
}

// free frees the leases and removes the record, in this order: the record is what finds the leases.
func (r *registry) free(c *client) error {
	c.cleaning.Lock()
	defer c.cleaning.Unlock()
	sessions, done := r.condemn(c)
	if done {
		return nil
	}
	if !c.freed {
		if err := r.onGone(r.ctx, c.id, sessions); err != nil {
			return err
		}
		c.freed = true
	}
	return r.release(c)
}
