package supervisor

import (
	"context"
	"encoding/json"
	"log"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/state"
)

// registry has the clients: whoever said hello with an id. A client outlives its connections by its grace time, and the
// supervisor by its record (C1).
//
// Of a client that ends, first onGone frees what it holds, then its record goes. Killed in between, the next supervisor
// finds the record and does both again; so onGone must be safe to repeat.
//
// No method waits for a session's lock, but for those that end a client: join, lost, goodbye's finish. They must not be
// called by who holds a lock that onGone takes; note, forget and the looks may.
type registry struct {
	ctx    context.Context // when it ends nobody ends any more: clients are the next supervisor's
	dir    *state.Dir
	log    *log.Logger
	clock  clock
	onGone func(ctx context.Context, client string, sessions []string) error

	mu         sync.Mutex
	byID       map[string]*client
	byPeer     map[*rpc.Peer]*client
	unreadable map[string]bool // by file: clients of whom nobody knows anything but that they are there
	closed     bool
	work       sync.WaitGroup // what timers began
}

// clock is the time; tests have their own.
type clock interface {
	Now() time.Time
	After(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) After(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// client is one of the registry's.
type client struct {
	id string

	cleaning sync.Mutex // held by who has its leases freed; taken before turn
	freed    bool       // under cleaning: onGone has succeeded

	turn      sync.Mutex // held by who writes the record, or looks at what follows
	tokenHash string
	createdAt time.Time
	onFile    bool

	// What follows is under the registry's mutex; grace and sessions are changed with the turn only.
	phase        clientPhase
	grace        time.Duration
	capabilities json.RawMessage    // as the last hello gave them
	sessions     []string           // sorted
	peers        map[*rpc.Peer]bool // false: not welcomed yet
	until        time.Time          // the end of its grace; zero while it is connected
	stop         func() bool        // the timer's
	timer        int                // counts timers: one that was stopped too late does nothing
	failure      string             // of the last try to free its leases
}

// clientPhase is where a client is in its life, which goes in this order.
type clientPhase int

const (
	clientArriving clientPhase = iota // its first hello is being carried out
	clientLiving                      // connected or in grace
	clientEnded                       // its leases are being freed
	clientGone                        // its id is free
)

func newRegistry(ctx context.Context, d *state.Dir, l *log.Logger, c clock,
	onGone func(ctx context.Context, client string, sessions []string) error,
) *registry {
	return &registry{
		ctx: ctx, dir: d, log: l, clock: c, onGone: onGone,
		byID: map[string]*client{}, byPeer: map[*rpc.Peer]*client{}, unreadable: map[string]bool{},
	}
}

// of is the client that p is a connection of, which may have ended meanwhile; nil if it said no hello.
func (r *registry) of(p *rpc.Peer) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPeer[p]
}

// peersOf are the connections of a living client that have been welcomed: what it is told, all of them are told (C2).
func (r *registry) peersOf(id string) (peers []*rpc.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byID[id]
	if c == nil || c.phase != clientLiving {
		return nil
	}
	for p, welcome := range c.peers {
		if welcome {
			peers = append(peers, p)
		}
	}
	return peers
}

// state tells whether a client lives: whether its leases hold. One whose record cannot be read is taken for living, since
// nobody can say that it has ended. It does no I/O: who records a lease calls it while he holds the session's record, so that of
// the lease and the client's end one comes first.
func (r *registry) state(id string) (connected bool, graceUntil time.Time, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byID[id]
	if c == nil || c.phase == clientArriving {
		return false, time.Time{}, r.unreadable[record.ClientFile(id)]
	}
	return c.phase == clientLiving && len(c.peers) > 0, c.until, c.phase == clientLiving
}

// busy reports whether a client may come back, or holds something: a supervisor that left would be started again for it.
func (r *registry) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.byID {
		if c.phase == clientEnded || len(c.sessions) > 0 || !c.until.IsZero() {
			return true
		}
	}
	return false
}

// begin lets a timer do its work, unless the supervisor leaves.
func (r *registry) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ctx.Err() != nil {
		return false
	}
	r.work.Add(1)
	return true
}

// close has no timer fire any more (C16), and waits for what they began.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	for _, c := range r.byID {
		c.disarm()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// arm has f called after d. The caller holds the registry's mutex.
func (r *registry) arm(c *client, d time.Duration, f func(timer int)) {
	if r.closed || r.ctx.Err() != nil {
		return
	}
	c.disarm()
	timer := c.timer
	c.stop = r.clock.After(d, func() {
		if r.begin() {
			defer r.work.Done()
			f(timer)
		}
	})
}

// disarm stops the timer, or, where that comes too late, makes it another one's.
func (c *client) disarm() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	c.timer++
}
