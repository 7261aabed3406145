package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/state"
)

// tenure says whose an agent's process is: a run's, or nobody's while it waits for the next run of its session. It is a
// part of fold.json, so that one write hands a process over together with the order that it is given. Where sessions share
// a process, each has a fold file of its own, and its tenure says whose the session's part is.
type tenure struct {
	Folder  string     `json:"folder"` // of the run that has it, or had it last
	Attempt int        `json:"attempt"`
	Runs    int        `json:"runs"`              // that it has served, this one too
	Since   time.Time  `json:"since"`             // its start
	Idle    *time.Time `json:"idle,omitempty"`    // nobody has it, and then it is closed
	Closing string     `json:"closing,omitempty"` // why it is being closed: an exit that was asked for
	Secrets []string   `json:"secrets,omitempty"` // names of what must not be told of its environment
	Fence   int64      `json:"fence,omitempty"`   // of the session, where the process is shared
	Joined  bool       `json:"joined,omitempty"`  // the session came into a process that others had
}

// joined reports whether the process was there before the session.
func (t *tenure) joined() bool { return t != nil && t.Joined }

var (
	// errUnsure says that nobody can tell whose a process is: it may be a run's, or kept.
	errUnsure = errors.New("whose the process is cannot be read")
	// errApart says that a session has no part in a process that others share: nothing of it is the session's to drop.
	errApart = errors.New("the session has no part in the process")
)

func foldFile(runtime string) string { return "runtimes/" + runtime + "/fold.json" }

// partFile is the fold file of one of the sessions that share a runtime.
func partFile(runtime, session string) string {
	return "runtimes/" + runtime + "/fold-" + session + ".json"
}

// isShared reports whether sessions may share a runtime: as its record says, or, where that cannot be read, what lies
// beside it.
func (s *Supervisor) isShared(runtime string) bool {
	rec, err := state.Read[record.Runtime](s.dir, record.RuntimeFile(runtime))
	return rec.Shared || err != nil && len(s.parts(runtime)) > 0
}

// parts are the sessions that have a fold file in a shared runtime.
func (s *Supervisor) parts(runtime string) (sessions []string) {
	found, _ := filepath.Glob(s.dir.Path(partFile(runtime, "*")))
	for _, path := range found {
		session := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".json"), "fold-")
		sessions = append(sessions, session)
	}
	return sessions
}

// tenureOf reads whose a runtime is, or a session's part of one that is shared: by the fold file, and, where that does not
// say, as runtime.json says for whom it was made. fs.ErrNotExist: there is none. errUnsure, errApart.
func (s *Supervisor) tenureOf(runtime, session string) (tenure, error) {
	shared, path := s.isShared(runtime), foldFile(runtime)
	if shared {
		path = partFile(runtime, session)
	}
	f, err := state.Read[folded](s.dir, path)
	switch {
	case err == nil && f.Tenure != nil:
		return *f.Tenure, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return tenure{}, fmt.Errorf("%w: %w", errUnsure, err)
	}
	rec, err := state.Read[record.Runtime](s.dir, record.RuntimeFile(runtime))
	if shared && (rec.Session != session || s.started(runtime)) {
		return tenure{}, errApart
	}
	return tenure{Folder: rec.Folder, Attempt: rec.Attempt, Runs: 1, Since: rec.CreatedAt}, err
}

// started reports whether something was started under a runtime. In a shared one its maker has his fold file before that,
// so if there is none afterwards he has left.
func (s *Supervisor) started(runtime string) bool {
	a, err := state.Read[shim.Agent](s.dir, shim.AgentFile(runtime))
	return err == nil && a.State != shim.Abandoned || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// tenures are whose a runtime is: one's, or of each session that has a part in a shared one. An error means that there may
// be more.
func (s *Supervisor) tenures(rec record.Runtime) (map[string]tenure, error) {
	sessions := []string{rec.Session}
	if s.isShared(rec.ID) {
		for _, session := range s.parts(rec.ID) {
			if session != rec.Session {
				sessions = append(sessions, session)
			}
		}
	}
	all, errs := map[string]tenure{}, []error{}
	for _, session := range sessions {
		t, err := s.tenureOf(rec.ID, session)
		switch {
		case err == nil:
			all[session] = t
		case !errors.Is(err, errApart):
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// runtimesOf are the runtimes that serve a session.
func (s *Supervisor) runtimesOf(session string) (all []record.Runtime) {
	for _, rec := range s.runtimes() {
		if slices.Contains(s.sessionsOf(rec), session) {
			all = append(all, rec)
		}
	}
	return all
}

// sessionsOf are the sessions that a runtime serves; who made it, if that is all that is known.
func (s *Supervisor) sessionsOf(rec record.Runtime) []string {
	if !rec.Shared {
		return []string{rec.Session}
	}
	if sessions := s.parts(rec.ID); len(sessions) > 0 || s.started(rec.ID) {
		return append([]string{}, sessions...)
	}
	return []string{rec.Session}
}

// onlyWaits reports whether all who have a part in a runtime wait for their next run.
func (s *Supervisor) onlyWaits(rec record.Runtime) bool {
	all, err := s.tenures(rec)
	for _, t := range all {
		if t.Idle == nil {
			return false
		}
	}
	return err == nil && len(all) > 0
}

// waits reports whether a runtime waits for somebody's next run, or may: nobody can tell.
func (s *Supervisor) waits(id string) bool {
	rec, _ := state.Read[record.Runtime](s.dir, record.RuntimeFile(id))
	rec.ID = id
	all, err := s.tenures(rec)
	idle := false
	for _, t := range all {
		idle = idle || t.Idle != nil
	}
	return idle || errors.Is(err, errUnsure)
}

// anothers reports whether the runtime that the run names is kept, or another run's by now, so that nothing of it is ours to
// drop or to settle.
func (r *run) anothers() bool {
	t, err := r.s.tenureOf(r.st.RuntimeID, r.st.Session)
	if err != nil {
		return errors.Is(err, errUnsure) || errors.Is(err, errApart)
	}
	return t.Idle != nil || t.Folder != r.folder
}

// mine reports whether a runtime is this run's by what is on record. What cannot be read is: whose else it would be,
// nobody could tell.
func (r *run) mine(runtime string) bool {
	t, err := r.s.tenureOf(runtime, r.st.Session)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errApart):
		return false
	case err != nil:
		return true
	}
	return t.Idle == nil && t.Folder == r.folder
}
