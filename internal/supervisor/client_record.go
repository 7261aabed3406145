package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// load finds the clients that an earlier supervisor had: all have lost their connections, and who comes back within his
// grace, from now on, is the same again. One that had ended goes on to end.
func (r *registry) load() {
	for _, name := range record.IDs(r.dir, "clients") {
		file := "clients/" + name + ".json"
		rec, err := record.ReadClient(r.dir, file)
		r.mu.Lock()
		switch {
		case err == nil:
			c := &client{id: rec.ID, peers: map[*rpc.Peer]bool{}}
			r.byID[c.id] = c
			r.restore(c, rec)
		case !errors.Is(err, fs.ErrNotExist):
			r.unreadable[file] = true
			r.log.Printf("client: %v", err)
		}
		r.mu.Unlock()
	}
}

// held are the sessions on which clients may hold leases.
func (r *registry) held() (sessions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.byID {
		sessions = append(sessions, c.sessions...)
	}
	return sessions
}

// restore is a client as its record says; the caller holds the registry's mutex.
func (r *registry) restore(c *client, rec record.Client) {
	c.phase, c.onFile = clientLiving, true
	c.tokenHash, c.createdAt, c.sessions = rec.TokenHash, rec.CreatedAt, rec.Sessions
	c.grace = time.Duration(min(max(rec.GraceMs, 0), maxGrace.Milliseconds())) * time.Millisecond
	delete(r.unreadable, record.ClientFile(c.id))
	if rec.GoneAt == nil && c.grace > 0 {
		r.await(c)
		return
	}
	c.end()
	r.arm(c, 0, func(int) { _ = r.finish(c) })
}

// save puts a client on file as it is to be; the caller has the turn. One without grace is there only while it may hold
// leases: they have to be freed if the supervisor is killed.
func (r *registry) save(ctx context.Context, c *client, grace time.Duration, sessions []string) error {
	if grace == 0 && len(sessions) == 0 {
		return r.unfile(c)
	}
	if err := r.dir.Mkdir("clients"); err != nil {
		return err
	}
	c.onFile = true // even if it fails: a rename may have come before the error
	rec := r.record(c, grace, sessions)
	return state.Put(ctx, r.dir, record.ClientFile(c.id), rec)
}

func (r *registry) record(c *client, grace time.Duration, sessions []string) record.Client {
	return record.Client{
		Version: record.Version, ID: c.id, TokenHash: c.tokenHash, GraceMs: grace.Milliseconds(), CreatedAt: c.createdAt,
		Sessions: append([]string{}, sessions...),
	}
}

// unfile removes the record; the caller has the turn.
func (r *registry) unfile(c *client) error {
	if !c.onFile {
		return nil
	}
	err := os.Remove(r.dir.Path(record.ClientFile(c.id)))
	if err == nil {
		err = state.SyncDir(r.dir.Path("clients"))
	}
	if err := ignoreAbsent(err); err != nil {
		return state.Full(err)
	}
	c.onFile = false
	return nil
}

// note has it on file that a client may hold a lease on a session. It comes before the lease is recorded, so that none
// outlives its client, whoever is killed. A client that has ended gets client_gone.
func (r *registry) note(ctx context.Context, id, session string) error {
	return r.change(ctx, id, func(sessions []string) []string {
		at, found := slices.BinarySearch(sessions, session)
		if found {
			return sessions
		}
		return slices.Insert(slices.Clone(sessions), at, session)
	})
}

// forget is the opposite of note, once the lease is no more. Of a client that has ended there is nothing to forget.
func (r *registry) forget(ctx context.Context, id, session string) error {
	err := r.change(ctx, id, func(sessions []string) []string {
		return slices.DeleteFunc(slices.Clone(sessions), func(s string) bool { return s == session })
	})
	if api.CodeOf(err) == api.CodeClientGone {
		return nil
	}
	return err
}

// change changes the sessions of a living client, on file first. When it fails the old ones count here, and the file may
// have either.
func (r *registry) change(ctx context.Context, id string, f func([]string) []string) error {
	ended := api.E(api.CodeClientGone, "client %s has ended", id)
	r.mu.Lock()
	c := r.byID[id]
	r.mu.Unlock()
	if c == nil {
		return ended
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	r.mu.Lock()
	was, grace, lives := c.sessions, c.grace, c.phase == clientLiving
	r.mu.Unlock()
	if !lives {
		return ended
	}
	sessions := f(was)
	if slices.Equal(was, sessions) {
		return nil
	}
	if err := r.save(ctx, c, grace, sessions); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.sessions = sessions
	if c.phase != clientLiving { // it ended meanwhile: whoever frees its leases waits for the turn, and looks there too
		return ended
	}
	return nil
}

// condemn has it on file that a client has ended, so that the next supervisor does not give it back, and returns what it
// may hold; done says that all of this has been done. It is best effort: without the mark the client has its grace once more.
func (r *registry) condemn(c *client) (sessions []string, done bool) {
	c.turn.Lock()
	defer c.turn.Unlock()
	r.mu.Lock()
	sessions, done = c.sessions, c.phase == clientGone
	r.mu.Unlock()
	if done || !c.onFile || c.freed {
		return sessions, done
	}
	var err error
	if len(sessions) == 0 {
		err = r.unfile(c) // nobody needs it to find what is to be freed
	} else {
		rec, now := r.record(c, c.grace, sessions), r.clock.Now().UTC()
		rec.GoneAt = &now
		err = state.Put(r.ctx, r.dir, record.ClientFile(c.id), rec)
	}
	if err != nil {
		r.log.Printf("client %q has ended, and its record does not say so: %v", c.id, err)
	}
	crash.At("supervisor.client_ended")
	return sessions, false
}

// release removes the record of a client whose leases are free, and frees its id.
func (r *registry) release(c *client) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.onFile {
		crash.At("supervisor.client_freed")
	}
	if err := r.unfile(c); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.sessions = nil
	r.drop(c)
	return nil
}
