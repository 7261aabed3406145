package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withSubmodule is a repository that has another for a submodule, which a worktree has checked out.
func withSubmodule(t *testing.T) archived {
	t.Helper()
	inner := newTree(t, "inner")
	inner.write("i", "1\n")
	inner.commit()
	r := newTree(t, "r")
	r.git("submodule", "--quiet", "add", inner.dir, "lib/sub")
	r.commit()
	a := r.archived()
	a.git("submodule", "--quiet", "update", "--init")
	return a
}

func TestX21_Submodules(t *testing.T) {
	for name, change := range map[string]func(a archived, sub tree){
		"clean":              func(archived, tree) {},
		"changed":            func(_ archived, sub tree) { sub.write("i", "2\n"); sub.write("u", "x"); sub.symlink("/etc", "l") },
		"commits of its own": func(_ archived, sub tree) { sub.write("i", "2\n"); sub.commit(); sub.write("i", "3\n") },
		"recorded": func(a archived, sub tree) {
			sub.git("checkout", "-q", "-b", "own")
			sub.write("i", "2\n")
			sub.commit()
			a.commit()
		},
		"staged": func(a archived, sub tree) { sub.write("i", "2\n"); sub.commit(); a.git("add", "lib/sub") },
	} {
		t.Run(name, func(t *testing.T) {
			a := withSubmodule(t)
			sub := a.at(filepath.Join(a.dir, "lib", "sub"))
			change(a, sub)
			before := sub.git("status", "--porcelain=v2", "--branch") + sub.git("log", "--format=%H")
			if k := a.roundTrip(); strings.Join(k.Nested, " ") != "lib/sub" || k.Tar == "" {
				t.Errorf("kept: %+v", k)
			}
			if now := sub.git("status", "--porcelain=v2", "--branch") + sub.git("log", "--format=%H"); now != before {
				t.Errorf("submodule was %s, is %s", before, now)
			}
		})
	}
}

// git names a worktree's directory after the tree, and with a number if there is one of that name already.
func TestX21_SubmoduleFindsItsRepositoryUnderAnotherName(t *testing.T) {
	a := withSubmodule(t)
	sub := a.at(filepath.Join(a.dir, "lib", "sub"))
	k := a.snapshot()
	a.remove()
	a.repo.git("worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "work"))
	a.restore(k)
	if out := sub.git("status", "--porcelain", "--branch"); !strings.HasPrefix(out, "## ") {
		t.Errorf("status %s", out)
	}
	if got := probe(t, sub.dir).TopLevel; got != sub.dir {
		t.Errorf("submodule is at %s", got)
	}
}

func TestX21_NestedRepository(t *testing.T) {
	a := newArchived(t)
	a.mkdir("deep", 0o755)
	a.git("init", "-q", "-b", "main", "deep/nested")
	nested := a.at(filepath.Join(a.dir, "deep", "nested"))
	nested.write("n", "1\n")
	head := nested.commit()
	nested.write("bad\xff", "x")
	nested.chmod("n", 0o400)
	a.write("deep/u", "x")
	if k := a.roundTrip(); strings.Join(k.Nested, " ") != "deep/nested/" {
		t.Errorf("kept: %+v", k)
	}
	if now := nested.git("rev-parse", "HEAD"); now != head {
		t.Errorf("head %s, want %s", now, head)
	}
}

// filter is a stand-in for git-lfs: what is in git is a pointer, the content is beside the repository.
const filter = `#!/bin/sh
store=%s
if [ "$1" = clean ]; then
	cat >"$store/$$"; sum=$(sha256sum <"$store/$$" | cut -d' ' -f1); mv "$store/$$" "$store/$sum"; echo "pointer $sum"
else
	read word sum && cat "$store/$sum"
fi
`

func TestX21_LargeFilesBehindPointers(t *testing.T) {
	r := newTree(t, "r")
	store, script := t.TempDir(), filepath.Join(t.TempDir(), "lfs")
	must(t, os.WriteFile(script, []byte(strings.Replace(filter, "%s", store, 1)), 0o700))
	r.git("config", "filter.lfs.clean", script+" clean")
	r.git("config", "filter.lfs.smudge", script+" smudge")
	r.git("config", "filter.lfs.required", "true")
	r.write(".gitattributes", "*.bin filter=lfs -text\n")
	r.write("one.bin", strings.Repeat("1", 1000))
	r.write("two.bin", strings.Repeat("2", 1000))
	r.commit()
	a := r.archived()
	a.write("two.bin", strings.Repeat("changed", 1000))
	a.write("new.bin", strings.Repeat("new", 1000))
	a.write("staged.bin", strings.Repeat("staged", 1000))
	a.git("add", "staged.bin")
	k := a.roundTrip()
	if text := a.repo.git("show", k.Commit+":two.bin"); text != strings.Repeat("changed", 1000) {
		t.Errorf("kept behind the filter: %.40s", text)
	}
	if text := a.repo.git("show", k.Commit+":one.bin"); !strings.HasPrefix(text, "pointer ") {
		t.Errorf("kept although git has it: %.40s", text)
	}
}

func TestX21_LineEndings(t *testing.T) {
	for name, config := range map[string]string{"attributes": "", "autocrlf": "core.autocrlf=true", "input": "core.autocrlf=input"} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t, "r")
			if key, value, ok := strings.Cut(config, "="); ok {
				r.git("config", key, value)
			}
			if name == "attributes" {
				r.write(".gitattributes", "*.crlf text eol=crlf\n*.auto text=auto\n*.lf text eol=lf\n")
			}
			r.git("config", "core.safecrlf", "false")
			for _, ext := range []string{"crlf", "auto", "lf"} {
				r.write("clean."+ext, "1\n2\n")
				r.write("changed."+ext, "1\n2\n")
				r.write("hidden."+ext, "1\n2\n")
				r.write("seen."+ext, "1\n2\n")
			}
			r.commit()
			a := r.archived()
			for _, ext := range []string{"crlf", "auto", "lf"} {
				a.write("changed."+ext, "1\r\n2\nthree\r\n")
				a.write("new."+ext, "1\r\n2\n")
				a.write("staged."+ext, "1\r\n2\n")
				a.write("seen."+ext, "1\r\n2\n")
			}
			a.git("add", "-A", "--", ":(glob)staged.*", ":(glob)seen.*") // what is seen may be as it was, for git
			for _, ext := range []string{"crlf", "auto", "lf"} {
				a.write("hidden."+ext, "1\r\n2\n") // a filter hides the change
			}
			before := a.files()
			k := a.snapshot()
			status := a.git("status", "--porcelain=v2", "-z")
			a.remove()
			a.restore(k)
			if diff := cmp.Diff(before, a.files()); diff != "" {
				t.Errorf("not as before (-before +after):\n%s", diff)
			}
			if now := a.git("status", "--porcelain=v2", "-z"); now != status {
				t.Errorf("status (-before +after):\n%s", cmp.Diff(strings.Split(status, "\x00"), strings.Split(now, "\x00")))
			}
		})
	}
}

