package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// attempts is how often a worktree is begun that a `git worktree prune` of the user's, or one that his gc runs, takes
// away again: git makes the administrative directory before the lock in it, and a prune that comes between deletes
// it, or what it finds of it. Such a one is known by the lock, which is not there.
const attempts = 8

// make makes the worktree in the reserved directory. What git knows of it is returned with an error, too.
func (h *Hold) make(ctx context.Context, t Tree, root *os.Root) (admin, error) {
	if err := h.link(ctx, t); err != nil {
		return admin{}, err
	}
	path, err := dotGit(root, t.name())
	if err != nil || path == "" {
		return admin{}, fmt.Errorf("git made no worktree: %w", errors.Join(err, fs.ErrNotExist))
	}
	// git would start the same command for itself. Started from here it dies with the context.
	_, err = h.run(ctx, t.Dir, nil, []string{"reset", "--quiet", "--hard", "--no-recurse-submodules"})
	if err == nil {
		err = complete(ctx, t, path)
	}
	return readAdmin(path), err
}

// clear makes room for another try. What the prune left has no lock to be known by, but whose it is is known here:
// it was made a moment ago.
func (h *Hold) clear(t Tree, root *os.Root) error {
	known := filepath.Join(h.repository, "worktrees")
	if path, err := dotGit(root, t.name()); err == nil && filepath.Dir(path) == known {
		if err := absent(condemn(t, path)); err != nil {
			return err
		}
	}
	found, err := h.find(t)
	if err != nil {
		return err
	}
	if err := h.bury(t, root, found); err != nil {
		return err
	}
	if err := inter(t, root); err != nil {
		return err
	}
	if err := erase(root, t.grave()); err != nil {
		return err
	}
	return reserve(t, root)
}

// condemn locks an administrative directory as one that is being made.
func condemn(t Tree, path string) error {
	file, err := os.OpenFile(filepath.Join(path, "locked"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(t.making())
	return err
}

// link has git make the worktree without its files. git wants the short name of the branch: of any other it would
// check out the commit alone.
func (h *Hold) link(ctx context.Context, t Tree) error {
	args := []string{"worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", t.making()}
	if t.Branch == "" {
		args = append(args, "--detach", t.Dir, t.Commit)
	} else {
		args = append(args, t.Dir, t.Branch)
	}
	_, err := h.git(ctx, args...)
	return err
}

// complete verifies what git made and marks it as whole. Git is asked too: a prune that had made up its mind before the lock
// was there may have deleted anything of it.
func complete(ctx context.Context, t Tree, path string) error {
	a := readAdmin(path)
	if !a.half(t) || a.tree != t.Dir {
		return fmt.Errorf("git made another worktree than was asked for, in %s", path)
	}
	if err := verify(ctx, t); err != nil {
		return err
	}
	if err := t.marker().write(a.path); err != nil {
		return err
	}
	return unlockOwn(t, a)
}

// verify asks git what it made.
func verify(ctx context.Context, t Tree) error {
	repo, err := Probe(ctx, t.Dir)
	switch {
	case err != nil:
		return err
	case repo.CommonDir != t.Repository || repo.TopLevel != t.Dir:
		return fmt.Errorf("git made another worktree than was asked for, in %s", repo.GitDir)
	case repo.Branch != t.Branch || repo.Head != t.Commit && !t.Own: // what was made before may have moved
		return fmt.Errorf("git checked out %s %s instead of %s %s", repo.Branch, repo.Head, t.Branch, t.Commit)
	}
	return nil
}

// unlockOwn takes off the lock that says that the worktree is being made, and no other.
func unlockOwn(t Tree, a admin) error {
	if !a.locked || a.held(t) {
		return nil
	}
	return absent(os.Remove(filepath.Join(a.path, "locked")))
}
