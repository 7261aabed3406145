package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestX21_BranchThatMovedLeavesHeadDetached(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	head := a.git("rev-parse", "HEAD")
	k := a.snapshot()
	a.remove()
	a.repo.git("branch", "-f", a.plan.Branch, a.repo.commit())
	moved := a.repo.git("rev-parse", a.plan.Branch)
	notes := a.restore(k)
	if got := probe(t, a.dir); !got.Detached || got.Head != head {
		t.Errorf("repository %+v", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "has moved since") || a.repo.git("rev-parse", a.plan.Branch) != moved {
		t.Errorf("notes: %q", notes)
	}
}

func TestX21_BranchThatIsCheckedOutElsewhereLeavesHeadDetached(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	k := a.snapshot()
	a.remove()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	a.repo.git("worktree", "add", "-q", elsewhere, a.plan.Branch)
	notes := a.restore(k)
	if got := probe(t, a.dir); !got.Detached || got.Head != k.Head || len(notes) != 1 || !strings.Contains(notes[0], elsewhere) {
		t.Errorf("repository %+v, notes %q", got, notes)
	}
}

func TestX21_BranchThatIsGoneIsMadeAgain(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	before := a.picture()
	k := a.snapshot()
	a.remove()
	a.repo.git("branch", "-q", "-D", a.plan.Branch)
	a.repo.git("gc", "-q", "--prune=now")
	if notes := a.restore(k); len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
	a.same(before)
}

// Killed after the reference was made and before it was recorded: the same again is the same.
func TestX21_UnrecordedSnapshotIsAdopted(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	first := a.snapshot()
	if again := a.snapshot(); again.Commit != first.Commit {
		t.Errorf("commit %s, want %s", again.Commit, first.Commit)
	}
}

func TestX21_UnrecordedSnapshotIsNotLost(t *testing.T) {
	for name, change := range map[string]func(archived){
		"changed again": func(a archived) { a.write("a", "y\n") },
		"clean":         func(a archived) { a.git("checkout", "-q", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchived(t)
			a.write("a", "x\n")
			first := a.snapshot()
			change(a)
			second := a.roundTrip()
			if second.Commit == first.Commit || a.repo.git("show", second.Commit+"^3:a") != "x" {
				t.Errorf("%s does not hold %s", second.Commit, first.Commit)
			}
		})
	}
}

// What a killed import leaves is a temporary reference, at most.
func TestX21_TemporaryReferenceIsTakenOver(t *testing.T) {
	a := newArchived(t)
	a.repo.git("update-ref", temporary(a.ref), "HEAD")
	if k := a.snapshot(); k.Ref != "" {
		t.Errorf("kept: %+v", k)
	}
	a.repo.git("update-ref", temporary(a.ref), "HEAD")
	a.write("a", "x\n")
	a.roundTrip()
}

func TestX21_RestoreIsRepeated(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	before := a.picture()
	k := a.snapshot()
	a.remove()
	a.restore(k)
	a.same(before)
	a.write("a", "the user's again\n")
	a.restore(k)
	if text, err := os.ReadFile(filepath.Join(a.dir, "a")); err != nil || string(text) != "the user's again\n" {
		t.Errorf("a: %q, %v", text, err)
	}
}

// Each step of a restore is the last one once: what it leaves is made anew.
func TestX21_RestoreThatWasKilledIsMadeAnew(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	a.write("u", "x\n")
	a.write(".env", "x\n")
	a.rm("b")
	before := a.picture()
	k := a.snapshot()
	for n := range 7 {
		a.remove()
		h := lock(t, a.plan.Repository)
		half := a.plan
		half.Branch, half.Own, half.Commit = "", false, k.Head
		must(t, h.visit(half, func(root *os.Root, found []admin) error {
			must(t, reserve(half, root))
			must(t, h.link(t.Context(), half))
			r, err := h.begin(t.Context(), half, k)
			must(t, err)
			defer r.close()
			for _, step := range []func(context.Context) error{r.clear, r.restoreState, r.restoreHead, r.checkOut, r.restorePieces, r.unpack}[:n] {
				must(t, step(t.Context()))
			}
			return nil
		}))
		h.Release()
		a.restore(k)
		a.same(before)
	}
}

func TestX21_DiscardAndSize(t *testing.T) {
	a := newArchived(t)
	a.write("big", strings.Repeat("0123456789abcdef", 3<<16))
	k := a.snapshot()
	size, err := Size(t.Context(), a.plan.Repository, k.Ref)
	if err != nil || size < 1000 {
		t.Errorf("size %d, %v", size, err)
	}
	for range 2 {
		must(t, Discard(t.Context(), a.plan.Repository, k.Ref))
	}
	if refs := a.repo.git("for-each-ref", "refs/pintle"); refs != "" {
		t.Errorf("left: %s", refs)
	}
}

func TestX22_UnsavedNamesAllThatGitWouldNotFindAgain(t *testing.T) {
	a := newArchived(t)
	u, err := FindUnsaved(t.Context(), a.dir)
	if err != nil || !u.Empty() {
		t.Errorf("clean: %q, %v", u.Lines(), err)
	}
	a.git("checkout", "-q", "--detach")
	a.write("b", "x\n")
	commit := a.commit()
	a.write("a", "x\n")
	a.write("new\nline", "x")
	a.write("HEAD", "a file that has the name of a commit")
	a.git("mv", "c", "z")
	a.git("bisect", "start", "HEAD", "HEAD~1")
	u, err = FindUnsaved(t.Context(), a.dir)
	want := []string{
		"in progress: bisect", "HEAD is detached at " + commit, "commit on no branch: " + commit[:7] + " x",
		"staged: c", "staged: z", "changed: a", "untracked: HEAD", `untracked: "new\nline"`,
	}
	if err != nil || strings.Join(u.Lines(), "\n") != strings.Join(want, "\n") {
		t.Errorf("error %v\n%s\nwant\n%s", err, strings.Join(u.Lines(), "\n"), strings.Join(want, "\n"))
	}
}

func TestX22_UnsavedInSubmodules(t *testing.T) {
	a := withSubmodule(t)
	if u, err := FindUnsaved(t.Context(), a.dir); err != nil || !u.Empty() {
		t.Errorf("clean: %q, %v", u.Lines(), err)
	}
	sub := a.at(filepath.Join(a.dir, "lib", "sub"))
	sub.write("i", "2\n")
	sub.commit()
	u, err := FindUnsaved(t.Context(), a.dir)
	if err != nil || len(u.Changed.List) != 1 || len(u.Nested.List) != 1 {
		t.Errorf("unsaved %q, %v", u.Lines(), err)
	}
}

func TestX22_UnsavedListsAreBounded(t *testing.T) {
	var all []string
	for range MaxListed + 5 {
		all = append(all, "x")
	}
	lines := Unsaved{Untracked: namesOf(all)}.Lines()
	if len(lines) != MaxListed+1 || lines[MaxListed] != "untracked: 5 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
