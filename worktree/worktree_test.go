package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// probe is Probe where it must succeed.
func probe(t *testing.T, dir string) Repository {
	t.Helper()
	repo, err := Probe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func expect(t *testing.T, got, want Repository) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repository (-want +got):\n%s", diff)
	}
}

func TestProbeNamesThatAreHardToPrint(t *testing.T) {
	for _, name := range []string{"plain", "two words", "ünï·códe-日本", "new\nline", "-dash", "quote\"'", "trailing\n", mark} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t, name)
			head := r.commit()
			r.git("checkout", "-q", "-b", "feature/größe")
			want := Repository{
				CommonDir: filepath.Join(r.dir, ".git"), TopLevel: r.dir, GitDir: filepath.Join(r.dir, ".git"),
				Branch: "feature/größe", Head: head,
			}
			expect(t, probe(t, r.dir), want)
			r.write("a b/c\nd/file", "x")
			expect(t, probe(t, filepath.Join(r.dir, "a b", "c\nd")), want)
		})
	}
}

func TestProbeBeforeTheFirstCommit(t *testing.T) {
	r := newTree(t, "r")
	gitDir := filepath.Join(r.dir, ".git")
	expect(t, probe(t, r.dir), Repository{CommonDir: gitDir, TopLevel: r.dir, GitDir: gitDir, Branch: "main"})
}

func TestProbeDetached(t *testing.T) {
	r := newTree(t, "r")
	head := r.commit()
	r.git("checkout", "-q", "--detach")
	gitDir := filepath.Join(r.dir, ".git")
	expect(t, probe(t, r.dir), Repository{CommonDir: gitDir, TopLevel: r.dir, GitDir: gitDir, Head: head, Detached: true})
}

func TestProbeBare(t *testing.T) {
	r := newTree(t, "r")
	head := r.commit()
	bare := r.dir + ".git"
	r.git("clone", "-q", "--bare", ".", bare)
	want := Repository{CommonDir: bare, GitDir: bare, Branch: "main", Head: head, Bare: true}
	expect(t, probe(t, bare), want)
	expect(t, probe(t, filepath.Join(bare, "refs", "heads")), want)
}

func TestProbeInsideTheGitDirectory(t *testing.T) {
	r := newTree(t, "r")
	head := r.commit()
	gitDir := filepath.Join(r.dir, ".git")
	expect(t, probe(t, filepath.Join(gitDir, "refs")), Repository{CommonDir: gitDir, GitDir: gitDir, Branch: "main", Head: head})
}

func TestProbeLinkedWorktree(t *testing.T) {
	r := newTree(t, "r")
	head := r.commit()
	linked := r.dir + " linked\n2"
	r.git("worktree", "add", "-q", "-b", "other", linked)
	got := probe(t, linked)
	if filepath.Dir(got.GitDir) != filepath.Join(r.dir, ".git", "worktrees") {
		t.Errorf("git directory %q", got.GitDir)
	}
	expect(t, got, Repository{
		CommonDir: filepath.Join(r.dir, ".git"), TopLevel: linked, GitDir: got.GitDir, Branch: "other", Head: head,
	})
}

func TestProbeLinkedWorktreeOfABareRepository(t *testing.T) {
	r := newTree(t, "r")
	head := r.commit()
	bare, linked := r.at(r.dir+".git"), r.dir+"-linked"
	r.git("clone", "-q", "--bare", ".", bare.dir)
	bare.git("worktree", "add", "-q", "-b", "other", linked)
	got := probe(t, linked)
	expect(t, got, Repository{CommonDir: bare.dir, TopLevel: linked, GitDir: got.GitDir, Branch: "other", Head: head})
}

func TestProbeSubmodule(t *testing.T) {
	inner := newTree(t, "inner")
	inner.commit()
	outer := newTree(t, "outer")
	outer.git("submodule", "--quiet", "add", inner.dir, "sub")
	outer.commit()
	gitDir := filepath.Join(outer.dir, ".git", "modules", "sub")
	sub := filepath.Join(outer.dir, "sub")
	expect(t, probe(t, sub), Repository{
		CommonDir: gitDir, TopLevel: sub, GitDir: gitDir, Branch: "main", Head: inner.git("rev-parse", "HEAD"),
	})
}

