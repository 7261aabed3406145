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
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// A worktree goes when the last workspace that refers to it is archived. Which do is in its record, and one change of that
// record, under its lock, takes the last one out and marks it as leaving: from then on nobody refers to it any more (X20).
//
//	nobody refers to it       worktrees/<id>.json: leaving
//	it is cleaned up          a chore
//	its work is kept          the ref in the repository, then its name and hash in the record
//	its directory goes        by way of a dot-name
//	                          gone
//
// What stands in the way (a process in it, git's own lock) leaves it at leaving, and an errand for later.

// vacate has a workspace leave its directory, and reports what became of that. An error is one that may pass; what is in
// the way is told in the report.
func (s *Supervisor) vacate(ctx context.Context, w record.Workspace) (api.Report, error) {
	report := api.Report{Workspace: w.ID}
	if w.Worktree == "" {
		return report, nil // a directory of the user's is never deleted (X17)
	}
	if half, err := s.dropHalf(w, &report); half || err != nil {
		return report, err
	}
	leave, err := s.alone(ctx, w.Worktree)
	if err != nil {
		return report, err
	}
	defer leave()
	t, err := s.unrefer(w)
	if nowhere(err) {
		return report, nil
	}
	if err != nil {
		return report, err
	}
	report.Worktree, report.SharedWith = t.Dir, t.Workspaces
	if len(t.Workspaces) > 0 {
		return report, nil
	}
	crash.At("supervisor.unreferred")
	return s.remove(ctx, t, w, report)
}

// alone waits until nobody else removes a worktree or brings it back: each workspace has its own errand, and several of them
// refer to one worktree. What is seen of its record is true until leave is called.
func (s *Supervisor) alone(ctx context.Context, tree string) (leave func(), err error) {
	s.mu.Lock()
	if s.trees == nil {
		s.trees = map[string]chan struct{}{}
	}
	if s.trees[tree] == nil {
		s.trees[tree] = make(chan struct{}, 1)
	}
	place := s.trees[tree]
	s.mu.Unlock()
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dropHalf takes a worktree back that was not made whole, so that nobody worked in it.
func (s *Supervisor) dropHalf(w record.Workspace, report *api.Report) (half bool, err error) {
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(w.Worktree))
	if err != nil || t.State != record.TreePlanned {
		return false, ignoreAbsent(err)
	}
	report.Worktree = t.Dir
	if report.Removed, err = s.undoTree(w, true); err == nil && !report.Removed {
		report.Pending = s.stuck(w, fmt.Errorf("%s is half made, and not as pintle made it", t.Dir))
	}
	return true, err
}

// unrefer takes a workspace out of those that refer to its worktree.
func (s *Supervisor) unrefer(w record.Workspace) (t record.Worktree, err error) {
	err = state.Update(s.ctx, s.dir, record.WorktreeFile(w.Worktree), func(rec *record.Worktree) error {
		if rec.Version == 0 {
			return errGone
		}
		rec.Workspaces = slices.DeleteFunc(rec.Workspaces, func(id string) bool { return id == w.ID })
		if rec.State != record.TreeGone && rec.State != record.TreeComing {
			rec.As = cmp.Or(rec.As, w.ID) // the first that is archived
		}
		if len(rec.Workspaces) == 0 && rec.State != record.TreeGone && rec.State != record.TreeComing {
			rec.State = record.TreeLeaving
		}
		t = *rec
		return nil
	})
	return t, err
}

// remove removes the directory of a worktree that nobody refers to, once all of it is kept.
func (s *Supervisor) remove(ctx context.Context, t record.Worktree, w record.Workspace, report api.Report) (_ api.Report, err error) {
	switch t.State {
	case record.TreeComing: // a restore that was not finished
		if err := s.uncome(ctx, t); err != nil {
			return report, err
		}
		fallthrough
	case record.TreeGone:
		report.Removed, report.Kept = true, keptOf(t.Kept)
		return report, nil
	}
	replaced := s.replaced(t)
	if replaced { // or it is half removed: then that is finished
		err = s.dropNow(ctx, t)
	}
	if replaced && errors.Is(err, worktree.ErrNotOurs) {
		report.Next = "look at " + t.Dir + ": it is not the worktree that pintle made, so it stays as it is"
		return report, s.setTree(t.ID, record.TreeGone)
	}
	if !replaced {
		if report.Cleanup, err = s.cleanUp(ctx, t, w); err != nil {
			return report, err
		}
		t, err = s.keepAndDrop(ctx, t, w)
	}
	if now, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(t.ID)); err == nil {
		t.Kept = now.Kept // also what was salvaged
	}
	report.Kept = keptOf(t.Kept)
	switch {
	case err == nil:
		report.Removed = true
		return report, nil
	case ctx.Err() != nil || errors.Is(err, state.ErrFull):
		return report, err
	}
	report.Pending = s.stuck(w, err)
	return report, nil
}

