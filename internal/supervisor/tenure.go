package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
)

// tenure says whose an agent's process is: a run's, or nobody's while it waits for the next run of its session. It is a
// part of fold.json, so that one write hands a process over together with the order that it is given.
type tenure struct {
	Folder  string     `json:"folder"` // of the run that has it, or had it last
	Attempt int        `json:"attempt"`
	Runs    int        `json:"runs"`              // that it has served, this one too
	Since   time.Time  `json:"since"`             // its start
	Idle    *time.Time `json:"idle,omitempty"`    // nobody has it, and then it is closed
	Secrets []string   `json:"secrets,omitempty"` // names of what must not be told of its environment
}

// errUnsure says that nobody can tell whose a process is: it may be a run's, or kept.
var errUnsure = errors.New("whose the process is cannot be read")

// tenureOf reads whose a runtime is: by fold.json, and, where that does not say, as runtime.json says for whom it was made.
// fs.ErrNotExist: there is none. errUnsure.
func (s *Supervisor) tenureOf(runtime string) (tenure, error) {
	f, err := state.Read[folded](s.dir, foldFile(runtime))
	switch {
	case err == nil && f.Tenure != nil:
		return *f.Tenure, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return tenure{}, fmt.Errorf("%w: %w", errUnsure, err)
	}
	rec, err := state.Read[record.Runtime](s.dir, record.RuntimeFile(runtime))
	return tenure{Folder: rec.Folder, Attempt: rec.Attempt, Runs: 1, Since: rec.CreatedAt}, err
}

// anothers reports whether the runtime that the run names is kept, or another run's by now, so that nothing of it is ours to
// drop or to settle.
func (r *run) anothers() bool {
	t, err := r.s.tenureOf(r.st.RuntimeID)
	if err != nil {
		return errors.Is(err, errUnsure)
	}
	return t.Idle != nil || t.Folder != r.folder
}

// mine reports whether a runtime is this run's by what is on record. What cannot be read is: whose else it would be,
// nobody could tell.
func (r *run) mine(runtime string) bool {
	t, err := r.s.tenureOf(runtime)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		return true
	}
	return t.Idle == nil && t.Folder == r.folder
}
