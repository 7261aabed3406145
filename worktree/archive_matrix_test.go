package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// remove, chmod, mkdir and symlink act below the directory.
func (r tree) rm(name string) { r.t.Helper(); must(r.t, os.Remove(filepath.Join(r.dir, name))) }

func (r tree) chmod(name string, mode os.FileMode) {
	r.t.Helper()
	must(r.t, os.Chmod(filepath.Join(r.dir, name), mode))
}

func (r tree) mkdir(name string, mode os.FileMode) {
	r.t.Helper()
	must(r.t, os.MkdirAll(filepath.Join(r.dir, name), mode))
}

func (r tree) symlink(target, name string) {
	r.t.Helper()
	must(r.t, os.Symlink(target, filepath.Join(r.dir, name)))
}

// fails runs a command of git that must stop with an error, as one that meets a conflict does.
func (r tree) fails(args ...string) {
	r.t.Helper()
	if out, err := userGit(r.dir, args...); err == nil {
		r.t.Fatalf("git %s went through:\n%s", strings.Join(args, " "), out)
	}
}

// files in every state that git knows, and in some that it does not.
var changes = map[string]func(archived){
	"changed":                  func(a archived) { a.write("a", "x\n") },
	"staged":                   func(a archived) { a.write("a", "x\n"); a.git("add", "a") },
	"staged and changed again": func(a archived) { a.write("a", "x\n"); a.git("add", "a"); a.write("a", "y\n") },
	"staged and changed back":  func(a archived) { a.write("a", "x\n"); a.git("add", "a"); a.write("a", "a\na\na\na\na\n") },
	"new, staged and deleted":  func(a archived) { a.write("n", "x\n"); a.git("add", "n"); a.rm("n") },
	"deleted":                  func(a archived) { a.rm("a"); a.rm("dir/d"); a.rm("dir/e") },
	"directory deleted":        func(a archived) { a.rm("dir/d"); a.rm("dir/e"); a.rm("dir") },
	"deletion staged":          func(a archived) { a.git("rm", "-q", "a", "dir/d") },
	"taken out of the index":   func(a archived) { a.git("rm", "-q", "--cached", "a") },
	"renamed":                  func(a archived) { a.git("mv", "a", "z"); a.git("mv", "dir/d", "dir/f") },
	"mode":                     func(a archived) { a.chmod("a", 0o755); a.chmod("exec", 0o600) },
	"mode staged":              func(a archived) { a.git("update-index", "--chmod=+x", "a") },
	"permissions":              func(a archived) { a.chmod("a", 0o600); a.chmod("b", 0o444); a.write("u", "x"); a.chmod("u", 0o400) },
	"untracked":                func(a archived) { a.write("u", "x\n"); a.write("new/deep/er/u", ""); a.write("dir/u", "no newline") },
	"names": func(a archived) {
		for _, name := range []string{" ", "two words", "new\nline", "tab\t\"quoted\"", "ünï-日本", "bad\xff\xfe", "-dash", "back\\slash", "bad\xc3/\xc3", "a:b", ":/x"} {
			a.write(name, name)
		}
		a.git("add", "new\nline", "bad\xff\xfe")
		a.write("bad\xff\xfe", "again")
		a.mkdir("empty\xff\n", 0o755)
	},
	"links": func(a archived) {
		a.symlink("/etc/passwd", "outside")
		a.symlink("../../..", "up")
		a.symlink("no\nwhere\xff", "dangling")
		a.symlink("dir", "within")
		a.git("add", "outside")
	},
	"file becomes a link":      func(a archived) { a.rm("a"); a.symlink("b", "a") },
	"file becomes a directory": func(a archived) { a.rm("a"); a.write("a/x/y", "x") },
	"directory becomes a file": func(a archived) { a.rm("dir/d"); a.rm("dir/e"); a.rm("dir"); a.write("dir", "x") },
	"directory becomes a link": func(a archived) {
		a.rm("dir/d")
		a.rm("dir/e")
		a.rm("dir")
		a.write("other/d", "outside of git's sight")
		a.symlink("other", "dir")
	},
	"empty directories": func(a archived) {
		a.mkdir("empty", 0o755)
		a.mkdir("dir/empty/deep", 0o755)
		a.mkdir("private", 0o700)
		a.mkdir("u/readonly", 0o555)
		a.write("u/x", "x")
	},
	"read-only directory": func(a archived) { a.write("ro/x", "x"); a.chmod("ro", 0o555) },
	"big":                 func(a archived) { a.write("big", strings.Repeat("0123456789abcdef", 3<<16)); a.write("empty", "") },
	"intent to add":       func(a archived) { a.write("n", "x\n"); a.git("add", "-N", "n") },
	"assumed unchanged": func(a archived) {
		a.git("update-index", "--assume-unchanged", "a", "b")
		a.write("a", "x\n")
		a.rm("b")
	},
	"skip worktree":            func(a archived) { a.git("update-index", "--skip-worktree", "a", "b"); a.write("a", "x\n"); a.rm("b") },
	"ignored by name, tracked": func(a archived) { a.write("t.o", "1"); a.git("add", "-f", "t.o"); a.write("t.o", "2") },
	"detached": func(a archived) {
		a.git("checkout", "-q", "--detach")
		a.write("a", "x\n")
		a.commit()
		a.write("n", "x\n")
		a.commit()
	},
	"detached, clean": func(a archived) { a.git("checkout", "-q", "--detach") },
	"orphan":          func(a archived) { a.git("checkout", "-q", "--orphan", "fresh") },
	"orphan, nothing staged": func(a archived) {
		a.git("checkout", "-q", "--orphan", "fresh")
		a.git("rm", "-rqf", ".")
		a.write("x", "x")
	},
	"stash":                 func(a archived) { a.write("a", "x\n"); a.git("stash"); a.write("b", "y\n") },
	"split index":           func(a archived) { a.git("update-index", "--split-index"); a.write("a", "x\n"); a.git("add", "a") },
	"attributes of its own": func(a archived) { a.write(".gitattributes", "* text eol=crlf\n"); a.write("n", "x\r\ny\n") },
	"commits on its branch": func(a archived) { a.write("a", "x\n"); a.commit(); a.write("b", "x\n") },
	"sparse": func(a archived) {
		a.git("sparse-checkout", "set", "--cone", "dir")
		a.write("dir/d", "x\n")
		a.write("u", "x")
	},
	"sparse, no cone": func(a archived) {
		a.git("sparse-checkout", "set", "--no-cone", "/a", "/dir/d")
		a.write("dir/d", "x\n")
		a.write("b", "back")
	},
	"sparse, clean": func(a archived) { a.git("sparse-checkout", "set", "--cone", "dir") },
	"sparse index": func(a archived) {
		a.git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
		a.write("a", "x\n")
	},
	"names that git refuses": func(a archived) { a.write("sub/.GIT/x", "x"); a.symlink("x", ".gitmodules") },
}

