package supervisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// A worktree is made in steps, each of which is on record before it is taken, so that it may be repeated:
//
//	the workspace names its worktree    workspaces/<id>.json
//	its directory and branch are fixed  worktrees/<id>.json: planned
//	it is made                          made
//	its files are copied, it is set up  a chore: an execution of its own (chore.go)
//	work may begin in it                ready
//
// What was planned and not made is made by whoever finds it so. Until it is ready nothing of anybody's work is in it, and
// a create that fails takes it back (X7).

// treeless are why a worktree cannot be had: the run fails, and says so.
type treeless struct {
	code string
	why  error
}

func (t *treeless) Error() string { return t.why.Error() }
func (t *treeless) Unwrap() error { return t.why }

// ordersTree reports whether the run's workspace is a worktree that it ordered.
func (r *run) ordersTree() bool { return r.spec.Tree != nil }

// housed reports whether the run has the worktree that it ordered. A worktree is begun like a process: by who may begin.
func (r *run) housed(ctx context.Context, env environ.Environment) (ready, ended bool, err error) {
	goesOn, err := r.goesOn()
	if err != nil {
		return false, false, err
	}
	if goesOn {
		if mine, err := r.itsTurn(ctx); !mine {
			return false, false, err
		}
	}
	if mine, err := r.admittedAlone(ctx); !mine {
		return false, false, err
	}
	ready, err = r.furnish(ctx, env)
	var none *treeless
	if errors.As(err, &none) {
		ended, err = r.settleUnstarted(session.Ending{}, cause(none.code, none.Error()))
	}
	return ready, ended, err
}

// furnish makes the worktree that the run ordered, and has it set up. Not ready, without an error: something is waited
// for. A *treeless is for good.
func (r *run) furnish(ctx context.Context, env environ.Environment) (ready bool, err error) {
	order := *r.spec.Tree
	w, err := r.s.nameTree(record.Workspace{
		Version: record.Version, ID: r.st.Workspace, Cwd: r.spec.Payload.Cwd, Session: r.st.Session, CreatedAt: time.Now().UTC(),
	}, order)
	if err != nil {
		return false, err
	}
	t, err := r.s.makeTree(ctx, w.Worktree, treePlan{order, w.ID, r.spec.ID, storable(r.spec.Environment)})
	if err != nil {
		return false, err
	}
	if err := r.settleIn(t); err != nil {
		return false, err
	}
	r.taken()
	if t.State != record.TreeMade {
		return true, nil
	}
	if err := supply(ctx, order, t); err != nil {
		return false, err
	}
	crash.At("supervisor.supplied")
	if done, err := r.setUp(ctx, t, env); !done {
		return false, err
	}
	crash.At("supervisor.set_up")
	r.st.WaitingFor = nil // on record with the next step
	return true, r.s.setTree(t.ID, record.TreeReady)
}

// nameTree has a workspace say which worktree is its own, before there is anything of it.
func (s *Supervisor) nameTree(w record.Workspace, order record.TreeOrder) (record.Workspace, error) {
	if err := s.dir.Mkdir("workspaces"); err != nil {
		return w, err
	}
	was, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(w.ID))
	if err == nil && was.Worktree != "" || err != nil && !nowhere(err) {
		return was, err
	}
	w.Repository, w.Worktree = order.Repository, newID("t")
	err = state.Put(s.ctx, s.dir, record.WorkspaceFile(w.ID), w)
	crash.At("supervisor.tree_named")
	return w, err
}

// storable is the part of an environment whose values are on record.
func storable(e record.Environment) record.Environment {
	stored := record.Environment{Values: e.Values, Umask: e.Umask}
	for _, name := range e.Names {
		if _, ok := e.Values[name]; ok {
			stored.Names = append(stored.Names, name)
		}
	}
	return stored
}

// moveIn notes in a workspace where its directory is: in the worktree as the caller's is in his checkout, if that commit
// has such a directory.
func (s *Supervisor) moveIn(workspace string, t record.Worktree, sub string) (cwd string, err error) {
	cwd = filepath.Join(t.Dir, sub)
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		cwd = t.Dir
	}
	return cwd, state.Update(s.ctx, s.dir, record.WorkspaceFile(workspace), func(w *record.Workspace) error {
		w.Worktree, w.Cwd, w.Root, w.Branch, w.Base = t.ID, cwd, t.Dir, t.Branch, t.Commit
		w.Head = cmp.Or(w.Head, t.Commit)
		return nil
	})
}

