package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// archived is a worktree of pintle's in a repository, with what a snapshot of it needs.
type archived struct {
	tree        // the worktree
	repo   tree // the repository's own
	plan   Tree
	ref    string
	tar    string
	ignore []string // what is not expected to come back
}

// newArchived makes a repository with a commit of some files, and a worktree of it.
func newArchived(t *testing.T) archived {
	t.Helper()
	r := newTree(t, "r")
	for _, name := range []string{"a", "b", "c", "dir/d", "dir/e", "exec"} {
		r.write(name, strings.Repeat(name+"\n", 5))
	}
	r.write(".gitignore", "*.o\nignored/\n.env*\n")
	must(t, os.Chmod(filepath.Join(r.dir, "exec"), 0o755))
	r.commit()
	return r.archived()
}

func (r tree) archived() archived {
	r.t.Helper()
	p := r.plan("work")
	must(r.t, p.add(r.t))
	return archived{tree: r.at(p.Dir), repo: r, plan: p, ref: "refs/pintle/archive/w-1", tar: filepath.Join(r.t.TempDir(), "w-1.tar")}
}

func (a archived) snapshot() Kept {
	a.t.Helper()
	k, err := Snapshot(a.t.Context(), a.dir, a.ref, SnapshotOptions{Keep: []string{".env*"}, Tar: a.tar})
	if err != nil {
		a.t.Fatal(err)
	}
	return k
}

func (a archived) remove() {
	a.t.Helper()
	must(a.t, a.plan.remove(a.t))
}

func (a archived) restore(k Kept) []string {
	a.t.Helper()
	h := lock(a.t, a.plan.Repository)
	defer h.Release()
	notes, err := h.Restore(a.t.Context(), a.plan, k)
	if err != nil {
		a.t.Fatal(err)
	}
	return notes
}

// picture is all that must come back, byte for byte.
func (a archived) picture() map[string]string {
	a.t.Helper()
	all := a.files()
	all["status"] = a.git("status", "--porcelain=v2", "-z", "--branch", "--ignore-submodules=all")
	all["index"] = a.git("ls-files", "-s", "-v", "-z")
	all["cached"] = a.git("diff", "--cached", "--raw", "-z", "--no-renames")
	all["stash"] = a.git("stash", "list")
	return all
}

func (a archived) files() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(a.dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, a.dir+"/")
		for _, ignored := range a.ignore {
			if ok, _ := filepath.Match(ignored, name); ok && e.IsDir() {
				return fs.SkipDir
			} else if ok {
				return nil
			}
		}
		if err != nil || path == a.dir {
			return err
		}
		all[name], err = describe(path, e)
		return err
	})
	must(a.t, err)
	return all
}

func describe(path string, e fs.DirEntry) (string, error) {
	info, err := e.Info()
	if err != nil {
		return "", err
	}
	switch {
	case info.Mode().IsRegular():
		text, err := os.ReadFile(path)
		return fmt.Sprintf("%v %q", info.Mode(), text), err
	case info.Mode()&fs.ModeSymlink != 0:
		return os.Readlink(path)
	}
	return info.Mode().String(), nil
}

func (a archived) same(before map[string]string) {
	a.t.Helper()
	if diff := cmp.Diff(before, a.picture()); diff != "" {
		a.t.Errorf("not as before (-before +after):\n%s", diff)
	}
}

// unshared leaves out the part of a split index of which git itself notes that it is in use.
var unshared = cmpopts.IgnoreMapEntries(func(name, _ string) bool { return strings.Contains(name, "sharedindex.") })

// roundTrip keeps, removes, collects garbage and restores, and compares after each of these.
func (a archived) roundTrip() Kept {
	a.t.Helper()
	refs := "for-each-ref --format=%(refname)%(objectname) refs/heads refs/tags refs/stash"
	before, branches := a.picture(), a.git(strings.Fields(refs)...)
	gitDir := probe(a.t, a.dir).GitDir
	state := contents(a.t, gitDir)
	k := a.snapshot()
	if diff := cmp.Diff(state, contents(a.t, gitDir), unshared); diff != "" {
		a.t.Errorf("the snapshot changed the git directory (-before +after):\n%s", diff)
	}
	a.same(before)
	a.remove()
	_, _ = userGit(a.repo.dir, "reflog", "expire", "--expire=now", "HEAD") // a bare one has none
	a.repo.git("gc", "-q", "--prune=now")
	if notes := a.restore(k); len(notes) > 0 {
		a.t.Errorf("notes: %q", notes)
	}
	a.same(before)
	if now := a.git(strings.Fields(refs)...); now != branches {
		a.t.Errorf("references were %s, are %s", branches, now)
	}
	a.git("fsck", "--no-dangling", "--connectivity-only")
	a.repo.git("gc", "-q", "--prune=now")
	if tmp := a.git("for-each-ref", "refs/pintle/tmp"); tmp != "" {
		a.t.Errorf("left: %s", tmp)
	}
	return k
}