func TestX21_ComesBackAsItWas(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			a := newArchived(t)
			change(a)
			if k := a.roundTrip(); k.Ref != a.ref || k.Commit != a.repo.git("rev-parse", a.ref) {
				t.Errorf("kept: %+v", k)
			}
		})
	}
}

func TestX21_CleanMakesNothing(t *testing.T) {
	a := newArchived(t)
	a.write("a", "x\n")
	a.commit()
	starts := countGit(t)
	k := a.roundTrip()
	if k.Ref != "" || k.Tar != "" || a.repo.git("for-each-ref", "refs/pintle") != "" {
		t.Errorf("kept: %+v", k)
	}
	_ = starts
}

func TestX21_IgnoredFilesAreListedOrInTheTar(t *testing.T) {
	a := newArchived(t)
	a.write(".env", "SECRET=hunter2")
	a.write("dir/.env.local", "x")
	a.chmod("dir/.env.local", 0o640)
	a.write("ignored/deep/.envrc", "x")
	a.write("x.o", "x")
	a.write("ignored/y", "x")
	a.ignore = []string{"x.o", "ignored/y"}
	k := a.roundTrip()
	if k.Ref != "" || k.Tar != a.tar || strings.Join(k.Files, " ") != ".env dir/.env.local ignored/deep/.envrc" ||
		strings.Join(k.Ignored, " ") != "ignored/ x.o" || k.IgnoredN != 2 {
		t.Errorf("kept: %+v", k)
	}
	if info, err := os.Stat(a.tar); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("tar: %v %v", info, err)
	}
}

func TestX21_SpecialFilesAreSkippedAndNamed(t *testing.T) {
	a := newArchived(t)
	a.write("u", "x")
	must(t, syscall.Mkfifo(filepath.Join(a.dir, "pipe"), 0o600))
	a.ignore = []string{"pipe"}
	if k := a.roundTrip(); strings.Join(k.Skipped, " ") != "pipe" {
		t.Errorf("kept: %+v", k)
	}
}
