package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// committed makes a repository whose one commit holds text as .pintle.toml.
func committed(t *testing.T, text string) (repository, commit string) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir := filepath.Join(t.TempDir(), "it's")
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	if err := os.WriteFile(filepath.Join(dir, config.RepositoryFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "x")
	return filepath.Join(dir, ".git"), git("rev-parse", "HEAD")
}

func TestX26_RepoConfigNeedsTrust(t *testing.T) {
	d, err := state.Open(t.Context(), t.TempDir()+"/home")
	if err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string]string{
		"worktree.setup = 'a'\nworktree.copy = ['c']\n": `run "a"`, "worktree.cleanup = 'b'\n": `run "b"`, "worktree.copy = ['c']\n": `copy "c"`,
	} {
		repository, commit := committed(t, text)
		_, err := repoConfig(t.Context(), d, repository, commit)
		var refusal *api.Error
		if !errors.As(err, &refusal) || refusal.Code != api.CodeUntrusted || !strings.Contains(refusal.Message, wants) {
			t.Fatalf("%q: error %v", text, err)
		}
		next := "pintle trust -C " + record.Quote(filepath.Dir(repository)) + " --ref " + commit[:12]
		if refusal.Next != next {
			t.Errorf("next %q, want %q", refusal.Next, next)
		}
		cfg, err := repoFile(t.Context(), repository, commit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Trust(t.Context(), d, repository, cfg.Fingerprint(), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if got, err := repoConfig(t.Context(), d, repository, commit); err != nil || got.Fingerprint() != cfg.Fingerprint() {
			t.Errorf("%q: trusted, and error %v", text, err)
		}
	}
}

func TestX26_RepoConfigThatRunsNothing(t *testing.T) {
	d, err := state.Open(t.Context(), t.TempDir()+"/home")
	if err != nil {
		t.Fatal(err)
	}
	repository, commit := committed(t, "archive.keep = ['a']\n")
	cfg, err := repoConfig(t.Context(), d, repository, commit)
	if err != nil || len(cfg.Archive.Keep) != 1 {
		t.Errorf("%+v, error %v", cfg, err)
	}
	repository, commit = committed(t, "worktree.set = 1\n")
	if _, err := repoConfig(t.Context(), d, repository, commit); api.CodeOf(err) != api.CodeUsage {
		t.Errorf("error %v", err)
	}
}