// uncome takes back what there is of a directory that was to be restored. What it is restored from stays.
func (s *Supervisor) uncome(ctx context.Context, t record.Worktree) error {
	s.forks.RLock()
	defer s.forks.RUnlock()
	ctx = worktree.Umask(ctx, t.Umask)
	hold, err := worktree.Lock(ctx, t.Repository)
	if err != nil {
		return err
	}
	defer hold.Release()
	tree := t.Tree(s.dir.HomeID())
	tree.Own = false // the branch was there before
	if err := hold.Undo(ctx, tree); err != nil {
		return err
	}
	return s.setTree(t.ID, record.TreeGone)
}

// dropNow removes the directory, of which nothing is to be kept any more.
func (s *Supervisor) dropNow(ctx context.Context, t record.Worktree) error {
	s.forks.RLock()
	defer s.forks.RUnlock()
	return s.drop(ctx, t)
}

// keepAndDrop removes the directory once its work is kept, if nobody works in it.
func (s *Supervisor) keepAndDrop(ctx context.Context, t record.Worktree, w record.Workspace) (record.Worktree, error) {
	if err := s.occupied(ctx, t); err != nil {
		return t, err
	}
	s.forks.RLock()
	defer s.forks.RUnlock()
	t, err := s.keepWork(ctx, t, w)
	if err != nil {
		return t, err
	}
	return t, s.drop(ctx, t)
}

// replaced reports whether something else lies where the worktree was: another's, or that of the state directory of which
// this one is a copy (X38). Nothing is done to it (X23).
func (s *Supervisor) replaced(t record.Worktree) bool {
	_, err := os.Lstat(t.Dir)
	return err == nil && !s.whole(t)
}

// stuck is why a directory stays, and which try that was.
func (s *Supervisor) stuck(w record.Workspace, why error) *api.Stuck {
	p := &api.Stuck{Code: api.CodeInternal, Message: why.Error(), Tries: 1, At: time.Now().UTC()}
	switch {
	case errors.Is(why, worktree.ErrLocked):
		p.Code = api.CodeLocked
	case api.CodeOf(why) == api.CodeOccupied:
		p.Code, p.Message = api.CodeOccupied, api.As(why).Message
	}
	if was, is, err := s.errandOf(w.ID); err == nil && is && was.Stuck != nil {
		p.Tries = was.Stuck.Tries + 1
	}
	s.log.Printf("worktree of %s stays for now: %v", w.ID, why)
	return p
}

// cleanUp runs the repository's clean-up commands, once. That they fail is told, and does not keep the directory: its
// work is kept all the same.
func (s *Supervisor) cleanUp(ctx context.Context, t record.Worktree, w record.Workspace) (*api.Cause, error) {
	if len(t.Recipe.Cleanup) == 0 {
		return nil, nil
	}
	c := chore{
		kind: "cleanup", tree: t, owner: w.ID, commands: t.Recipe.Cleanup, timeout: t.Recipe.CleanupTimeout, stored: t.Environment,
	}
	e, err := s.complete(ctx, c)
	if err != nil || e.Outcome == string(session.Completed) {
		return nil, err
	}
	return cause("cleanup_failed", s.complaint("clean-up", e)), nil
}

// gitPoll is the time between two looks at a git that is waited for.
const gitPoll = 10 * time.Millisecond

