package record

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

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
// new orders only go there.
//
// Errors: *api.Error with CodeConflict naming the fields that differ, CodeUnknown when only retry may go on;
// what fresh returns; those of package state.
func Claim(ctx context.Context, d *state.Dir, order Spec, attempt int, fresh func() error) (Claimed, error) {
	c := Claimed{Folder: session.Folder(order.Controller, order.ID)}
	ended, err := c.before(d, order, attempt, fresh)
	if err != nil {
		return c, err
	}
	if err := d.Mkdir("executions", c.Folder); err != nil {
		return c, err
	}
	err = state.Update(ctx, d, SpecFile(c.Folder), func(s *Spec) error {
		if err := c.settle(s, order, attempt, ended); err != nil {
			return err
		}
		c.Spec = *s
		return nil
	})
	return c, err
}

// ending is the outcome of an attempt that has ended.
type ending struct {
	attempt int
	outcome session.Outcome
}

// of returns the outcome if it is that of the newest attempt that was ordered.
func (e ending) of(s Spec) session.Outcome {
	if e.attempt == s.Desired.Attempt {
		return e.outcome
	}
	return ""
}

// before looks at the records without a lock. What it finds can be outrun, but only by another claim,
// which settle sees in the spec under the lock.
func (c *Claimed) before(d *state.Dir, order Spec, attempt int, fresh func() error) (ending, error) {
	spec, err := state.Read[Spec](d, SpecFile(c.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return ending{}, fresh()
	}
	if err != nil {
		return ending{}, err
	}
	ended, err := endingOf(d, c.Folder)
	if err != nil {
		return ended, err
	}
	probe := spec
	if err := c.settle(&probe, order, attempt, ended); err != nil {
		return ended, err
	}
	if c.Verdict == session.Begin {
		return ended, fresh()
	}
	return ended, nil
}

func endingOf(d *state.Dir, folder string) (ending, error) {
	st, err := state.Read[Status](d, StatusFile(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return ending{}, nil
	}
	if err != nil || session.Phase(st.Phase) != session.Ended {
		return ending{}, err
	}
	return ending{st.Attempt, session.Outcome(st.Outcome)}, nil
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
	return state.Update(ctx, d, SpecFile(folder), func(s *Spec) error {
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
		was := s.Desired.Cancel
		if was != nil && was.Attempt == s.Desired.Attempt && (was.Action == c.Action || was.Action == "stop") {
			return nil
		}
		c.Attempt, recorded = s.Desired.Attempt, true
		s.Desired.Cancel = &c
		return nil
	})
	return recorded, err
}

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
