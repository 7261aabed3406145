package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestX26_ResolveNamesTheCommit(t *testing.T) {
	r := newTree(t, "r")
	first := r.commit()
	r.git("tag", "-a", "-m", "x", "annotated")
	r.git("branch", "größe/日本")
	second := r.commit()
	for ref, commit := range map[string]string{
		"": second, "HEAD": second, "main": second, "HEAD~1": first, "annotated": first, "größe/日本": first,
		first[:10]: first, first: first, "refs/heads/main": second,
	} {
		if got, err := Resolve(t.Context(), r.dir, ref); err != nil || got != commit {
			t.Errorf("%q: %q, error %v", ref, got, err)
		}
	}
	for _, ref := range []string{"no-such", "-x", "--all", "main..HEAD", "HEAD^{tree}", "a\x00b", "main:file", strings.Repeat("0", 40)} {
		if got, err := Resolve(t.Context(), r.dir, ref); err == nil || errors.Is(err, ErrNoCommit) || !strings.Contains(err.Error(), "names no commit") {
			t.Errorf("%q: %q, error %v", ref, got, err)
		}
	}
	if _, err := Resolve(t.Context(), t.TempDir(), ""); err == nil || errors.Is(err, ErrNoCommit) {
		t.Errorf("error %v", err)
	}
}

func TestX26_ResolveBeforeTheFirstCommit(t *testing.T) {
	r := newTree(t, "r")
	_, err := Resolve(t.Context(), r.dir, "")
	want(t, err, ErrNoCommit)
	if _, err := Resolve(t.Context(), r.dir, "main"); err == nil || errors.Is(err, ErrNoCommit) {
		t.Errorf("error %v", err)
	}
}

func TestX27_Slug(t *testing.T) {
	for name, want := range map[string]string{
		"Fix the Login": "fix-the-login", "feature/größe": "feature-groesse", "Ça va? Ünïcödé": "ca-va-uenicoede",
		"--x--": "x", "a__b..c": "a-b-c", "ÉCOLE": "ecole", "e\u0301te\u0301": "ete", "日本 v2": "v2", "x\n\x00/../y": "x-y",
		strings.Repeat("ab", 40): strings.Repeat("ab", 23) + "a", strings.Repeat("a", 46) + " b": strings.Repeat("a", 46),
	} {
		if got := Slug(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"", "日本", "!!!", "\xff\xfe", strings.Repeat("日", 1000)} {
		got := Slug(name)
		if !strings.HasPrefix(got, "w-") || len(got) != 10 || got != Slug(name) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func FuzzX27_Slug(f *testing.F) {
	f.Add("Größe 日本\n")
	f.Fuzz(func(t *testing.T, name string) {
		got := Slug(name)
		if got == "" || len(got) > maxSlug || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.HasPrefix(got, "-") || strings.HasSuffix(got, "-") {
			t.Errorf("%q: %q", name, got)
		}
	})
}

func TestX23_OwnerOfWhatPintleDidNotMake(t *testing.T) {
	r := committed(t, "r")
	r.git("worktree", "add", "-q", "--detach", r.dir+"-linked")
	for _, dir := range []string{r.dir, r.dir + "-linked", t.TempDir(), filepath.Join(r.dir, "no-such")} {
		if home, id, err := Owner(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q %q, error %v", dir, home, id, err)
		}
	}
	p := r.plan("one")
	must(t, p.add(t))
	if _, id, err := Owner(p.Dir + "/a"); err != nil || id != p.ID {
		t.Errorf("from below: %q, error %v", id, err)
	}
	put(t, p.admins()+"/pintle", "torn")
	if _, _, err := Owner(p.Dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what cannot be read is not absent: %v", err)
	}
}

// forge is a repository with pull requests and a clone of it.
func forge(t *testing.T, ref string) (clone tree, head, base string) {
	t.Helper()
	r := committed(t, "r")
	base = r.git("rev-parse", "HEAD")
	r.git("checkout", "-q", "-b", "theirs")
	r.write("new", "x")
	head = r.commit()
	r.git("update-ref", ref, head)
	r.git("checkout", "-q", "main")
	r.git("branch", "-q", "-D", "theirs")
	r.git("clone", "-q", "file://"+r.dir, r.dir+"-clone")
	r.git("tag", "later")
	r.git("branch", "later")
	return r.at(r.dir + "-clone"), head, base
}

func TestX26_PullRequests(t *testing.T) {
	for _, ref := range []string{"refs/pull/7/head", "refs/merge-requests/7/head"} {
		clone, head, base := forge(t, ref)
		clone.git("config", "remote.origin.tagOpt", "--tags")
		clone.git("config", "fetch.prune", "true")
		before := contents(t, clone.dir+"/.git")
		gotHead, gotBase, err := Pull(t.Context(), clone.dir, 7)
		if err != nil || gotHead != head || gotBase != base {
			t.Fatalf("%s: %q %q, error %v", ref, gotHead, gotBase, err)
		}
		after := contents(t, clone.dir+"/.git")
		for name := range after {
			if before[name] != after[name] && !strings.Contains(name, "/objects/") {
				t.Errorf("%s: %s was written", ref, name)
			}
		}
		p := clone.plan("pull")
		p.Commit = head
		must(t, p.add(t))
		p.whole(t)
	}
}

func TestX26_PullRequestsOfAShallowClone(t *testing.T) {
	clone, head, _ := forge(t, "refs/pull/7/head")
	origin := clone.git("remote", "get-url", "origin")
	shallow := clone.at(clone.dir + "-shallow")
	clone.git("clone", "-q", "--depth", "1", origin, shallow.dir)
	if got, _, err := Pull(t.Context(), shallow.dir, 7); err != nil || got != head {
		t.Errorf("%q, error %v", got, err)
	}
}

func TestX26_PullRequestsThatAreNotThere(t *testing.T) {
	clone, _, _ := forge(t, "refs/pull/7/head")
	fails := func(wants ...string) {
		t.Helper()
		_, _, err := Pull(t.Context(), clone.dir, 8)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want …%s", err, want)
			}
		}
	}
	fails("pull request 8 of remote origin", "no such pull request")
	clone.git("remote", "add", "second", "file:///nowhere")
	clone.git("config", "branch.main.remote", "second")
	fails("pull request 8 of remote second", "git ls-remote")
	clone.git("config", "branch.main.remote", "https://me:secret@localhost:1/x")
	fails("pull request 8 of remote https://localhost:1/x", "git ls-remote")
	if _, _, err := Pull(t.Context(), clone.dir, 8); strings.Contains(err.Error(), "secret") {
		t.Errorf("tells a password: %v", err)
	}
	clone.git("config", "--unset", "branch.main.remote")
	clone.git("remote", "rename", "origin", "first")
	fails("which of the remotes")
	clone.git("remote", "remove", "first")
	fails("pull request 8 of remote second")
	clone.git("remote", "remove", "second")
	fails("no remote")
}

func TestX26_TheRemoteOfTheBranchIsAsked(t *testing.T) {
	clone, head, _ := forge(t, "refs/pull/7/head")
	clone.git("remote", "rename", "origin", "upstream")
	clone.git("remote", "add", "origin", "file:///nowhere")
	if got, _, err := Pull(t.Context(), clone.dir, 7); err != nil || got != head {
		t.Errorf("%q, error %v", got, err)
	}
	if _, err := os.Stat(clone.dir + "/.git/FETCH_HEAD"); err == nil {
		t.Error("FETCH_HEAD was written")
	}
}
