package supervisor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// An errand is what is to be done with a workspace: archive it, restore it, remove a directory that could not be removed.
// It is on record in pending/ before anything of it is done, until all of it is; whoever supervises next goes on with it.
// One goroutine a workspace does its errands, so that two of them never meet; who asks for one that is under way waits
// for it (X13).
type errand struct {
	record.Errand
	found  bool          // on record, when this supervisor began
	done   chan struct{} // closed once result and err are there
	result any           // api.Report, api.Restored or api.Workspace
	err    error
	lapsed bool // it was not to be done any more

	progress *api.Progress // of what is kept; guarded by the supervisor's mutex
}

// send has an errand done, or waits for one like it. A different one of the same workspace comes after the one that is
// under way.
func (s *Supervisor) send(ctx context.Context, want record.Errand) (any, error) {
	for {
		if s.isStopping() {
			return nil, api.E(api.CodeStopping, "the supervisor is being stopped")
		}
		e, joined := s.dispatch(want)
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case s.ctx.Err() != nil:
			return nil, api.E(api.CodeStopping, "the supervisor leaves")
		case joined && !e.lapsed:
			return e.result, e.err
		}
	}
}

// dispatch returns the errand that is under way for the workspace, and whether it is the one that is wanted.
func (s *Supervisor) dispatch(want record.Errand) (e *errand, wanted bool) {
	return s.employ(&errand{Errand: want})
}

func (s *Supervisor) employ(want *errand) (e *errand, wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.errands[want.Workspace]; e != nil {
		return e, e.Action == want.Action && e.Refuse == want.Refuse
	}
	e = want
	e.done = make(chan struct{})
	s.errands[want.Workspace] = e
	s.used = time.Now()
	s.work.Go(func() { s.carry(e) })
	return e, true
}

// carry does an errand.
func (s *Supervisor) carry(e *errand) {
	defer func() {
		s.mu.Lock()
		delete(s.errands, e.Workspace)
		s.used = time.Now()
		s.mu.Unlock()
		close(e.done)
	}()
	if e.found {
		was, is, err := s.errandOf(e.Workspace)
		if e.lapsed, e.err = !is || was.Action != e.Action, err; e.lapsed {
			return // somebody finished it since it was found
		}
	}
	switch e.Action {
	case "create":
		e.result, e.err = s.settleDown(s.ctx, e.Errand)
	case "restore":
		e.result, e.err = s.restore(s.ctx, e.Errand)
	default:
		e.result, e.err = s.archive(s.ctx, e.Errand)
	}
	if e.err == nil || s.ctx.Err() != nil || api.CodeOf(e.err) == api.CodeDirty {
		return
	}
	s.log.Printf("%s %s: %v", e.Action, e.Workspace, e.err)
	s.work.Go(func() {
		if s.pause(errandDelay); s.ctx.Err() == nil { // what is on record of it goes on: there may be space again
			s.resumeErrand(e.Workspace)
		}
	})
}

// errandDelay is how long an errand waits that failed in the middle.
const errandDelay = 10 * time.Second

func (s *Supervisor) resumeErrand(workspace string) {
	if e, is, err := s.errandOf(workspace); is && err == nil && e.Stuck == nil {
		s.dispatch(e)
	}
}

// progressOf notes how far the keeping of a workspace's work has come.
func (s *Supervisor) progressOf(workspace string) func(files int, bytes int64) {
	return func(files int, bytes int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e := s.errands[workspace]; e != nil {
			e.progress = &api.Progress{Files: files, Bytes: bytes}
		}
	}
}

// beginErrand puts an errand on record.
func (s *Supervisor) beginErrand(e record.Errand) error {
	if err := s.dir.Mkdir("pending"); err != nil {
		return err
	}
	e.Version = record.Version
	err := state.Put(s.ctx, s.dir, record.ErrandFile(e.Workspace), e)
	crash.At("supervisor.errand")
	return err
}

// endErrand takes it off the record: all of it is done.
func (s *Supervisor) endErrand(workspace string) error {
	crash.At("supervisor.errand_done")
	err := os.Remove(s.dir.Path(record.ErrandFile(workspace)))
	if err != nil {
		return ignoreAbsent(err)
	}
	return state.SyncDir(s.dir.Path("pending"))
}

// Errands reads what is pending, the unreadable left out: doctor names those.
func Errands(d *state.Dir) (all []record.Errand) {
	for _, id := range record.IDs(d, "pending") {
		if e, err := state.Read[record.Errand](d, record.ErrandFile(id)); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// findErrands goes on with what an earlier supervisor had begun, and tries again what could not be removed.
func (s *Supervisor) findErrands() {
	for _, e := range Errands(s.dir) {
		s.employ(&errand{Errand: e, found: true})
	}
}

// errandOf is what is pending with a workspace.
func (s *Supervisor) errandOf(workspace string) (record.Errand, bool, error) {
	e, err := state.Read[record.Errand](s.dir, record.ErrandFile(workspace))
	if err != nil {
		return e, false, ignoreAbsent(err)
	}
	return e, true, nil
}

// nowhere reports whether an error is that there is no such record.
func nowhere(err error) bool { return errors.Is(err, os.ErrNotExist) }
