package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestX25_OneHolderAtATime(t *testing.T) {
	r := committed(t, "r")
	repository := r.dir + "/.git"
	h := lock(t, repository)
	ctx, cancel := context.WithTimeout(t.Context(), 10*poll)
	defer cancel()
	_, err := Lock(ctx, repository)
	want(t, err, context.DeadlineExceeded)
	h.Release()
	lock(t, repository).Release()
	if info, err := os.Stat(filepath.Join(repository, lockName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("lock file %v, error %v", info, err)
	}
	_, err = Lock(t.Context(), r.dir)
	want(t, err, ErrNone)
}

// The test's git stands for one that a supervisor left behind when it was killed: whoever held the lock is gone, and
// what it had begun is not.
func TestX25_AGitThatWasLeftBehindHoldsTheLock(t *testing.T) {
	r := committed(t, "r")
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	script := "#!/bin/sh\n(exec >/dev/null 2>&1; read line <'" + fifo + "') &\n"
	must(t, os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700))
	path := os.Getenv("PATH")
	t.Setenv("PATH", dir+":"+path)
	h := lock(t, r.dir+"/.git")
	if _, err := h.git(t.Context(), "status"); err != nil {
		t.Fatal(err)
	}
	h.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*poll)
	defer cancel()
	_, err := Lock(ctx, r.dir+"/.git")
	want(t, err, context.DeadlineExceeded)
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	end.Close()
	lock(t, r.dir+"/.git").Release()
}

// forest is 20 trees of one repository, of two state directories.
func (r tree) forest() (trees []Tree) {
	one, two := r.plan("x"), r.plan("x")
	two.Home = "home2"
	for i, name := range strings.Split("abcdefghijklmnopqrst", "") {
		p := one
		if i%2 == 1 {
			p = two
		}
		p.ID, p.Dir, p.Branch = "w-"+name, filepath.Join(p.Root, name), "pintle/"+name
		trees = append(trees, p)
	}
	return trees
}

// atOnce runs an effect on each tree at the same time, under locks of their own.
func atOnce(t *testing.T, trees []Tree, effect func(*Hold, Tree) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range trees {
		all.Go(func() {
			h, err := Lock(t.Context(), p.Repository)
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Release()
			if err := effect(h, p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestX25_Case21_TwentyAtOnceOfTwoStateDirectories(t *testing.T) {
	r := committed(t, "r")
	trees := r.forest()
	atOnce(t, trees, func(h *Hold, p Tree) error { return h.Add(t.Context(), p) })
	for _, p := range trees {
		repo := probe(t, p.Dir)
		if home, id, err := Owner(p.Dir); err != nil || home != p.Home || id != p.ID || repo.Branch != p.Branch {
			t.Errorf("%s: %s %s %s, error %v", p.Dir, home, id, repo.Branch, err)
		}
	}
	atOnce(t, trees, func(h *Hold, p Tree) error { return h.Remove(t.Context(), p) })
	for _, p := range trees {
		p.gone(t, true)
	}
}

func TestX25_WhileGitCollectsAndPrunes(t *testing.T) {
	r := committed(t, "r")
	ctx, cancel := context.WithCancel(t.Context())
	var user sync.WaitGroup
	for _, args := range [][]string{{"gc", "-q", "--prune=now"}, {"worktree", "prune"}} {
		user.Go(func() {
			for ctx.Err() == nil {
				cmd := exec.Command("git", args...)
				cmd.Dir = r.dir
				_ = cmd.Run() // it may find a directory gone that it has just listed
			}
		})
	}
	for range 3 {
		trees := r.forest()[:8]
		atOnce(t, trees, func(h *Hold, p Tree) error { return h.Add(t.Context(), p) })
		atOnce(t, trees, func(h *Hold, p Tree) error { return h.Undo(t.Context(), p) })
		for _, p := range trees {
			if p.lost(t) {
				must(t, os.RemoveAll(p.Dir))
			}
			p.gone(t, false)
		}
	}
	cancel()
	user.Wait()
	r.git("fsck")
}

// lost reports whether git has forgotten the worktree: a prune that had looked at it before it was locked, and was slow, deletes
// its administrative directory whenever it comes to it. Then nothing proves any more that the directory is ours, and it stays.
func (p Tree) lost(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, ".git"))
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir: ")))
	return errors.Is(err, fs.ErrNotExist)
}

// The other processes are this test's binary again, and add and take back until they are killed.
func TestX8_AProcessThatIsKilledLeavesNothingToItsSuccessor(t *testing.T) {
	if os.Getenv("ADD_UNTIL_KILLED") != "" {
		addUntilKilled(t)
		return
	}
	r := committed(t, "r")
	for i := range 50 { // many files, so that a kill meets a checkout
		r.write("many/"+strings.Repeat("x", i+1), strings.Repeat("text\n", 1000))
	}
	r.commit()
	p := r.plan("one")
	for i := range 25 {
		t.Setenv("ADD_UNTIL_KILLED", strings.Join([]string{p.Root, p.Repository, p.Commit}, "|"))
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		must(t, cmd.Start())
		seen(t, p, i%5)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		must(t, p.add(t))
		p.whole(t)
		must(t, p.undo(t))
		p.gone(t, false)
	}
}

// seen waits until the other process is at the given step, so that each round meets another one.
func seen(t *testing.T, p Tree, round int) {
	t.Helper()
	path := []string{p.Dir, p.Dir + "/.git", p.admins() + "/index.lock", p.Dir + "/many/x", p.admins() + "/pintle"}[round]
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", path)
		}
	}
}

func addUntilKilled(t *testing.T) {
	given := strings.Split(os.Getenv("ADD_UNTIL_KILLED"), "|")
	p := Tree{
		ID: "w-one", Home: "home1", Root: given[0], Dir: filepath.Join(given[0], "one"), Repository: given[1],
		Branch: "pintle/one", Own: true, Commit: given[2],
	}
	for parent := os.Getppid(); os.Getppid() == parent; {
		if err := errors.Join(p.add(t), p.undo(t)); err != nil {
			t.Fatal(err)
		}
	}
}