// settleIn puts where the run is on record: in its workspace, then in its status.
func (r *run) settleIn(t record.Worktree) error {
	if r.st.Worktree == t.Dir {
		return nil
	}
	cwd, err := r.s.moveIn(r.st.Workspace, t, r.spec.Tree.Sub)
	if err != nil {
		return err
	}
	crash.At("supervisor.moved_in")
	r.st.Cwd, r.st.Worktree, r.st.Branch, r.st.Base, r.st.Head = cwd, t.Dir, t.Branch, t.Commit, t.Commit
	return r.save(session.Workspace)
}

// supply copies what the repository's recipe names from the checkout of the caller. Killed in between, it is done again:
// what is there is not overwritten.
func supply(ctx context.Context, order record.TreeOrder, t record.Worktree) error {
	if order.Source == "" || len(t.Recipe.Copy) == 0 {
		return nil
	}
	if _, err := worktree.Copy(ctx, order.Source, t.Dir, t.Recipe.Copy); err != nil {
		return &treeless{"setup_failed", fmt.Errorf("copy into the worktree: %w", err)}
	}
	return nil
}

// treePlan is all that a worktree is made from.
type treePlan struct {
	record.TreeOrder
	workspace   string
	name        string // of what it is made for
	environment record.Environment
}

// makeTree makes the worktree that the record id is of, whoever began it, and has the workspace among those that refer to it.
func (s *Supervisor) makeTree(ctx context.Context, id string, p treePlan) (record.Worktree, error) {
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(id))
	switch {
	case err == nil && (t.State == record.TreeMade || t.State == record.TreeReady):
		return t, nil
	case err == nil && t.State != record.TreePlanned:
		return t, &treeless{"archived", fmt.Errorf("its worktree is %s", t.State)}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	s.forks.RLock()
	defer s.forks.RUnlock()
	ctx = worktree.Umask(ctx, p.Umask)
	hold, err := worktree.Lock(ctx, p.Repository)
	if err != nil {
		return t, untreed(err)
	}
	defer hold.Release()
	if t.State == "" {
		if other, err := s.share(p); other.ID != "" || err != nil {
			return other, err
		}
	}
	for taken := false; ; taken = true {
		if t.State == "" {
			if t, err = s.plan(ctx, hold, id, p, taken); err != nil {
				return t, err
			}
			crash.At("supervisor.tree_planned")
		}
		tree := t.Tree(s.dir.HomeID())
		err := hold.Add(ctx, tree)
		switch {
		case errors.Is(err, worktree.ErrTaken): // another name, and what of this one was reserved is free again
			if err := hold.Undo(ctx, tree); err != nil {
				return t, untreed(err)
			}
			t.State = ""
			continue
		case err != nil:
			return t, untreed(err)
		}
		crash.At("supervisor.tree_made")
		if t.State = record.TreeMade; len(t.Recipe.Setup)+len(t.Recipe.Copy) == 0 {
			t.State = record.TreeReady // there is nothing between the two
		}
		return t, state.Put(s.ctx, s.dir, record.WorktreeFile(id), t)
	}
}

// share is what --worktree-reuse says of a worktree of ours that is on the branch already: to be in that one, or to fail.
func (s *Supervisor) share(p treePlan) (record.Worktree, error) {
	if p.Reuse == "" || p.Branch == "" {
		return record.Worktree{}, nil
	}
	for _, t := range Worktrees(s.dir) {
		if t.Repository != p.Repository || t.Branch != p.Branch || t.State != record.TreeReady && t.State != record.TreeMade {
			continue
		}
		if p.Reuse == "fail" {
			return t, &treeless{"worktree_exists", fmt.Errorf("%s has a worktree: %s", p.Branch, t.Dir)}
		}
		err := s.refer(t.ID, p.workspace)
		crash.At("supervisor.shared")
		return t, err
	}
	return record.Worktree{}, nil
}

