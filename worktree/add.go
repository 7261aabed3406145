package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Add makes a worktree that is on record. It may be repeated: what an Add that was killed left behind is known for
// ours and made anew, and a worktree that is complete is a success at once. ErrTaken asks for another name, ErrElsewhere
// says where the branch is. After any error Undo takes back what was made.
//
// The steps, each of which Undo knows again: the directory is reserved by mkdir (X27); the branch is made, with our
// message in its reflog; git links both and locks the worktree for our reason; the files are checked out; the marker
// is written; the lock is taken off. What has the marker is complete.
func (h *Hold) Add(ctx context.Context, t Tree) error {
	err := h.visit(t, func(root *os.Root, found []admin) error { return h.add(ctx, t, root, found) })
	if err != nil {
		return fmt.Errorf("add the worktree %s: %w", t.Dir, err)
	}
	return nil
}

func (h *Hold) add(ctx context.Context, t Tree, root *os.Root, found []admin) error {
	if done, err := h.resume(t, root, found); done || err != nil {
		return err
	}
	if err := reserve(t, root); err != nil {
		return err
	}
	if err := h.plant(ctx, t); err != nil {
		return err
	}
	for try := 1; ; try++ {
		a, err := h.make(ctx, t, root)
		if err == nil || ctx.Err() != nil || try == attempts || a.half(t) {
			return err
		}
		if err := h.clear(t, root); err != nil {
			return err
		}
	}
}

// resume looks at what there is of a tree: whole, it is done; half-made, or without its directory, it goes.
func (h *Hold) resume(t Tree, root *os.Root, found []admin) (done bool, err error) {
	for _, a := range found {
		switch {
		case !a.ours(t):
			return false, fmt.Errorf("%w: git knows another worktree there", ErrTaken)
		case a.marked && linked(root, t.name(), a):
			return true, unlockOwn(t, a)
		case a.marked && a.tree != t.Dir:
			return false, fmt.Errorf("%w: it was moved to %s", ErrNotOurs, a.tree)
		}
		if ok, err := clearable(t, root, a); err != nil || !ok {
			return false, errors.Join(ErrTaken, err)
		}
	}
	return false, h.bury(t, root, found)
}

// reserve takes the name of the directory. One that is empty may be what an Add before this one reserved.
func reserve(t Tree, root *os.Root) error {
	err := root.Mkdir(t.name(), 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := root.Lstat(t.name()); err != nil || !info.IsDir() {
		return errors.Join(ErrTaken, err)
	}
	if vacant, err := empty(root, t.name()); err != nil || !vacant {
		return errors.Join(ErrTaken, err)
	}
	return nil
}

// plant makes the branch, or looks whether the one that is there can be had.
func (h *Hold) plant(ctx context.Context, t Tree) error {
	if t.Branch == "" {
		return nil
	}
	if t.Own {
		return h.makeBranch(ctx, t)
	}
	b, err := h.lookUp(ctx, t.Branch)
	switch {
	case err != nil:
		return err
	case b.commit == "":
		return fmt.Errorf("there is no branch %s", t.Branch)
	case b.worktree != "":
		return fmt.Errorf("branch %s: %w: in %s", t.Branch, ErrElsewhere, b.worktree)
	case b.commit != t.Commit:
		return fmt.Errorf("branch %s moved from %s to %s", t.Branch, t.Commit, b.commit)
	}
	return nil
}