// occupied reports who works in a directory that is to go (X22). What is ours was ended, but for a git that a killed
// supervisor left: that one ends by itself, and until then nothing of it is touched.
func (s *Supervisor) occupied(ctx context.Context, t record.Worktree) error {
	in, err := proc.WithCwd(t.Dir, func(pid int) bool { return pid == os.Getpid() })
	if err != nil || len(in) == 0 {
		return ignoreAbsent(err) // removed by hand: nobody is in it
	}
	if slices.ContainsFunc(in, func(o proc.Occupant) bool { return worktree.Own(o.Command) }) {
		select {
		case <-time.After(gitPoll):
			return s.occupied(ctx, t)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e := api.E(api.CodeOccupied, "process %d (%s) has its working directory in %s", in[0].PID, in[0].Command, t.Dir)
	return e.WithNext("pintle gc, once it is gone")
}

// keepWork keeps what git would not find again, and records where before anything of the directory goes (X21). If the
// directory is whole although the hash is on record, something was in the way
// since: what was changed meanwhile is kept under the same name, on top.
func (s *Supervisor) keepWork(ctx context.Context, t record.Worktree, w record.Workspace) (record.Worktree, error) {
	if _, err := os.Lstat(t.Dir); errors.Is(err, fs.ErrNotExist) {
		return t, nil // it was removed by hand (case 24), or is on its way already
	}
	name := keptName(t)
	if err := s.dir.Mkdir("kept"); err != nil {
		return t, err
	}
	kept, err := worktree.Snapshot(worktree.Umask(ctx, t.Umask), t.Dir, "refs/pintle/archive/"+name, worktree.SnapshotOptions{
		Keep: t.Recipe.Keep, Tar: s.dir.Path(record.KeptFile(name)), Progress: s.progressOf(w.ID),
	})
	if err != nil {
		return t, err
	}
	crash.At("supervisor.kept")
	t.Kept = &kept
	err = state.Update(s.ctx, s.dir, record.WorktreeFile(t.ID), func(rec *record.Worktree) error {
		rec.Kept, rec.Expired = &kept, false
		return nil
	})
	crash.At("supervisor.kept_recorded")
	return t, err
}

// drop removes the directory.
func (s *Supervisor) drop(ctx context.Context, t record.Worktree) error {
	ctx = worktree.Umask(ctx, t.Umask)
	hold, err := worktree.Lock(ctx, t.Repository)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := s.salvage(ctx, hold, t); err != nil {
		return err
	}
	if err := hold.Remove(ctx, t.Tree(s.dir.HomeID())); err != nil {
		return err
	}
	crash.At("supervisor.tree_removed")
	return s.setTree(t.ID, record.TreeGone)
}

// salvage keeps what git still knows of a directory that was removed by hand (case 24). One that was kept before it went is
// on its way.
func (s *Supervisor) salvage(ctx context.Context, hold *worktree.Hold, t record.Worktree) error {
	if _, err := os.Lstat(t.Dir); err == nil || t.Kept != nil {
		return nil
	}
	kept, err := hold.Salvage(ctx, t.Tree(s.dir.HomeID()), "refs/pintle/archive/"+keptName(t))
	if err != nil || kept.Head == "" {
		return err
	}
	return state.Update(s.ctx, s.dir, record.WorktreeFile(t.ID), func(rec *record.Worktree) error {
		rec.Kept = &kept
		return nil
	})
}

// keptName is under what the work of a worktree is kept: each time under another, since what was kept stays.
func keptName(t record.Worktree) string {
	if t.Kepts > 0 {
		return fmt.Sprintf("%s-%d", t.As, t.Kepts+1)
	}
	return t.As
}

// refuseDirty refuses to archive what git would not find again, if this workspace is the last in its worktree (X22).
func (s *Supervisor) refuseDirty(ctx context.Context, w record.Workspace) error {
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(w.Worktree))
	if w.Worktree == "" || nowhere(err) || err == nil && !slices.Equal(t.Workspaces, []string{w.ID}) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.whole(t) {
		return nil // it is not there, or not made, or half brought back: nobody has worked in it
	}
	s.forks.RLock()
	defer s.forks.RUnlock()
	u, err := worktree.FindUnsaved(ctx, t.Dir)
	if err != nil && !s.whole(t) {
		return nil //nolint:nilerr // it went meanwhile
	}
	if err != nil || u.Empty() {
		return err
	}
	return dirtyError(w, u.Lines())
}

// keptOf is what a report says of what was kept.
func keptOf(k *worktree.Kept) *api.Kept {
	if k == nil || k.Ref+k.Salvaged+k.Tar == "" && k.IgnoredN == 0 {
		return nil
	}
	return &api.Kept{
		Ref: cmp.Or(k.Ref, k.Salvaged), Commit: k.Commit, State: k.State, Changed: k.Changed, Files: k.Files, Ignored: k.Ignored, IgnoredCount: k.IgnoredN,
	}
}
