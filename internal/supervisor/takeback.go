package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// takeBack undoes the worktree of a create that failed, unless somebody's work may be in it (X7). Killed in between, it is
// called again, since the run has not ended on record.
func (r *run) takeBack() error {
	w, err := state.Read[record.Workspace](r.s.dir, record.WorkspaceFile(r.st.Workspace))
	if err != nil && !nowhere(err) {
		return err
	}
	if w.Worktree != "" { // else it was taken back before the kill, or never named
		if gone, err := r.s.undoTree(w, r.st.Attempt == 1); err != nil || !gone {
			return err
		}
	}
	r.st.Cwd, r.st.Worktree, r.st.Branch, r.st.Base, r.st.Head = r.spec.Payload.Cwd, "", "", "", ""
	return r.s.forgetWorkspace(r.st.Workspace)
}

// forgetWorkspace removes the record of a workspace that has no directory: whoever names it is not led to another one.
func (s *Supervisor) forgetWorkspace(id string) error {
	if err := os.Remove(s.dir.Path(record.WorkspaceFile(id))); err != nil {
		return ignoreAbsent(err)
	}
	return state.SyncDir(s.dir.Path("workspaces"))
}

// undoTree takes a worktree back that this workspace made and nobody else refers to. One that was ready has nobody's work in
// it if nothing had begun in it before: what set-up left is kept all the same. Else it stays.
func (s *Supervisor) undoTree(w record.Workspace, unused bool) (gone bool, err error) {
	ctx, done := s.unfenced()
	defer done()
	leave, err := s.alone(ctx, w.Worktree)
	if err != nil {
		return false, err
	}
	defer leave()
	was, err := s.condemn(w, unused)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, s.partAll(w.ID) // it was named and never planned: at most another one is referred to
	case err != nil:
		return false, err
	case was.State == record.TreeReady && !unused:
		return false, nil
	case !slices.Equal(was.Workspaces, []string{w.ID}): // it is others' too
		return true, s.part(was.ID, w.ID)
	}
	s.forks.RLock()
	defer s.forks.RUnlock()
	if was.State == record.TreeReady || was.State == record.TreeLeaving {
		if was, err = s.keepWork(ctx, was, w); err != nil {
			return false, err
		}
	}
	return s.undo(ctx, was)
}

// condemn closes a worktree that is to be taken back, so that nobody comes into it any more, and returns what it was: one in
// which there may be work is leaving, any other is as if it had not been made. Killed behind it, undoTree is called again.
func (s *Supervisor) condemn(w record.Workspace, unused bool) (was record.Worktree, err error) {
	err = state.Update(s.ctx, s.dir, record.WorktreeFile(w.Worktree), func(t *record.Worktree) error {
		if t.Version == 0 {
			return errGone
		}
		was = *t
		switch {
		case !slices.Equal(t.Workspaces, []string{w.ID}) || t.State == record.TreeReady && !unused:
		case t.State == record.TreeReady:
			t.State, t.As = record.TreeLeaving, cmp.Or(t.As, w.ID)
			was.As = t.As
		case t.State == record.TreeMade:
			t.State = record.TreePlanned
		}
		return nil
	})
	crash.At("supervisor.condemned")
	return was, err
}

// undo removes what was made. What is not as it was made is not ours to undo: it is as it was then.
func (s *Supervisor) undo(ctx context.Context, was record.Worktree) (gone bool, err error) {
	ctx = worktree.Umask(ctx, was.Umask)
	hold, err := worktree.Lock(ctx, was.Repository)
	if err != nil {
		return false, err
	}
	defer hold.Release()
	if err := hold.Undo(ctx, was.Tree(s.dir.HomeID())); err != nil {
		s.log.Printf("worktree %s: %v", was.Dir, err)
		if was.State == record.TreeLeaving {
			was.State = record.TreeReady
		}
		return false, s.setTree(was.ID, was.State)
	}
	crash.At("supervisor.tree_undone")
	return true, s.bury(was.ID)
}

// bury notes that a worktree is gone, and nobody's.
func (s *Supervisor) bury(id string) error {
	err := state.Update(s.ctx, s.dir, record.WorktreeFile(id), func(t *record.Worktree) error {
		if t.Version == 0 {
			return fmt.Errorf("worktree %s: %w", id, fs.ErrNotExist)
		}
		t.State, t.Workspaces = record.TreeGone, nil
		return nil
	})
	crash.At("supervisor.tree_buried")
	return err
}

// part takes a workspace out of those that refer to a worktree which others refer to as well.
func (s *Supervisor) part(id, workspace string) error {
	return state.Update(s.ctx, s.dir, record.WorktreeFile(id), func(t *record.Worktree) error {
		t.Workspaces = slices.DeleteFunc(t.Workspaces, func(w string) bool { return w == workspace })
		return nil
	})
}

// partAll takes a workspace out of all worktrees that it refers to without saying so: we were killed in between. If it was
// the last one in a worktree whose others are archived, that goes now.
func (s *Supervisor) partAll(workspace string) error {
	for _, t := range Worktrees(s.dir) {
		if slices.Contains(t.Workspaces, workspace) {
			if err := s.partLast(t, workspace); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Supervisor) partLast(t record.Worktree, workspace string) error {
	switch {
	case len(t.Workspaces) > 1:
		return s.part(t.ID, workspace)
	case t.As == "": // whoever made it has left it without an archive
		_, err := s.undoTree(record.Workspace{ID: workspace, Worktree: t.ID}, true)
		return err
	}
	// On record before, so that it is found: until the reference is gone it only finds that there is one.
	e := record.Errand{Workspace: t.As, Action: "remove", At: time.Now().UTC()}
	if err := s.beginErrand(e); err != nil {
		return err
	}
	if err := s.part(t.ID, workspace); err != nil {
		return err
	}
	s.dispatch(e)
	return nil
}

// dislodge has a workspace that was never put on record refer to no worktree any more: we were killed in between, and its run
// ends without having begun.
func (s *Supervisor) dislodge(workspace string) error {
	_, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(workspace))
	if !nowhere(err) {
		return err
	}
	return s.partAll(workspace)
}
