package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The order of a removal, and what proves at each step that it is ours (X23):
//
//  1. The administrative directory, which has the marker, is renamed out of worktrees/: git knows the worktree no
//     more, in one step, and no prune can take the proof away. Until then the marker is where it always was.
//  2. The working tree is renamed to a dot-name.
//  3. What the dot-name holds is deleted.
//  4. The administrative directory is deleted. Its name says whose it was; it got that name only after the proof.
//
// Whoever is killed in between leaves the administrative directory of step 1, and with it the permission to go on.
// git's own `worktree remove` deletes in place, and a death in the middle leaves half a tree that looks whole.

// buried is the name of the administrative directory of a tree that is being removed, beside worktrees/.
func (t Tree) buried() string {
	return filepath.Join(t.Repository, "pintle-removed-"+t.Home+"-"+t.ID)
}

// grave is the name of a working tree that is being deleted, in the managed directory.
func (t Tree) grave() string { return "." + t.name() + "-" + t.ID }

func (t Tree) name() string { return filepath.Base(t.Dir) }

// Remove deletes a worktree and keeps its branch. It is ErrNotOurs unless the worktree is proven to be the one of the
// record, and ErrLocked if somebody locked it. What was removed already, by hand or by a Remove that was killed, is
// not missed. Repeat it until it succeeds.
func (h *Hold) Remove(ctx context.Context, t Tree) error {
	err := h.visit(t, func(root *os.Root, found []admin) error {
		there, err := directory(root, t.name())
		if err != nil {
			return err
		}
		if err := proven(t, root, there, found); err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		return h.bury(t, root, found)
	})
	if err != nil {
		return fmt.Errorf("remove the worktree %s: %w", t.Dir, err)
	}
	return nil
}

// visit opens the managed directory, finishes a removal that was begun, and calls visit with what there is.
func (h *Hold) visit(t Tree, visit func(*os.Root, []admin) error) error {
	if err := h.check(t); err != nil {
		return err
	}
	if err := os.MkdirAll(t.Root, 0o700); err != nil { // where all of it was removed by hand
		return err
	}
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := finish(t, root); err != nil {
		return err
	}
	found, err := h.find(t)
	if err != nil {
		return err
	}
	return visit(root, found)
}

// check refuses a plan that is not for this repository.
func (h *Hold) check(t Tree) error {
	if t.Repository != h.repository {
		return fmt.Errorf("%w: it is of %s, not of %s", ErrNotOurs, t.Repository, h.repository)
	}
	return t.check()
}

// proven returns nil if all that was found of a tree may go: a directory that is there points to an administrative
// directory that points back and has our marker. A main worktree has none, and a moved one points elsewhere.
func proven(t Tree, root *os.Root, there bool, found []admin) error {
	known := false
	for _, a := range found {
		switch {
		case !a.ours(t):
			continue
		case a.held(t):
			return fmt.Errorf("%w: %s", ErrLocked, a.reason)
		case a.marked && a.tree != t.Dir:
			return fmt.Errorf("%w: it was moved to %s", ErrNotOurs, a.tree)
		}
		known = known || a.marked && linked(root, t.name(), a)
	}
	if there && !known {
		return fmt.Errorf("%w: nothing in it, or not what should be, says that it is", ErrNotOurs)
	}
	return nil
}

// bury removes what was found of a tree, if it is ours.
func (h *Hold) bury(t Tree, root *os.Root, found []admin) error {
	for _, a := range found {
		if !a.ours(t) {
			continue
		}
		if err := os.Rename(a.path, t.buried()); err != nil {
			return err
		}
		if err := finish(t, root); err != nil {
			return err
		}
	}
	// git does the same after the last one. Where there are others it fails, as it should.
	_ = os.Remove(filepath.Join(h.repository, "worktrees"))
	return nil
}

// finish does what is left of a removal after its first step, and nothing where there was none. The directory is not
// touched if something lives in it again.
func finish(t Tree, root *os.Root) error {
	if _, err := os.Lstat(t.buried()); err != nil {
		return absent(err)
	}
	if err := erase(root, t.grave()); err != nil {
		return err
	}
	if err := inter(t, root); err != nil {
		return err
	}
	if err := erase(root, t.grave()); err != nil {
		return err
	}
	// After a power failure, too, the proof must not be gone before what it is for.
	if err := syncDir(t.Root); err != nil {
		return err
	}
	return os.RemoveAll(t.buried())
}

// inter renames a working tree of which the administrative directory is gone to its dot-name.
func inter(t Tree, root *os.Root) error {
	there, err := directory(root, t.name())
	if err != nil || !there {
		return err
	}
	if dead, err := severed(root, t.name()); err != nil || !dead {
		return err
	}
	return root.Rename(t.name(), t.grave())
}

// absent returns nil for an error that says that something is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
