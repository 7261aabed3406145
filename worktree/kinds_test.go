package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kinds are repositories of every kind; each returns where worktrees of it are planned.
var kinds = map[string]func(t *testing.T) tree{
	"plain":                        func(t *testing.T) tree { return committed(t, "r") },
	"two words, ünïcode, a quote'": func(t *testing.T) tree { return committed(t, "two words ünï-日本 '\"") },
	"new line":                     func(t *testing.T) tree { return committed(t, "new\nline") },
	"bare": func(t *testing.T) tree {
		r := committed(t, "r")
		r.git("clone", "-q", "--bare", ".", r.dir+".git")
		return r.at(r.dir + ".git")
	},
	"shallow": func(t *testing.T) tree {
		r := committed(t, "r")
		r.commit()
		r.git("clone", "-q", "--depth", "1", "file://"+r.dir, r.dir+"-clone")
		return r.at(r.dir + "-clone")
	},
	"linked worktree": func(t *testing.T) tree {
		r := committed(t, "r")
		r.git("worktree", "add", "-q", "-b", "other", r.dir+"-linked")
		return r.at(r.dir + "-linked")
	},
	"detached": func(t *testing.T) tree {
		r := committed(t, "r")
		r.git("checkout", "-q", "--detach")
		return r
	},
	"submodules": func(t *testing.T) tree {
		inner := committed(t, "inner")
		r := committed(t, "r")
		r.git("submodule", "--quiet", "add", inner.dir, "sub")
		r.git("config", "submodule.recurse", "true")
		r.commit()
		return r
	},
	"in a submodule": func(t *testing.T) tree {
		inner := committed(t, "inner")
		r := committed(t, "r")
		r.git("submodule", "--quiet", "add", inner.dir, "sub")
		r.commit()
		return r.at(r.dir + "/sub")
	},
	"packed": func(t *testing.T) tree {
		r := committed(t, "r")
		r.git("gc", "-q")
		return r
	},
	"no implicit bare repositories": func(t *testing.T) tree {
		r := committed(t, "r")
		t.Setenv("GIT_CONFIG_COUNT", "1")
		t.Setenv("GIT_CONFIG_KEY_0", "safe.bareRepository")
		t.Setenv("GIT_CONFIG_VALUE_0", "explicit")
		return r
	},
}

func committed(t *testing.T, name string) tree {
	t.Helper()
	r := newTree(t, name)
	r.write("a/b", "text\n")
	r.write("top", "text\n")
	r.commit()
	return r
}

func TestX26_ModesInEveryKindOfRepository(t *testing.T) {
	for kind, open := range kinds {
		for _, mode := range []string{"own branch", "existing branch", "detached"} {
			t.Run(kind+", "+mode, func(t *testing.T) {
				r := open(t)
				p := r.plan("one")
				switch mode {
				case "existing branch":
					r.git("branch", p.Branch)
					p.Own = false
				case "detached":
					p.Branch, p.Own = "", false
				}
				must(t, p.add(t))
				p.whole(t)
				must(t, p.add(t))
				must(t, p.remove(t))
				p.forgotten(t)
				if there, err := Exists(t.Context(), p.Repository, p.Branch); err != nil || there != (p.Branch != "") {
					t.Errorf("branch is there: %v, error %v", there, err)
				}
			})
		}
	}
}

// forgotten asserts that git no longer lists the tree and nothing of it is left.
func (p Tree) forgotten(t *testing.T) {
	t.Helper()
	if names, _ := os.ReadDir(p.Root); len(names) > 0 {
		t.Errorf("left in the managed directory: %v", names)
	}
	list := tree{t, p.Repository}.git("--git-dir=.", "worktree", "list", "--porcelain")
	left, _ := filepath.Glob(filepath.Join(p.Repository, "pintle-removed*"))
	if strings.Contains(list, p.Dir) || len(left) > 0 {
		t.Errorf("left: %v, worktrees:\n%s", left, list)
	}
}

func TestX26_ABareRepositorysOwnBranchIsNotCheckedOut(t *testing.T) {
	r := kinds["bare"](t)
	p := r.plan("one")
	p.Branch, p.Own = "main", false
	must(t, p.add(t))
	p.whole(t)
}

func TestX26_ASparseCheckoutStaysSparse(t *testing.T) {
	r := committed(t, "r")
	r.write("left/out", "x")
	r.commit()
	r.git("sparse-checkout", "set", "a")
	p := r.plan("one")
	must(t, p.add(t))
	p.whole(t)
	if _, err := os.Stat(p.Dir + "/left"); err == nil {
		t.Error("what is left out was checked out")
	}
	if _, err := os.Stat(p.Dir + "/a/b"); err != nil {
		t.Error(err)
	}
	must(t, p.remove(t))
	p.gone(t, true)
}

func TestX26_HooksAreNotRun(t *testing.T) {
	r := committed(t, "r")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		put(t, filepath.Join(r.dir, ".git/hooks", hook), "#!/bin/sh\necho ran >>'"+r.dir+"/.git/ran'\nexit 1\n")
		must(t, os.Chmod(filepath.Join(r.dir, ".git/hooks", hook), 0o700))
	}
	p := r.plan("one")
	must(t, p.add(t))
	must(t, p.undo(t))
	must(t, p.add(t))
	must(t, p.remove(t))
	if _, err := os.Stat(r.dir + "/.git/ran"); err == nil {
		t.Error("a hook was run")
	}
}