// Worktrees reads the records of worktrees, the unreadable left out: doctor names those.
func Worktrees(d *state.Dir) (all []record.Worktree) {
	for _, id := range record.IDs(d, "worktrees") {
		if t, err := state.Read[record.Worktree](d, record.WorktreeFile(id)); err == nil {
			all = append(all, t)
		}
	}
	return all
}

// treeRoot is the directory of all worktrees of a repository: its name, for people, and a hash of its path.
func (s *Supervisor) treeRoot(repository string) string {
	name := filepath.Base(repository)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(repository))
	}
	sum := sha256.Sum256([]byte(repository))
	return s.dir.Path("worktrees", worktree.Slug(strings.TrimSuffix(name, ".git"))+"-"+hex.EncodeToString(sum[:4]))
}

// untreed is git's refusal, which does not pass by itself. Killed, or out of space, it is tried again.
func untreed(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, state.ErrFull) || errors.Is(state.Full(err), state.ErrFull) {
		return err
	}
	return &treeless{"worktree_failed", err}
}

// plan fixes the names of a worktree and records them. Its directory is reserved by the making; until then no other plan
// of this state directory has that name, since all are made under the repository's lock.
func (s *Supervisor) plan(ctx context.Context, hold *worktree.Hold, id string, p treePlan, taken bool) (record.Worktree, error) {
	if err := s.dir.Mkdir("worktrees"); err != nil {
		return record.Worktree{}, err
	}
	root, err := worktree.Root(s.treeRoot(p.Repository))
	if err != nil {
		return record.Worktree{}, state.Full(err)
	}
	t := record.Worktree{
		Version: record.Version, ID: id, State: record.TreePlanned, Root: root, Repository: p.Repository,
		Branch: p.Branch, Own: p.Own, Commit: p.Commit, CreatedAt: time.Now().UTC(), Workspaces: []string{p.workspace},
		Recipe: p.Recipe, Environment: p.environment, Umask: p.Umask,
	}
	if p.Own {
		t.Branch = cmp.Or(p.Branch, "pintle/"+worktree.Slug(p.name))
	}
	if p.Own && taken { // mostly it is free: git is asked once it has refused
		if t.Branch, err = hold.Free(ctx, t.Branch); err != nil {
			return t, untreed(err)
		}
	}
	dir, err := freeDir(t.Root, worktree.Slug(cmp.Or(p.Branch, p.name)))
	if err != nil {
		return t, err
	}
	t.Dir = dir
	return t, state.Put(s.ctx, s.dir, record.WorktreeFile(id), t)
}

// freeDir is the first of slug, slug-2, … at which nothing lies in root.
func freeDir(root, slug string) (string, error) {
	for n := 1; ; n++ {
		dir := filepath.Join(root, slug)
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", dir, n)
		}
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return dir, nil
		} else if err != nil {
			return "", err
		}
	}
}

// setTree moves a worktree's record on.
func (s *Supervisor) setTree(id, to string) error {
	return state.Update(s.ctx, s.dir, record.WorktreeFile(id), func(t *record.Worktree) error {
		if t.Version == 0 {
			return fmt.Errorf("worktree %s: %w", id, fs.ErrNotExist)
		}
		if t.State = to; to == record.TreeGone {
			t.Workspaces = nil // of a create that failed: nobody refers to what is not there
		}
		return nil
	})
}

// refer has a workspace refer to the worktree in which its directory is, if that is one of ours: it stays as long as one
// of them does (X18). One that is about to go is not referred to any more.
func (s *Supervisor) refer(id, workspace string) error {
	return state.Update(s.ctx, s.dir, record.WorktreeFile(id), func(t *record.Worktree) error {
		if t.State != record.TreeReady && t.State != record.TreeMade {
			return &treeless{"archived", fmt.Errorf("the worktree %s is being archived", t.Dir)}
		}
		if !slices.Contains(t.Workspaces, workspace) {
			t.Workspaces = append(t.Workspaces, workspace)
		}
		if t.As == workspace {
			t.As = "" // it is archived no more
		}
		return nil
	})
}

// unfenced is a context for what must be done although the supervisor leaves: to undo takes git some milliseconds.
func (s *Supervisor) unfenced() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.ctx), time.Minute)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
