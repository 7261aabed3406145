package supervisor

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// crowd is who knows which tokens, and counts lives.
type crowd struct {
	*registry
	mu     sync.Mutex
	tokens map[string]string
	born   int
	died   int
}

// visit is one connection: a hello with the last token that is known, a note, and an end.
func (c *crowd) visit(id string) error {
	c.mu.Lock()
	token := c.tokens[id]
	c.mu.Unlock()
	p, grace := new(rpc.Peer), rand.Int64N(2)
	w, err := c.join(context.Background(), p, api.Hello{Client: id, ResumeToken: token, GraceMs: &grace})
	if errors.Is(err, errToken) {
		return nil // another one was first
	}
	if err != nil {
		return err
	}
	if !w.Resumed {
		c.mu.Lock()
		c.tokens[id], c.born = w.ResumeToken, c.born+1
		c.mu.Unlock()
	}
	c.welcomed(p, func() {})
	if rand.IntN(2) == 0 {
		if err := c.note(context.Background(), id, "s-1"); err != nil && api.CodeOf(err) != api.CodeClientGone {
			return err
		}
	}
	if rand.IntN(4) == 0 {
		_, finish := c.goodbye(p)
		finish()
	}
	c.lost(p)
	return nil
}

// Whoever meets whom: each client that was made ends once, or is in its grace, and what is on file is what lives.
func TestC2_ManyConnectionsAtOnce(t *testing.T) {
	d, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{tokens: map[string]string{}}
	c.registry = newRegistry(context.Background(), d, log.New(io.Discard, "", 0), systemClock{}, func(context.Context, string, []string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.died++
		return nil
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 40 {
				if err := c.visit([]string{"a", "b"}[rand.IntN(2)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c.close()
	left := len(c.byID)
	for id, one := range c.byID {
		if one.phase != clientLiving || len(one.peers) > 0 || one.until.IsZero() {
			t.Errorf("%s is left as %+v", id, one)
		}
	}
	if len(c.byPeer) > 0 || c.born != c.died+left {
		t.Errorf("%d connections are left; %d born, %d died, %d live", len(c.byPeer), c.born, c.died, left)
	}
	if files := record.IDs(d, "clients"); len(files) != left {
		t.Errorf("on file %v, %d live", files, left)
	}
}

// Killed before its leases are free, after that, or not at all: the next supervisor frees them and does not give it back.
func TestC1_KilledWhileAClientEnds(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "", time.Hour)
	c.notes("a", "s-1")
	root := t.TempDir()
	c.registry.onGone = func(context.Context, string, []string) error {
		return os.CopyFS(filepath.Join(root, "killed"), os.DirFS(c.dir.Path()))
	}
	_, finish := c.goodbye(p)
	finish()
	d, err := state.Open(t.Context(), filepath.Join(root, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		next := clubIn(t, d, c.clock)
		next.is("a", "absent")
		next.fail = state.ErrFull // and killed once more
		next.clock.advance(0)
		next.registry.close()
	}
	next := clubIn(t, d, c.clock)
	if _, again := next.must("a", w.ResumeToken); again.Resumed {
		t.Error("it was given back")
	}
	next.isFreed("a s-1")
	next.registry.close()
}
