package record

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Claimed is what Claim made of an order.
type Claimed struct {
	Folder  string
	Verdict session.Verdict
	Spec    Spec
	New     bool
}

// Claim records an order under its key, or finds what is recorded. Of two claims of one key one comes
// first and the other joins it. attempt is the caller's --attempt, 0 without. fresh is called, before
// anything is written, for an order whose key is free or whose next attempt would begin: rules that bind
// new orders only go there, and what completes one.
//
// Errors: *api.Error with CodeConflict naming the fields that differ, CodeUnknown when only retry may go on,
// CodeArchived when a further attempt is asked for of what is archived; what fresh returns; those of package state.
func Claim(ctx context.Context, d *state.Dir, order Spec, attempt int, fresh func(*Spec) error) (Claimed, error) {
	c := Claimed{Folder: session.Folder(order.Controller, order.ID)}
	if err := c.look(d, order, attempt); err != nil || c.Verdict != session.Begin {
		return c, err
	}
	if err := fresh(&order); err != nil {
		return c, err
	}
	err := locked(ctx, d, c.Folder, func() error {
		crash.At("record.claim")
		if err := c.look(d, order, attempt); err != nil || c.Verdict != session.Begin {
			return err // another one came first
		}
		if err := d.Mkdir("executions", c.Folder); err != nil {
			return err
		}
		return state.Put(ctx, d, SpecFile(c.Folder), c.Spec)
	})
	return c, err
}

// look decides an order against the records as they are. Without the lock it can only be outrun by another claim.
func (c *Claimed) look(d *state.Dir, order Spec, attempt int) error {
	folder, err := Locate(d, hashOf(c.Folder))
	c.Spec = Spec{}
	if errors.Is(err, fs.ErrNotExist) {
		c.Folder = hashOf(c.Folder)
		return c.settle(&c.Spec, order, attempt, ending{})
	}
	if err != nil {
		return err
	}
	c.Folder = folder
	if buried, err := c.exhume(d, order, attempt); buried || err != nil {
		return err
	}
	spec, err := SpecOf(d, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return c.look(d, order, attempt) // it was moved meanwhile
	}
	if err != nil {
		return err
	}
	ended, err := endingOf(d, folder)
	if err != nil {
		return err
	}
	c.Spec = spec
	if err := c.settle(&c.Spec, order, attempt, ended); err != nil {
		return err
	}
	if c.Verdict == session.Begin && (ended.archived || IsArchived(folder)) {
		return archivedError(spec.ID, ended.workspace)
	}
	return nil
}

// exhume decides against a tombstone, if that is what is left.
func (c *Claimed) exhume(d *state.Dir, order Spec, attempt int) (bool, error) {
	if !IsArchived(c.Folder) {
		return false, nil
	}
	t, err := state.Read[Tombstone](d, TombstoneFile(c.Folder))
	if err != nil {
		return false, ignoreAbsent(err)
	}
	if t.Payload != Fingerprint(order.Payload) {
		return true, api.E(api.CodeConflict, "%s was given before with another order, whose record has expired", t.ID).
			WithNext("pintle rm " + Quote(t.ID) + " frees the key; or choose another --id")
	}
	c.Spec, c.New = order, false
	c.Spec.Desired.Attempt = t.Attempt
	if c.Verdict = session.Decide(t.Attempt, session.Outcome(t.Outcome), attempt); c.Verdict != session.Replay {
		return true, expiredError(t.ID)
	}
	return true, nil
}

// archivedError refuses what would go on in something archived (case 28).
func archivedError(id, workspace string) error {
	return api.E(api.CodeArchived, "%s is archived", id).WithNext("pintle workspace restore " + workspace)
}

// expiredError is for one of which only a tombstone is left.
func expiredError(id string) error {
	return api.E(api.CodeArchived, "%s is archived, and its record has expired", id).WithNext("pintle rm " + Quote(id) + " frees the key")
}

// Retriable reads the order of an execution that may have a further attempt. *api.Error: CodeArchived.
func Retriable(d *state.Dir, folder string) (Spec, error) {
	if !IsArchived(folder) {
		return SpecOf(d, folder)
	}
	e, err := View(d, folder)
	switch {
	case err != nil:
		return Spec{}, err
	case e.ResultExpired:
		return Spec{}, expiredError(e.ID)
	}
	return Spec{}, archivedError(e.ID, e.Workspace)
}

// ending is the outcome of an attempt that has ended.
type ending struct {
	attempt   int
	outcome   session.Outcome
	archived  bool
	workspace string
	id        string
}

