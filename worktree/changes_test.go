package worktree

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// changed compares what Changed says with what is wanted.
func changed(t *testing.T, dir, base string, want Changes) {
	t.Helper()
	got, err := Changed(t.Context(), dir, base)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("changes %+v, want %+v", got, want)
	}
}

func TestChangedNothing(t *testing.T) {
	r := newTree(t, "r")
	r.write("a", "1\n")
	changed(t, r.dir, r.commit(), Changes{})
}

func TestChangedInEveryState(t *testing.T) {
	r := newTree(t, "r")
	r.write("committed", "1\n2\n")
	r.write("staged", "1\n2\n")
	r.write("edited", "1\n2\n")
	r.write("deleted", "1\n2\n3\n")
	r.write(".gitignore", "ignored\n")
	base := r.commit()
	r.write("committed", "1\n2\n3\n")
	r.commit()
	r.write("staged", "1\nx\n")
	r.git("add", "staged")
	r.write("edited", "1\n2\n3\n4\n")
	r.write("untracked dir/new\nline ü", "1\n2\nno newline")
	r.write("ignored", "1\n")
	if err := os.Remove(filepath.Join(r.dir, "deleted")); err != nil {
		t.Fatal(err)
	}
	want := Changes{Files: 5, Insertions: 1 + 1 + 2 + 3, Deletions: 1 + 3}
	changed(t, r.dir, base, want)
	changed(t, filepath.Join(r.dir, "untracked dir"), base, want) // from below it is the same
}

func TestChangedBinaryFilesHaveNoLines(t *testing.T) {
	r := newTree(t, "r")
	r.write("tracked", "a\x00b\n")
	base := r.commit()
	r.write("tracked", "a\x00b\nc\n")
	r.write("untracked", "a\nb\x00\n")
	changed(t, r.dir, base, Changes{Files: 2})
}

func TestChangedARenameIsOneFile(t *testing.T) {
	r := newTree(t, "r")
	r.git("config", "diff.renames", "false") // the user's taste changes no number
	r.write("old\nname", strings.Repeat("line\n", 20))
	r.write("other", "1\n")
	base := r.commit()
	r.git("mv", "old\nname", "new name")
	r.write("new name", strings.Repeat("line\n", 20)+"more\n")
	r.write("other", "1\n2\n")
	changed(t, r.dir, base, Changes{Files: 2, Insertions: 2})
}

func TestChangedSinceBeforeTheFirstCommit(t *testing.T) {
	r := newTree(t, "r")
	r.write("staged", "1\n2\n")
	r.git("add", "staged")
	r.write("untracked", "1\n")
	changed(t, r.dir, "", Changes{Files: 2, Insertions: 3})
	r.commit()
	changed(t, r.dir, "", Changes{Files: 2, Insertions: 3})
}

func TestChangedUntrackedOfEveryKind(t *testing.T) {
	r := newTree(t, "r")
	base := r.commit()
	r.write("empty", "")
	r.write("unreadable", "1\n")
	if err := os.Chmod(filepath.Join(r.dir, "unreadable"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere\nelse", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil { // git does not list it
		t.Fatal(err)
	}
	r.at(r.dir).git("init", "-q", "nested")
	r.at(filepath.Join(r.dir, "nested")).commit()
	lines := 1 // the link's
	if os.Geteuid() == 0 {
		lines++ // root reads everything
	}
	changed(t, r.dir, base, Changes{Files: 4, Insertions: lines})
}

func TestChangedInASubmodule(t *testing.T) {
	inner := newTree(t, "inner")
	inner.write("a", "1\n")
	inner.commit()
	r := newTree(t, "r")
	r.git("submodule", "--quiet", "add", inner.dir, "sub")
	base := r.commit()
	changed(t, r.dir, base, Changes{})
	r.write("sub/a", "2\n")
	if got, err := Changed(t.Context(), r.dir, base); err != nil || got.Files != 1 {
		t.Errorf("changes %+v, error %v", got, err)
	}
}

func TestChangedDoesNotFollowWhatBecameALink(t *testing.T) {
	left := budget{files: 1, bytes: 100}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if n := left.read(link); n != 0 {
		t.Errorf("read %d lines through a link", n)
	}
}

func TestChangedReadsWithinABudget(t *testing.T) {
	r := newTree(t, "r")
	for i := range 4 {
		r.write(fmt.Sprint(i), "1234\n")
	}
	r.write("big", strings.Repeat("\n", 100))
	left := budget{files: 4, bytes: 12}
	var lines int
	for _, name := range []string{"0", "big", "1", "2"} {
		lines += left.lines(filepath.Join(r.dir, name))
	}
	if lines != 2 || !left.spent() {
		t.Errorf("%d lines, left %+v", lines, left)
	}
}

func TestChangedErrorsNameCommandAndReason(t *testing.T) {
	r := newTree(t, "r")
	r.commit()
	for base, want := range map[string]string{
		"no-such":                  "git diff in " + r.dir + ": fatal: bad revision 'no-such'",
		"--output=/tmp/x":          "is no commit",
		strings.Repeat("12ab", 10): "fatal: bad object",
	} {
		if _, err := Changed(t.Context(), r.dir, base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("base %s: error %v, want …%s", base, err, want)
		}
	}
	if _, err := Changed(t.Context(), filepath.Join(r.dir, "gone"), "HEAD"); err == nil {
		t.Error("no error for a directory that is gone")
	}
}

func TestNumstatRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := numstat("1\t2\ta\x00warning\x00"); err == nil {
		t.Error("no error")
	}
}

// Nothing in the git directory may change, and no hook, monitor, pager or diff program of the repository may be
// run: it may be one that an agent has prepared. The file that was only touched is what makes git want to refresh the index.
func TestReadingChangesNothingAndRunsNothing(t *testing.T) {
	r := newTree(t, "r")
	r.write("a", "1\n")
	r.write("b", "1\n")
	base := r.commit()
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>'"+ran+"'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-index-change", "reference-transaction", "fsmonitor-watchman"} {
		if err := os.Symlink(script, filepath.Join(r.dir, ".git", "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	r.git("config", "diff.external", script)
	r.git("config", "diff.t.textconv", script)
	r.write(".git/info/attributes", "* diff=t\n")
	r.git("config", "core.fsmonitor", script)
	r.git("config", "core.pager", script)
	touched := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(r.dir, "a"), touched, touched); err != nil {
		t.Fatal(err)
	}
	r.write("b", "1\n2\n")
	before := contents(t, filepath.Join(r.dir, ".git"))
	probe(t, r.dir)
	changed(t, r.dir, base, Changes{Files: 1, Insertions: 1})
	if diff := cmp.Diff(before, contents(t, filepath.Join(r.dir, ".git"))); diff != "" {
		t.Errorf("the git directory changed (-before +after):\n%s", diff)
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("the repository's programs were run: %s", text)
	}
}

// contents returns a hash and the time of change of every file below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		all[path] = fmt.Sprintf("%x %v", sha256.Sum256(text), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
