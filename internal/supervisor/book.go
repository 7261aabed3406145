package supervisor

import (
	"sync"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// book is a session's journal, open for all of this supervisor who write to it: the run whose turn it is, one that is
// cancelled while it waits for its turn, the keeper of the agent's process. A journal has one writer; they share it.
type book struct {
	s       *Supervisor
	session string
	readers int // who have it open; guarded by the supervisor's mutex

	mu      sync.Mutex // held while it is opened, and for what is below
	w       *journal.Writer
	fresh   bool // nothing was in it
	commits map[string]journal.Commit

	order sync.Mutex // held while events get their fence and are written
	fence int64      // of the last
}

// openBook opens the session's journal, or joins those who have it open. close gives it back.
func (s *Supervisor) openBook(session string) (*book, error) {
	s.mu.Lock()
	b, ok := s.books[session]
	if !ok {
		b = &book{s: s, session: session}
		s.books[session] = b
	}
	b.readers++
	s.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w != nil {
		return b, nil
	}
	if err := b.open(); err != nil {
		b.leave()
		return nil, err
	}
	return b, nil
}

// leave reports whether the last one has left. Who opens it then opens it anew.
func (b *book) leave() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.readers--; b.readers > 0 {
		return false
	}
	if b.s.books[b.session] == b {
		delete(b.s.books, b.session)
	}
	return true
}

// close gives the journal back. Everything was written when it was appended: whoever opens it meanwhile finds it whole.
func (b *book) close() error {
	if !b.leave() {
		return nil
	}
	return b.w.Close()
}

// open opens the journal. A new boot is noted once the journal has skipped: a death between the two then skips again,
// and not never.
func (b *book) open() error {
	boot, err := proc.BootID()
	if err != nil {
		return err
	}
	was, err := state.Read[record.Session](b.s.dir, record.SessionFile(b.session))
	if err != nil {
		return err
	}
	var skip uint64
	if was.BootID != boot {
		skip = rebootSkip
	}
	w, found, err := journal.Open(b.s.dir.Path(record.JournalDir(b.session)), skip, time.Now)
	if err != nil {
		return err
	}
	if skip > 0 {
		if err := b.booted(boot); err != nil {
			_ = w.Close()
			return err
		}
	}
	if found.Torn > 0 || found.Damaged != "" {
		b.s.log.Printf("session %s: journal: cut %d torn bytes; damaged: %q", b.session, found.Torn, found.Damaged)
	}
	b.w, b.commits, b.fresh, b.fence = w, found.Commits, found.Last == 0, was.Fence
	return nil
}

func (b *book) booted(boot string) error {
	return state.Update(b.s.ctx, b.s.dir, record.SessionFile(b.session), func(s *record.Session) error {
		s.BootID = boot
		return nil
	})
}

// append writes events as one whole.
func (b *book) append(events []journal.Event, commit journal.Commit, durable bool) error {
	if err := b.write(events, commit); err != nil {
		return err
	}
	if durable {
		if err := b.w.Sync(); err != nil {
			return err
		}
	}
	b.s.feeds.tell(b.session)
	b.mu.Lock()
	defer b.mu.Unlock()
	if commit.Runtime != "" {
		b.commits[commit.Runtime] = commit
	}
	b.fresh = false
	return nil
}

// write writes events. Their fence never falls (F1): what a process says behind a take-over is said at the new one.
func (b *book) write(events []journal.Event, commit journal.Commit) error {
	b.order.Lock()
	defer b.order.Unlock()
	for i := range events {
		b.fence = max(b.fence, events[i].Fence)
		events[i].Fence = b.fence
	}
	_, err := b.w.Append(events, commit, false)
	return err
}

// commit is up to where a runtime's output is in the journal.
func (b *book) commit(runtime string) journal.Commit {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.commits[runtime]
	c.Runtime = runtime
	return c
}

// isNew reports whether nothing was ever written to it.
func (b *book) isNew() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fresh
}

// lastSequence is one that no later event of the session is at or before. Without the journal being open it may be
// somewhat lower than the last.
func (s *Supervisor) lastSequence(session string) uint64 {
	s.mu.Lock()
	b := s.books[session]
	s.mu.Unlock()
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.w != nil {
			return b.w.Last()
		}
	}
	return journal.Floor(s.dir.Path(record.JournalDir(session)))
}
