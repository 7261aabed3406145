package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// Expirable returns the archived executions, chores among them, whose results are still there although they were archived
// before that time.
func Expirable(d *state.Dir, before time.Time) (rows []Listed, err error) {
	for _, folder := range archivedFolders(d) {
		st, readErr := state.Read[Status](d, StatusFile(folder))
		switch {
		case errors.Is(readErr, fs.ErrNotExist): // a tombstone
		case readErr != nil:
			err = errors.Join(err, readErr)
		case st.ArchivedAt != nil && st.ArchivedAt.Before(before):
			rows = append(rows, Listed{Folder: folder, Execution: st.Execution})
		}
	}
	return rows, err
}

// ExpireSession removes the records of a session that was archived by then, journal and all, by way of a dot-name. All its
// executions were archived with it.
func ExpireSession(d *state.Dir, id string, by time.Time) error {
	s, err := state.Read[Session](d, SessionFile(id))
	if err != nil || s.ArchivedAt == nil && s.Provider != "" && !chore(d, s) || s.ArchivedAt != nil && s.ArchivedAt.After(by) {
		return ignoreAbsent(err)
	}
	dead := d.Path("sessions", "."+id)
	if err := os.Rename(d.Path("sessions", id), dead); err != nil {
		return fmt.Errorf("expire session %s: %w", id, err)
	}
	crash.At("record.expired_session") // gc finds what has a dot-name
	return os.RemoveAll(dead)
}

// chore reports whether a session is that of a chore, which nobody archives: it is put away with its execution.
func chore(d *state.Dir, s Session) bool {
	spec, err := SpecOf(d, inArchive(s.Execution))
	return err == nil && spec.Chore != nil
}

// Expiring notes that what was kept of a worktree at one time is about to go: it is brought back without from now on.
func Expiring(ctx context.Context, d *state.Dir, id string, k worktree.Kept) error {
	return state.Update(ctx, d, WorktreeFile(id), func(rec *Worktree) error {
		if rec.Version == 0 {
			return fmt.Errorf("worktree %s: %w", id, fs.ErrNotExist)
		}
		rec.Expired = rec.Expired || rec.Kept != nil && sameKept(*rec.Kept, k)
		return nil
	})
}

// sameKept reports whether two things that were kept lie in the same places.
func sameKept(a, b worktree.Kept) bool {
	return a.Ref == b.Ref && a.Salvaged == b.Salvaged && a.Tar == b.Tar
}

// Forget notes that nothing of what was kept of a worktree at one time is there any more, and removes the files that were kept
// beside the repository.
func Forget(ctx context.Context, d *state.Dir, id string, k worktree.Kept) error {
	if k.Tar != "" {
		if err := ignoreAbsent(os.Remove(k.Tar)); err != nil {
			return err
		}
		crash.At("record.forgotten")
	}
	return state.Update(ctx, d, WorktreeFile(id), func(rec *Worktree) error {
		if rec.Version == 0 {
			return fmt.Errorf("worktree %s: %w", id, fs.ErrNotExist)
		}
		rec.Past = slices.DeleteFunc(rec.Past, func(p PastKept) bool { return sameKept(p.Kept, k) })
		if rec.Kept != nil && sameKept(*rec.Kept, k) {
			rec.Kept = &worktree.Kept{Head: k.Head, Branch: k.Branch}
			rec.Expired = true
		}
		return nil
	})
}
