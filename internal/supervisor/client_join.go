package supervisor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

const (
	defaultGrace = 90 * time.Second
	maxGrace     = 24 * time.Hour
	maxClientID  = 200 // characters
)

// errToken is returned by join for a client that lives and whose token the hello has not.
var errToken = errors.New("resume token")

// errAgain says that a client has ended while somebody waited for it: its id has to be looked up once more.
var errAgain = errors.New("look again")

// clientNamed reports whether an id can be a client's. It is printed to terminals and logs.
func clientNamed(id string) bool {
	return strings.TrimSpace(id) != "" && utf8.RuneCountInString(id) <= maxClientID && !strings.ContainsFunc(id, unicode.IsControl)
}

// graceOf is how long a client that says h outlives its last connection.
func graceOf(h api.Hello) (time.Duration, error) {
	switch {
	case h.GraceMs == nil:
		return defaultGrace, nil
	case *h.GraceMs < 0:
		return 0, api.E(api.CodeParams, "graceMs is %d: a time is not negative", *h.GraceMs)
	}
	return time.Duration(min(*h.GraceMs, maxGrace.Milliseconds())) * time.Millisecond, nil
}

// join makes p a connection of the client that h names: a new one, if none of that id lives, else the one that h has the
// token of. What has to outlive the supervisor is on file when it returns. The welcome has what is the client's. Nothing
// comes to p until welcomed is called. Errors: errToken, which has no effect; those of records.
func (r *registry) join(ctx context.Context, p *rpc.Peer, h api.Hello) (api.Welcome, error) {
	grace, err := graceOf(h)
	if err != nil {
		return api.Welcome{}, err
	}
	for {
		w, err := r.joinAs(ctx, r.enter(h.Client), p, h, grace)
		if !errors.Is(err, errAgain) {
			return w, err
		}
	}
}

// enter is the client of an id, or a new one that is being made. Of two first hellos at once the second finds the first.
func (r *registry) enter(id string) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byID[id]
	if c == nil {
		c = &client{id: id, peers: map[*rpc.Peer]bool{}}
		r.byID[id] = c
	}
	return c
}

func (r *registry) joinAs(ctx context.Context, c *client, p *rpc.Peer, h api.Hello, grace time.Duration) (api.Welcome, error) {
	c.turn.Lock()
	now := r.phaseOf(c)
	if now == clientEnded { // it does not come back: what was its own must not become a namesake's
		c.turn.Unlock()
		if err := r.finish(c); err != nil {
			return api.Welcome{}, err
		}
		return api.Welcome{}, errAgain
	}
	defer c.turn.Unlock()
	switch now {
	case clientGone:
		return api.Welcome{}, errAgain
	case clientLiving:
		return r.resume(ctx, c, p, h, grace)
	}
	return r.arrive(ctx, c, p, h, grace)
}

// phaseOf is where a client is now. Its time counts, and not whether a busy machine has come to the timer.
func (r *registry) phaseOf(c *client) clientPhase {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.phase == clientLiving && !c.until.IsZero() && !r.clock.Now().Before(c.until) {
		c.end()
	}
	return c.phase
}

// arrive carries out a first hello; the caller has the turn. A record that is there all the same was put back since the
// supervisor began, or cannot be read, and then the id is nobody's.
func (r *registry) arrive(ctx context.Context, c *client, p *rpc.Peer, h api.Hello, grace time.Duration) (api.Welcome, error) {
	rec, err := record.ReadClient(r.dir, record.ClientFile(c.id))
	switch {
	case err == nil:
		r.mu.Lock()
		r.restore(c, rec)
		r.mu.Unlock()
		return api.Welcome{}, errAgain
	case !errors.Is(err, fs.ErrNotExist):
		r.mu.Lock()
		r.unreadable[record.ClientFile(c.id)] = true
		r.drop(c)
		r.mu.Unlock()
		return api.Welcome{}, err
	}
	token := newToken()
	c.tokenHash, c.createdAt = hashToken(token), r.clock.Now().UTC()
	if err := r.save(ctx, c, grace, nil); err != nil {
		_ = r.unfile(c) // it may be there in spite of the error, and nobody has its token
		r.mu.Lock()
		r.drop(c)
		r.mu.Unlock()
		return api.Welcome{}, err
	}
	r.attach(c, p, h, grace)
	return api.Welcome{ResumeToken: token, GraceMs: grace.Milliseconds()}, nil
}

// resume gives a client another connection, if h has its token; the caller has the turn.
func (r *registry) resume(ctx context.Context, c *client, p *rpc.Peer, h api.Hello, grace time.Duration) (api.Welcome, error) {
	if subtle.ConstantTimeCompare([]byte(hashToken(h.ResumeToken)), []byte(c.tokenHash)) != 1 {
		return api.Welcome{}, errToken
	}
	was := c.grace
	if !r.attach(c, p, h, was) {
		return api.Welcome{}, errAgain
	}
	if grace != was {
		if err := r.save(ctx, c, grace, c.sessions); err != nil {
			r.leave(p)
			return api.Welcome{}, err
		}
		r.mu.Lock()
		c.grace = grace
		r.mu.Unlock()
	}
	return api.Welcome{ResumeToken: h.ResumeToken, Resumed: true, GraceMs: grace.Milliseconds()}, nil
}

// attach makes p a connection of c and stops the timer of its grace; false if it has ended.
func (r *registry) attach(c *client, p *rpc.Peer, h api.Hello, grace time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.phase > clientLiving {
		return false
	}
	c.disarm()
	c.phase, c.until, c.grace, c.capabilities = clientLiving, time.Time{}, grace, h.Capabilities
	c.peers[p], r.byPeer[p] = false, c
	delete(r.unreadable, record.ClientFile(c.id))
	return true
}

// welcomed lets p be told what its client is told: it has its hello's answer. First, which must not wait, tells it what
// comes before all that: who has heard it misses nothing from then on.
func (r *registry) welcomed(p *rpc.Peer, first func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first()
	if c := r.byPeer[p]; c != nil {
		c.peers[p] = true
	}
}

// drop forgets a client; the caller holds the registry's mutex.
func (r *registry) drop(c *client) {
	c.disarm()
	c.phase, c.until = clientGone, time.Time{}
	if r.byID[c.id] == c {
		delete(r.byID, c.id)
	}
}

// newToken is as good as a key: who has it is the client.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// hashToken is all that is kept of a token.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
