package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clean keeps the machine's own configuration of git out of a test.
func clean(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": t.TempDir(),
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
	} {
		t.Setenv(name, value)
	}
}

// tree is a directory in which a test acts as its user.
type tree struct {
	t   *testing.T
	dir string
}

// newTree makes a repository with the branch main and no commit in a new directory of a name.
func newTree(t *testing.T, name string) tree {
	t.Helper()
	clean(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := tree{t, filepath.Join(parent, name)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs a command as the user would, and returns what it printed without the last newline.
func (r tree) git(args ...string) string {
	r.t.Helper()
	out, err := userGit(r.dir, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func userGit(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// commit commits everything and returns the commit.
func (r tree) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

// write writes a file below the directory.
func (r tree) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// at is the same user in another directory.
func (r tree) at(dir string) tree { return tree{r.t, dir} }

// countGit puts a git in front of the real one that notes each start, and returns a function that tells how many
// there were.
func countGit(t *testing.T) func() int {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho >>'%s/starts'\nexec '%s' \"$@\"\n", dir, real)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return strings.Count(string(text), "\n")
	}
}
