package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestX26_FileIsOfTheCommit(t *testing.T) {
	r := newTree(t, "r")
	r.write(".pintle.toml", "old\n")
	r.write("d ü/[f]*", "deep")
	r.write(".gitattributes", "*.toml text eol=crlf ident\n")
	old := r.commit()
	r.write(".pintle.toml", "new")
	r.commit()
	r.write(".pintle.toml", "not committed")
	common := filepath.Join(r.dir, ".git")
	for path, want := range map[string]string{".pintle.toml": "old\n", "d ü/[f]*": "deep"} {
		got, err := File(t.Context(), common, old, path)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, error %v", path, got, err)
		}
	}
}

func TestX26_FileThatIsNone(t *testing.T) {
	r := newTree(t, "r")
	r.write("d/f", "x")
	r.write("large", strings.Repeat("x", MaxFile+1))
	r.write("just", strings.Repeat("x", MaxFile))
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	commit, common := r.commit(), filepath.Join(r.dir, ".git")
	for path, want := range map[string]string{
		"d": "d at " + commit[:12] + ": is no file but a directory", "link": "is no file but a symbolic link", "large": "is larger than",
	} {
		if _, err := File(t.Context(), common, commit, path); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	for _, path := range []string{"none", "d/", "d/none", "*", "."} {
		if _, err := File(t.Context(), common, commit, path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if got, err := File(t.Context(), common, commit, "just"); err != nil || len(got) != MaxFile {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
	for _, commit := range []string{strings.Repeat("0", 40), "--help", ""} {
		if _, err := File(t.Context(), common, commit, "d/f"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("commit %q: error %v", commit, err)
		}
	}
}

// A careful user's git refuses to find a repository from inside its git directory.
func TestX26_FileWhereBareRepositoriesAreRefused(t *testing.T) {
	r := newTree(t, "r")
	r.write("f", "x")
	commit := r.commit()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[safe]\n\tbareRepository = explicit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	if got, err := File(t.Context(), filepath.Join(r.dir, ".git"), commit, "f"); err != nil || string(got) != "x" {
		t.Errorf("%q, error %v", got, err)
	}
}
