package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lock is Lock where it must succeed. The test releases it at its end, if not before.
func lock(t *testing.T, repository string) *Hold {
	t.Helper()
	h, err := Lock(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return h
}

// plan is a tree of the repository in a new managed directory, on a branch of its own.
func (r tree) plan(name string) Tree {
	r.t.Helper()
	root, err := Root(filepath.Join(r.t.TempDir(), "worktrees", "r-1234"))
	if err != nil {
		r.t.Fatal(err)
	}
	return Tree{
		ID: "w-" + name, Home: "home1", Root: root, Dir: filepath.Join(root, name), Repository: probe(r.t, r.dir).CommonDir,
		Branch: "pintle/" + name, Own: true, Commit: r.git("rev-parse", "HEAD"),
	}
}

// under runs an effect under a lock of its own.
func (p Tree) under(t *testing.T, effect func(*Hold) error) error {
	t.Helper()
	h := lock(t, p.Repository)
	defer h.Release()
	return effect(h)
}

func (p Tree) add(t *testing.T) error {
	t.Helper()
	return p.under(t, func(h *Hold) error { return h.Add(t.Context(), p) })
}

func (p Tree) undo(t *testing.T) error {
	t.Helper()
	return p.under(t, func(h *Hold) error { return h.Undo(t.Context(), p) })
}

func (p Tree) remove(t *testing.T) error {
	t.Helper()
	return p.under(t, func(h *Hold) error { return h.Remove(t.Context(), p) })
}

// must fails the test if an effect did.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails the test unless the error is the one that is wanted.
func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
}

// whole asserts that git and the marker say that the tree is as planned, once.
func (p Tree) whole(t *testing.T) {
	t.Helper()
	repo := probe(t, p.Dir)
	if repo.TopLevel != p.Dir || repo.Branch != p.Branch || repo.Head != p.Commit || repo.CommonDir != p.Repository {
		t.Errorf("repository %+v, want %+v", repo, p)
	}
	if home, id, err := Owner(p.Dir); err != nil || home != p.Home || id != p.ID {
		t.Errorf("owner %q %q, error %v", home, id, err)
	}
	r := tree{t, p.Dir}
	if status := r.git("status", "--porcelain", "--ignored"); status != "" {
		t.Errorf("status:\n%s", status)
	}
	if list := r.git("worktree", "list", "--porcelain"); strings.Count(list, "worktree "+p.Root) != 1 || strings.Contains(list, "\nlocked") {
		t.Errorf("worktrees:\n%s", list)
	}
}

// gone asserts that nothing is left of the tree but its branch, if that is to be left.
func (p Tree) gone(t *testing.T, branch bool) {
	t.Helper()
	if names, _ := os.ReadDir(p.Root); len(names) > 0 {
		t.Errorf("left in the managed directory: %v", names)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Repository, "worktrees", "*")); len(left) > 0 {
		t.Errorf("left in the repository: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Repository, "pintle-removed*")); len(left) > 0 {
		t.Errorf("left in the repository: %v", left)
	}
	if there, err := Exists(t.Context(), p.Repository, p.Branch); err != nil || there != branch {
		t.Errorf("branch is there: %v, error %v", there, err)
	}
}