// of returns the outcome if it is that of the newest attempt that was ordered.
func (e ending) of(s Spec) session.Outcome {
	if e.attempt == s.Desired.Attempt {
		return e.outcome
	}
	return ""
}

func endingOf(d *state.Dir, folder string) (ending, error) {
	st, err := StatusOf(d, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return ending{}, nil
	}
	if err != nil || session.Phase(st.Phase) != session.Ended {
		return ending{}, err
	}
	return ending{st.Attempt, session.Outcome(st.Outcome), st.ArchivedAt != nil, st.Workspace, st.ID}, nil
}

// settle decides an order against the record under the lock.
func (c *Claimed) settle(s *Spec, order Spec, attempt int, ended ending) error {
	if s.Version == 0 {
		c.New, c.Verdict = true, session.Begin
		*s = order
		s.Version = Version
		s.Desired.Attempt = max(1, attempt)
		return nil
	}
	if fields := s.Payload.Differing(order.Payload); len(fields) > 0 {
		return conflict(s.ID, fields)
	}
	c.New = false
	c.Verdict = session.Decide(s.Desired.Attempt, ended.of(*s), attempt)
	switch c.Verdict {
	case session.Refuse:
		return api.E(api.CodeUnknown, "%s: the outcome of attempt %d is unknown: it may have run", s.ID, s.Desired.Attempt).
			WithNext("pintle retry " + Quote(s.ID))
	case session.Begin:
		again(s, order, attempt)
	}
	return nil
}

// again orders another attempt. The environment is the new caller's: a record holds no values to go by.
func again(s *Spec, order Spec, attempt int) {
	deadline := order.Desired
	s.Desired = Desired{Attempt: attempt, At: deadline.At, Deadline: deadline.Deadline, BootID: deadline.BootID}
	s.Environment, s.Limits, s.Path = order.Environment, order.Limits, order.Path
	if order.Tree != nil {
		s.Tree = order.Tree
	}
}

func conflict(id string, fields []string) error {
	e := api.E(api.CodeConflict, "%s was given before with another %s", id, strings.Join(fields, ", "))
	e.Fields = fields
	return e.WithNext("pintle show " + Quote(id) + ", or choose another --id")
}

// Retry orders one more attempt of an execution that has ended, whatever its outcome.
func Retry(ctx context.Context, d *state.Dir, folder string, bootID string, clock time.Duration, now time.Time) error {
	ended, err := endingOf(d, folder)
	if err != nil {
		return err
	}
	if ended.archived || IsArchived(folder) {
		return archivedError(ended.id, ended.workspace)
	}
	return state.Update(ctx, d, SpecFile(folder), func(s *Spec) error {
		if s.Version == 0 {
			return archivedError(ended.id, ended.workspace) // since we looked
		}
		if ended.of(*s) == "" {
			return api.E(api.CodeBusy, "%s has not ended: its attempt %d goes on", s.ID, s.Desired.Attempt).
				WithNext("pintle wait " + Quote(s.ID))
		}
		next := Desired{Attempt: s.Desired.Attempt + 1, At: now, BootID: bootID}
		if s.Limits.Timeout > 0 {
			next.Deadline = clock + s.Limits.Timeout
		}
		s.Desired = next
		return nil
	})
}

// Cancel records that an execution is to be stopped or interrupted. The first reason of an attempt stands;
// a stop overrides an interrupt. It reports whether anything was recorded: false for a repeat.
func Cancel(ctx context.Context, d *state.Dir, folder string, c api.Cancel) (recorded bool, err error) {
	err = state.Update(ctx, d, SpecFile(folder), func(s *Spec) error {
		if s.Version == 0 {
			return errMoved
		}
		was := s.Desired.Cancel
		if was != nil && was.Attempt == s.Desired.Attempt && (was.Action == c.Action || was.Action == "stop") {
			return nil
		}
		c.Attempt, recorded = s.Desired.Attempt, true
		s.Desired.Cancel = &c
		return nil
	})
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return recorded, err
}

// errMoved is for records that were archived since somebody looked, so what they were about has ended.
var errMoved = errors.New("it was archived meanwhile")

// Quote makes an id one shell word, for commands that messages suggest.
func Quote(id string) string {
	if id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@%+=,") == "" && id[0] != '-' {
		return id
	}
	if strings.HasPrefix(id, "-") {
		return "-- '" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}

// SpecOf reads an order.
func SpecOf(d *state.Dir, folder string) (Spec, error) { return state.Read[Spec](d, SpecFile(folder)) }