func TestX21_OfABareRepository(t *testing.T) {
	r := newTree(t, "r")
	r.write("a", "1\n")
	r.commit()
	bare := r.at(r.dir + ".git")
	r.git("clone", "-q", "--bare", ".", bare.dir)
	a := bare.archived()
	a.write("a", "2\n")
	a.write("u", "x")
	a.roundTrip()
}

func TestX21_OfAShallowClone(t *testing.T) {
	r := newTree(t, "r")
	for _, text := range []string{"1\n", "2\n", "3\n"} {
		r.write("a", text)
		r.commit()
	}
	shallow := r.at(r.dir + "-shallow")
	r.git("clone", "-q", "--depth=1", "file://"+r.dir, shallow.dir)
	a := shallow.archived()
	a.git("checkout", "-q", "--detach")
	a.write("a", "4\n")
	a.commit()
	a.write("u", "x")
	a.roundTrip()
}

func TestX21_WithoutAnIdentityAndWithHooks(t *testing.T) {
	a := newArchived(t)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "")
		must(t, os.Unsetenv(name))
	}
	a.repo.git("config", "user.useConfigOnly", "true")
	a.repo.git("config", "core.logAllRefUpdates", "always")
	global := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(global, []byte("[safe]\n\tbareRepository = explicit\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change"} {
		a.repo.write(".git/hooks/"+hook, "#!/bin/sh\necho $0 >>'"+ran+"'\n")
		a.repo.chmod(".git/hooks/"+hook, 0o700)
	}
	a.write("a", "x\n")
	k := a.snapshot()
	a.remove()
	a.restore(k)
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran:\n%s", text)
	}
	if _, err := Size(t.Context(), a.plan.Repository, k.Ref); err != nil {
		t.Error(err)
	}
	if who := a.repo.git("log", "-1", "--format=%an <%ae> %cn <%ce>", k.Commit); who != identity+" "+identity {
		t.Errorf("made by %s", who)
	}
}

// git calls it clean, and would check it out with other line endings.
func TestX21_CommittedLineEndings(t *testing.T) {
	r := newTree(t, "r")
	r.write(".gitattributes", "* text=auto\n*.bat text eol=crlf\n")
	r.git("config", "core.safecrlf", "false")
	r.write("a", "1\n2\n")
	r.write("b.bat", "1\n2\n")
	r.commit()
	a := r.archived()
	if k := a.roundTrip(); k.Ref != "" {
		t.Errorf("as git would check it out, and kept: %+v", k)
	}
	a.write("new", "1\r\n2\r\n")
	a.commit()
	a.git("status")
	if k := a.roundTrip(); k.Changed != 1 {
		t.Errorf("kept: %+v", k)
	}
}