func TestProbeThroughASymbolicLink(t *testing.T) {
	r := newTree(t, "r")
	r.write("below/file", "x")
	r.commit()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(r.dir, "below"), link); err != nil {
		t.Fatal(err)
	}
	if got := probe(t, link); got.TopLevel != r.dir {
		t.Errorf("top level %q, want %q", got.TopLevel, r.dir)
	}
}

func TestProbeRelativeDirectory(t *testing.T) {
	r := newTree(t, "r")
	r.commit()
	t.Chdir(r.dir)
	if got := probe(t, "."); got.TopLevel != r.dir {
		t.Errorf("top level %q, want %q", got.TopLevel, r.dir)
	}
}

func TestProbeOutsideStartsNoGit(t *testing.T) {
	clean(t)
	starts := countGit(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, filepath.Join(dir, ".git", "empty"), "/"} {
		if _, err := Probe(t.Context(), dir); !errors.Is(err, ErrNone) {
			t.Errorf("%s: error %v", dir, err)
		}
	}
	if n := starts(); n > 0 {
		t.Errorf("git was started %d times", n)
	}
}

func TestProbeStartsOneGit(t *testing.T) {
	r := newTree(t, "r")
	r.commit()
	starts := countGit(t)
	probe(t, r.dir)
	if n := starts(); n != 1 {
		t.Errorf("git was started %d times", n)
	}
}

func TestProbeWithoutGit(t *testing.T) {
	r := newTree(t, "r")
	t.Setenv("PATH", t.TempDir())
	if _, err := Probe(t.Context(), r.dir); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}

func TestProbeDeletedDirectory(t *testing.T) {
	_, err := Probe(t.Context(), filepath.Join(t.TempDir(), "gone"))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}

// A worktree whose repository is gone is damage that somebody must see, not a directory without a repository.
func TestProbeDanglingWorktree(t *testing.T) {
	r := newTree(t, "r")
	r.write(".git-file", "")
	r.commit()
	linked := r.dir + "-linked"
	r.git("worktree", "add", "-q", linked)
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	_, err := Probe(t.Context(), linked)
	if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "git rev-parse in "+linked+": fatal: not a git repository") {
		t.Errorf("error %v", err)
	}
}

// A verb called from a hook has these set; they are the hook's, not the directory's.
func TestProbeIgnoresTheCallersRepository(t *testing.T) {
	other := newTree(t, "other")
	other.commit()
	r := newTree(t, "r")
	head := r.commit()
	for name, value := range map[string]string{
		"GIT_DIR": filepath.Join(other.dir, ".git"), "GIT_WORK_TREE": other.dir, "GIT_INDEX_FILE": "/nowhere",
		"GIT_COMMON_DIR": "/nowhere", "GIT_PREFIX": "x/", "GIT_NAMESPACE": "n", "GIT_TRACE": "1", "LC_ALL": "de_DE.UTF-8",
	} {
		t.Setenv(name, value)
	}
	if got := probe(t, r.dir); got.Head != head || got.TopLevel != r.dir {
		t.Errorf("got %+v", got)
	}
}

func TestProbeCancelled(t *testing.T) {
	r := newTree(t, "r")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Probe(ctx, r.dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestGitGetsACleanEnvironment(t *testing.T) {
	got := environment([]string{
		"PATH=/bin", "GIT_DIR=x", "GIT_OPTIONAL_LOCKS=1", "GIT_CONFIG_PARAMETERS=x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
		"GIT_CONFIG_VALUE_0=*", "GIT_SSL_CAINFO=/ca", "GIT_EDITOR=vi", "GITHUB_TOKEN=t",
	})
	want := []string{
		"PATH=/bin", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_SSL_CAINFO=/ca",
		"GITHUB_TOKEN=t", "LC_ALL=C", "LANGUAGE=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true",
		"SSH_ASKPASS_REQUIRE=force",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