func TestX26_FiltersAreRun(t *testing.T) {
	r := committed(t, "r")
	r.write(".gitattributes", "*.big filter=big\n")
	r.write("file.big", "pointer\n")
	r.git("config", "filter.big.smudge", "sed s/pointer/content/")
	r.git("config", "filter.big.clean", "sed s/content/pointer/")
	r.commit()
	p := r.plan("one")
	must(t, p.add(t))
	if text, err := os.ReadFile(p.Dir + "/file.big"); err != nil || string(text) != "content\n" {
		t.Errorf("%q, error %v", text, err)
	}
	p.whole(t)
}

func TestX19_ABranchThatIsTakenGetsANumber(t *testing.T) {
	r := committed(t, "r")
	for _, name := range []string{"fix", "fix-2", "dir/below", "with/slash", "deep-2/x"} {
		r.git("branch", name)
	}
	r.git("pack-refs", "--all")
	r.git("branch", "deep")
	h := lock(t, r.dir+"/.git")
	for want, free := range map[string]string{
		"new": "new", "fix": "fix-3", "main": "main-2", "dir": "dir-2", "with/slash": "with/slash-2", "deep": "deep-3",
		"größe/日本": "größe/日本", "fi": "fi", "fix-2": "fix-2-2",
	} {
		if got, err := h.Free(t.Context(), want); err != nil || got != free {
			t.Errorf("%s: %q, error %v, want %q", want, got, err, free)
		}
	}
	_, err := h.Free(t.Context(), "main/below")
	want(t, err, ErrTaken)
	for _, bad := range []string{"", "-x", "a b", "a..b", "@{-1}", "HEAD", "x.lock", "/x", "a\nb", "-", "*"} {
		if got, err := h.Free(t.Context(), bad); err == nil {
			t.Errorf("%q: free as %q", bad, got)
		}
	}
}

func TestX19_TwoOrdersWithOneBranchName(t *testing.T) {
	r := committed(t, "r")
	var trees []Tree
	for i := range 2 {
		p := r.plan(fmt.Sprint("tree-", i))
		p.Branch = "feature"
		must(t, p.under(t, func(h *Hold) (err error) {
			if p.Branch, err = h.Free(t.Context(), p.Branch); err != nil {
				return err
			}
			return h.Add(t.Context(), p)
		}))
		p.whole(t)
		trees = append(trees, p)
	}
	if trees[0].Branch != "feature" || trees[1].Branch != "feature-2" {
		t.Errorf("branches %s, %s", trees[0].Branch, trees[1].Branch)
	}
	must(t, trees[1].remove(t))
	trees[0].whole(t)
	trees[1].forgotten(t)
}

func TestX27_TheDirectoryIsReserved(t *testing.T) {
	r := committed(t, "r")
	for name, taken := range map[string]func(dir string) error{
		"file":    func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"link":    func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"in use":  func(dir string) error { return os.MkdirAll(dir+"/x", 0o700) },
		"another": func(dir string) error { r.git("worktree", "add", "-q", "--detach", dir); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := r.plan("one")
			must(t, taken(p.Dir))
			want(t, p.add(t), ErrTaken)
			must(t, p.undo(t))
			if _, err := os.Lstat(p.Dir); err != nil {
				t.Errorf("it was another's: %v", err)
			}
			if there, err := Exists(t.Context(), p.Repository, p.Branch); there || err != nil {
				t.Errorf("branch is there: %v, error %v", there, err)
			}
		})
	}
}

func TestX27_ModeOfTheDirectories(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	must(t, p.add(t))
	for _, dir := range []string{p.Root, p.Dir} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, error %v", dir, info.Mode(), err)
		}
	}
}

func TestX28_ABranchThatIsCheckedOutElsewhere(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	p.Branch, p.Own = "main", false
	err := p.add(t)
	want(t, err, ErrElsewhere)
	if !strings.Contains(err.Error(), r.dir) {
		t.Errorf("does not say where: %v", err)
	}
	must(t, p.undo(t))
	p.gone(t, true)
	p.Branch = "no-such"
	if err := p.add(t); err == nil || !strings.Contains(err.Error(), "no branch no-such") {
		t.Errorf("error %v", err)
	}
}

// git would make a branch of a remote's of that name.
func TestX28_ARemotesBranchIsNoBranch(t *testing.T) {
	r := committed(t, "r")
	r.git("branch", "theirs")
	r.git("clone", "-q", ".", r.dir+"-clone")
	p := r.at(r.dir + "-clone").plan("one")
	p.Branch, p.Own = "theirs", false
	if err := p.add(t); err == nil || !strings.Contains(err.Error(), "no branch theirs") {
		t.Errorf("error %v", err)
	}
	must(t, p.undo(t))
	p.gone(t, false)
}

func TestX28_ABranchWithTheNameOfATag(t *testing.T) {
	r := committed(t, "r")
	r.git("tag", "both")
	r.commit()
	r.git("branch", "both")
	p := r.plan("one")
	p.Branch, p.Own = "both", false
	must(t, p.add(t))
	p.whole(t)
}

func TestX7_OnlyOurUnmovedBranchGoes(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	r.git("branch", p.Branch)
	want(t, p.add(t), ErrTaken)
	must(t, p.undo(t))
	p.gone(t, true) // it is the user's

	p.Branch = "moved"
	must(t, p.add(t))
	r.at(p.Dir).commit()
	must(t, p.undo(t))
	p.gone(t, true) // it has a commit

	p.Branch = "below/it"
	r.git("branch", "below")
	want(t, p.add(t), ErrTaken)
	must(t, p.undo(t))
	p.gone(t, false)
}
