package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// restore brings an archived workspace back, with its session and its executions: the same ids, the same directory if
// nothing is in the way, the same bytes in it (X21). Each step may be repeated, as those of an archive:
//
//	the errand            pending/<workspace>.json
//	the directory         worktrees/<id>.json: coming, then ready, with what it is brought back from
//	who was in it         the executions' folders, then their status
//	where it is           the workspace, no more archived
//	it goes on            session.json
func (s *Supervisor) restore(ctx context.Context, e record.Errand) (api.Restored, error) {
	w, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(e.Workspace))
	if err != nil {
		return api.Restored{}, err
	}
	_, pending, err := s.errandOf(w.ID)
	if err != nil || w.ArchivedAt == nil && !pending {
		return api.Restored{Workspace: WorkspaceOf(w)}, err
	}
	e.Session = w.Session
	if err := s.beginErrand(e); err != nil {
		return api.Restored{}, err
	}
	notes, err := s.comeBack(ctx, &w)
	if err != nil {
		return api.Restored{}, err
	}
	if err := s.revive(e, w); err != nil {
		return api.Restored{}, err
	}
	w.ArchivedAt, w.Report = nil, nil
	if err := state.Put(s.ctx, s.dir, record.WorkspaceFile(w.ID), w); err != nil {
		return api.Restored{}, err
	}
	crash.At("supervisor.restored")
	if err := s.closeSession(e.Session, nil); err != nil {
		return api.Restored{}, err
	}
	return api.Restored{Workspace: WorkspaceOf(w), Notes: notes}, s.endErrand(w.ID)
}

// comeBack has the workspace's directory there again.
func (s *Supervisor) comeBack(ctx context.Context, w *record.Workspace) (notes []string, err error) {
	if w.Worktree == "" {
		return nil, nil
	}
	leave, err := s.alone(ctx, w.Worktree)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(w.Worktree))
	if err != nil {
		return nil, ignoreAbsent(err) // it was named and never planned
	}
	sub, err := filepath.Rel(w.Root, w.Cwd)
	if err != nil {
		sub = "."
	}
	switch t.State {
	case record.TreePlanned:
		return nil, nil // nothing was made
	case record.TreeReady, record.TreeMade:
		err = s.refer(t.ID, w.ID) // another workspace brought it back, or never left it
	default:
		notes, err = s.bringBack(ctx, &t, w.ID)
	}
	if err == nil {
		w.Root, w.Cwd = t.Dir, filepath.Join(t.Dir, sub)
	}
	return notes, err
}

// bringBack makes the directory of a worktree again from what was kept. One that could not be removed is still there.
func (s *Supervisor) bringBack(ctx context.Context, t *record.Worktree, workspace string) (notes []string, err error) {
	s.forks.RLock()
	defer s.forks.RUnlock()
	ctx = worktree.Umask(ctx, t.Umask)
	hold, err := worktree.Lock(ctx, t.Repository)
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	// What was kept may have expired while the lock was waited for: gc has it then.
	if *t, err = state.Read[record.Worktree](s.dir, record.WorktreeFile(t.ID)); err != nil {
		return nil, err
	}
	if t.State == record.TreeLeaving && s.whole(*t) {
		return nil, s.ready(t, workspace)
	}
	if t.State != record.TreeComing {
		if err := s.planReturn(ctx, hold, t); err != nil {
			return nil, err
		}
		crash.At("supervisor.coming")
	}
	if notes, err = hold.Restore(ctx, t.Tree(s.dir.HomeID()), t.Source()); err != nil {
		return notes, fmt.Errorf("restore %s: %w", workspace, err)
	}
	if len(t.Recipe.Setup) > 0 && len(t.Source().Ignored) > 0 {
		notes = append(notes, "what git ignores was not kept, and set-up is not run again: "+listed(t.Source().Ignored))
	}
	if t.Expired {
		notes = append(notes, "what was kept of it was removed by gc: it is as its commit is")
	}
	crash.At("supervisor.brought_back")
	err = s.ready(t, workspace)
	crash.At("supervisor.returned")
	return notes, err
}

// planReturn finishes the removal, if that was under way, and fixes where the directory will be: where it was, unless
// something else is there by now.
func (s *Supervisor) planReturn(ctx context.Context, hold *worktree.Hold, t *record.Worktree) error {
	if t.State == record.TreeLeaving {
		if err := hold.Remove(ctx, t.Tree(s.dir.HomeID())); err != nil {
			return err
		}
	}
	dir, err := freeDir(t.Root, filepath.Base(t.Dir))
	if err != nil {
		return err
	}
	t.Dir, t.State = dir, record.TreeComing
	return state.Put(s.ctx, s.dir, record.WorktreeFile(t.ID), *t)
}

// whole reports whether a leaving worktree's directory is there under its name, so that nothing of it is gone.
func (s *Supervisor) whole(t record.Worktree) bool {
	home, id, err := worktree.Owner(t.Dir)
	return err == nil && home == s.dir.HomeID() && id == t.ID
}

// ready has the worktree in use again, by that workspace.
func (s *Supervisor) ready(t *record.Worktree, workspace string) error {
	t.Kepts++
	t.State, t.As, t.Expired = record.TreeReady, "", false
	if !slices.Contains(t.Workspaces, workspace) {
		t.Workspaces = append(t.Workspaces, workspace)
	}
	if t.Kept != nil {
		t.Branch = cmp.Or(t.Kept.Branch, t.Branch)
		t.Past, t.Kept = append(t.Past, record.PastKept{Kept: *t.Kept, RestoredAt: time.Now().UTC()}), nil
	}
	return state.Put(s.ctx, s.dir, record.WorktreeFile(t.ID), *t)
}

// revive brings the executions of a session back where ps sees them.
func (s *Supervisor) revive(e record.Errand, w record.Workspace) error {
	for _, folder := range s.wereIn(e, w) {
		if err := record.Unarchive(s.ctx, s.dir, folder); err != nil {
			return err
		}
		crash.At("supervisor.revived")
		err := state.Update(s.ctx, s.dir, record.StatusFile(folder), func(st *record.Status) error {
			if st.Version == 0 {
				return errGone // its result has expired
			}
			st.ArchivedAt = nil
			if st.Worktree != "" && w.Root != "" && st.Worktree != w.Root {
				st.Cwd = w.Root + strings.TrimPrefix(st.Cwd, st.Worktree)
				st.Worktree = w.Root
			}
			return nil
		})
		if ignoreAbsent(err) != nil {
			return err
		}
	}
	return nil
}

// wereIn are the executions that were archived with a workspace. Of one that ended before it had a session the report knows.
func (s *Supervisor) wereIn(e record.Errand, w record.Workspace) []string {
	runs := s.runsOf(e)
	if w.Report == nil {
		return runs
	}
	for _, id := range w.Report.Executions {
		folder := record.FolderOf(id)
		st, err := record.StatusOf(s.dir, folder)
		if err == nil && st.Workspace == w.ID && !slices.Contains(runs, folder) {
			runs = append(runs, folder)
		}
	}
	return runs
}

// WorkspaceOf is a workspace as everybody sees it.
func WorkspaceOf(w record.Workspace) api.Workspace {
	v := api.Workspace{
		ID: w.ID, Cwd: w.Cwd, Session: w.Session, Repository: w.Repository, Worktree: w.Root, Branch: w.Branch, Base: w.Base, Head: w.Head,
		ArchivedAt: w.ArchivedAt, Report: w.Report,
	}
	if !w.CreatedAt.IsZero() {
		at := w.CreatedAt
		v.CreatedAt = &at
	}
	return v
}
