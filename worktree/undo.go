package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Undo takes back what Add made, at whatever step it was: the directory, what git knows of it, and the branch if it
// was made for the tree and has not moved. What is another's it does not touch, and what is not there it does not
// miss.
func (h *Hold) Undo(ctx context.Context, t Tree) error {
	err := h.visit(t, func(root *os.Root, found []admin) error { return h.undo(t, root, found) })
	if err == nil {
		err = h.dropBranch(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("take back the worktree %s: %w", t.Dir, err)
	}
	return nil
}

func (h *Hold) undo(t Tree, root *os.Root, found []admin) error {
	for _, a := range found {
		if a.ours(t) && a.held(t) {
			return fmt.Errorf("%w: %s", ErrLocked, a.reason)
		}
		if ok, err := clearable(t, root, a); err != nil || !ok && a.ours(t) {
			return errors.Join(ErrNotOurs, err)
		}
	}
	if err := h.bury(t, root, found); err != nil {
		return err
	}
	return unreserve(t, root)
}

// clearable reports whether the directory of a tree may go with an administrative directory: it is not there, points to
// it, or is nobody's. Somebody may have made a repository of his own in it.
func clearable(t Tree, root *os.Root, a admin) (bool, error) {
	there, err := directory(root, t.name())
	if err != nil || !there || linked(root, t.name(), a) {
		return err == nil, err
	}
	return severed(root, t.name())
}

// unreserve takes the name back that mkdir reserved. It is ours as long as it is empty.
func unreserve(t Tree, root *os.Root) error {
	info, err := root.Lstat(t.name())
	if err != nil || !info.IsDir() {
		return absent(err)
	}
	if vacant, err := empty(root, t.name()); err != nil || !vacant {
		return err
	}
	return root.Remove(t.name())
}
