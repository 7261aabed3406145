package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkAdd compares Add with what git alone takes for a worktree with a new branch.
func BenchmarkAdd(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	run("init", "-q", "-b", "main", "r")
	dir = filepath.Join(dir, "r")
	run("commit", "-q", "--allow-empty", "-m", "x")
	commit, err := Resolve(b.Context(), dir, "")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("git", func(b *testing.B) {
		for i := range b.N {
			run("worktree", "add", "-q", "-b", fmt.Sprintf("g-%d-%d", b.N, i), fmt.Sprintf("%s-%d-%d", dir, b.N, i))
		}
	})
	run("worktree", "prune")
	b.Run("pintle", func(b *testing.B) {
		for i := range b.N {
			p := Tree{Home: "h", Root: dir + "-root", Repository: dir + "/.git", Own: true, Commit: commit}
			p.ID = fmt.Sprintf("w-%d-%d", b.N, i)
			p.Dir, p.Branch = filepath.Join(p.Root, p.ID), p.ID
			h, err := Lock(b.Context(), p.Repository)
			if err != nil {
				b.Fatal(err)
			}
			if err := h.Add(b.Context(), p); err != nil {
				b.Fatal(err)
			}
			h.Release()
		}
	})
}
