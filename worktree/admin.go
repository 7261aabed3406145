package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// admin is what a repository knows about one of its linked worktrees: a directory in worktrees/ of the common git
// directory.
type admin struct {
	path   string
	tree   string // the working tree that it says it is of; "" while git has not written that yet
	reason string // of its lock
	locked bool
	marker marker
	marked bool
}

// making is the reason by which git locks a worktree for us while it is made. git writes it before anything else, so
// that a half-made one is known for ours from the first file on, and `git worktree prune` spares it.
func (t Tree) making() string { return "pintle: " + t.Home + "/" + t.ID + " is being made" }

// of reports whether the directory belongs to the tree: it points there, is marked as its own, or is being made
// for it.
func (a admin) of(t Tree) bool {
	return a.tree == t.Dir || a.ours(t)
}

// ours reports whether pintle made it for the tree, or has begun to.
func (a admin) ours(t Tree) bool {
	return a.marked && a.marker == t.marker() || a.half(t)
}

// half reports whether it was begun for the tree and not finished.
func (a admin) half(t Tree) bool {
	return !a.marked && a.locked && a.reason == t.making()
}

// held reports whether somebody else than us has locked it.
func (a admin) held(t Tree) bool { return a.locked && a.reason != t.making() }

// find returns the administrative directories that have to do with a tree: none before it is made, and one
// afterwards. There may be more only where a git was killed in its first steps and another was begun.
func (h *Hold) find(t Tree) (found []admin, err error) {
	parent := filepath.Join(h.repository, "worktrees")
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if a := readAdmin(filepath.Join(parent, entry.Name())); a.of(t) {
			found = append(found, a)
		}
	}
	return found, err
}

// readAdmin reads what is there. What cannot be read counts as not there, which makes it not ours.
func readAdmin(path string) admin {
	a := admin{path: path}
	if text, err := os.ReadFile(filepath.Join(path, "gitdir")); err == nil {
		a.tree = filepath.Dir(under(path, strings.TrimSpace(string(text))))
	}
	if text, err := os.ReadFile(filepath.Join(path, "locked")); err == nil {
		a.reason, a.locked = strings.TrimSpace(string(text)), true
	}
	if m, err := readMarker(path); err == nil {
		a.marker, a.marked = m, true
	}
	return a
}

// under makes a path absolute that may be relative to dir, as newer versions of git write it.
func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
