package supervisor

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// joinSession gives an order its session: the one that it names, or a new one.
func (r *run) joinSession(st *record.Status) error {
	st.Session, st.Workspace = newID("s"), newID("w")
	if r.opens() {
		return r.joinOpened(st)
	}
	if r.spec.Payload.Session == "" {
		return nil
	}
	named := r.spec.Payload.Session
	if !session.Generated(named) {
		return nil // it is none: see misses
	}
	s, err := state.Read[record.Session](r.s.dir, record.SessionFile(named))
	switch {
	case err == nil && s.ArchivedAt != nil:
		return nil // see misses
	case err == nil:
		st.Session, st.Workspace = named, s.Workspace
	case errors.Is(err, fs.ErrNotExist) && r.spec.Desired.Cancel == nil && r.s.opens(named):
		return errEarly
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// errEarly is for an order in a session whose first run has not begun: that makes it.
var errEarly = errors.New("the first run of its session has not begun")

// opens reports whether a run that was taken up and has not ended will make a session.
func (s *Supervisor) opens(id string) bool {
	folders, err := record.Folders(s.dir)
	return err != nil || slices.ContainsFunc(folders, func(folder string) bool {
		st, err := state.Read[record.Status](s.dir, record.StatusFile(folder))
		return err == nil && st.Session == id && st.Phase != string(session.Ended)
	})
}

// misses reports whether the session that the order names is not there: it has one of its own then, in which it ends.
func (r *run) misses() bool {
	return r.spec.Payload.Session != "" && r.st.Session != r.spec.Payload.Session
}

// missing is why it misses it.
func (r *run) missing() *api.Cause {
	named := r.spec.Payload.Session
	if s, err := state.Read[record.Session](r.s.dir, record.SessionFile(named)); err == nil && s.ArchivedAt != nil {
		return cause("archived", "the session "+named+" is archived: pintle workspace restore "+s.Workspace)
	}
	return cause("session_lost", "there is no session "+named)
}

// estrange gives a run that came too late into an archived session one of its own, in which it ends.
func (r *run) estrange() (bool, error) {
	r.st.Session, r.st.Workspace = newID("s"), newID("w")
	return false, r.save(session.Phase(r.st.Phase)) // from now on it misses the one that it names
}
