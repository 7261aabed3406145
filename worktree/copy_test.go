package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twoTrees are directories to copy from and to.
func twoTrees(t *testing.T) (from, to tree) {
	t.Helper()
	return tree{t, t.TempDir()}, tree{t, t.TempDir()}
}

func (r tree) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// listing has everything in the directory: what a file holds, where a link leads.
func (r tree) listing() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == r.dir {
			return err
		}
		name, _ := filepath.Rel(r.dir, path)
		switch e.Type() {
		case fs.ModeDir:
			all[name] = "/"
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		default:
			data, err := os.ReadFile(path)
			all[name] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// copies copies, which must succeed.
func copies(t *testing.T, from, to tree, patterns ...string) []string {
	t.Helper()
	copied, err := Copy(t.Context(), from.dir, to.dir, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

func expectTree(t *testing.T, r tree, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, r.listing()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestX26_CopyWhatMatches(t *testing.T) {
	from, to := twoTrees(t)
	for _, name := range []string{".env", ".envrc", "config/local.a", "config/local.b/deep/f", "config/other", "sub/.env", "two words/ü\nx"} {
		from.write(name, name)
	}
	got := copies(t, from, to, ".env", "config/local.*", "two*/", "nothing", "no/thing", "config/local.*")
	if diff := cmp.Diff([]string{".env", "config/local.a", "config/local.b/deep/f", "two words/ü\nx"}, got); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
	expectTree(t, to, map[string]string{
		".env": ".env", "config": "/", "config/local.a": "config/local.a", "config/local.b": "/", "config/local.b/deep": "/",
		"config/local.b/deep/f": "config/local.b/deep/f", "two words": "/", "two words/ü\nx": "two words/ü\nx",
	})
}

func TestX26_CopyKeepsPermissions(t *testing.T) {
	from, to := twoTrees(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	want := map[string]fs.FileMode{"d/exec": 0o755, "d/open": 0o666, "d/secret": 0o400, "d": 0o755 | fs.ModeDir}
	for name, mode := range want {
		if !mode.IsDir() {
			from.write(name, "x")
		}
	}
	for name, mode := range want {
		if err := os.Chmod(filepath.Join(from.dir, name), mode.Perm()); err != nil {
			t.Fatal(err)
		}
	}
	copies(t, from, to, "d")
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(to.dir, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v, error %v, want %v", name, info.Mode(), err, mode)
		}
	}
}

func TestX26_CopyReplacesNothing(t *testing.T) {
	from, to := twoTrees(t)
	for _, name := range []string{"file", "dangling", "dir/a", "dir/b"} {
		from.write(name, "theirs")
	}
	to.write("file", "mine")
	to.write("dir/a", "mine")
	to.link("nowhere", "dangling")
	if got := copies(t, from, to, "*"); len(got) != 1 || got[0] != "dir/b" {
		t.Errorf("copied %q", got)
	}
	expectTree(t, to, map[string]string{"file": "mine", "dir": "/", "dir/a": "mine", "dir/b": "theirs", "dangling": "-> nowhere"})
}

// Links are copied as links, wherever they lead, and none is followed to what is copied.
func TestX26_CopyFollowsNoLinkOfTheSource(t *testing.T) {
	from, to := twoTrees(t)
	outside := tree{t, t.TempDir()}
	outside.write("secret", "secret")
	from.write("real/secret", "inside")
	from.link(outside.dir, "out")
	from.link("real", "in")
	from.link(filepath.Join(outside.dir, "secret"), "leaf")
	copies(t, from, to, "out/secret", "out/*", "in/secret", "*/../secret")
	expectTree(t, to, map[string]string{})
	copies(t, from, to, "out", "in", "leaf")
	expectTree(t, to, map[string]string{"out": "-> " + outside.dir, "in": "-> real", "leaf": "-> " + outside.dir + "/secret"})
}

// The new worktree's files are a stranger's: a directory may be a link there, or a file.
func TestX26_CopyWritesNothingOutside(t *testing.T) {
	from, to := twoTrees(t)
	outside := tree{t, t.TempDir()}
	from.write("config/local", "secret")
	for name, obstacle := range map[string]func(){
		"absolute link": func() { to.link(outside.dir, "config") },
		"relative link": func() { to.link("../"+filepath.Base(outside.dir), "config") },
		"file":          func() { to.write("config", "x") },
		"loop":          func() { to.link("config", "config") },
	} {
		t.Run(name, func(t *testing.T) {
			obstacle()
			copied, err := Copy(t.Context(), from.dir, to.dir, []string{"config/*"})
			if err == nil || len(copied) > 0 || !strings.Contains(err.Error(), `copy "config/*" from `+from.dir) {
				t.Errorf("copied %q, error %v", copied, err)
			}
			expectTree(t, outside, map[string]string{})
			if err := os.Remove(filepath.Join(to.dir, "config")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestX26_CopyLeavesOutWhatIsNoFile(t *testing.T) {
	from, to := twoTrees(t)
	from.write("d/.git/config", "x")
	from.write("e/.git", "gitdir: elsewhere")
	from.write(".git/config", "x")
	if err := syscall.Mkfifo(filepath.Join(from.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(from.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if got := copies(t, from, to, "*", ".git", ".git/config", "d/.git"); len(got) > 0 {
		t.Errorf("copied %q", got)
	}
	expectTree(t, to, map[string]string{"d": "/", "e": "/"})
}

// A Copy that was killed leaves a temporary file, and is repeated.
func TestX26_CopyIsRepeated(t *testing.T) {
	from, to := twoTrees(t)
	from.write("d/a", "a")
	from.write("d/b", "b")
	to.write("d/a", "a")
	to.write(temporaryOf("d/a"), "left after the rename of another")
	to.write(temporaryOf("d/b"), "half")
	if got := copies(t, from, to, "d"); len(got) != 1 || got[0] != "d/b" {
		t.Errorf("copied %q", got)
	}
	expectTree(t, to, map[string]string{"d": "/", "d/a": "a", "d/b": "b"})
	if got := copies(t, from, to, "d"); len(got) > 0 {
		t.Errorf("copied again: %q", got)
	}
}

// It is killed as soon as something has come of it, wherever it is then, and repeated.
func TestX26_CopyIsKilledAndRepeated(t *testing.T) {
	if from := os.Getenv("COPY_FROM"); from != "" {
		_, _ = Copy(t.Context(), from, os.Getenv("COPY_TO"), []string{"d"})
		return
	}
	from, to := twoTrees(t)
	for i := range 500 {
		from.write(fmt.Sprintf("d/%03d", i), strings.Repeat("x", 64<<10))
	}
	child := exec.Command(os.Args[0], "-test.run=^TestX26_CopyIsKilledAndRepeated$")
	child.Env = append(os.Environ(), "COPY_FROM="+from.dir, "COPY_TO="+to.dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	begun := func() bool { _, err := os.Lstat(filepath.Join(to.dir, "d", "000")); return err == nil }
	for !begun() && len(done) == 0 {
		runtime.Gosched()
	}
	_ = child.Process.Kill()
	<-done
	copies(t, from, to, "d")
	expectTree(t, to, from.listing())
}

func TestX26_CopyLongestName(t *testing.T) {
	from, to := twoTrees(t)
	name := strings.Repeat("n", 255)
	from.write(name, "x")
	copies(t, from, to, "n*")
	expectTree(t, to, map[string]string{name: "x"})
}

func TestX26_CopyIsBounded(t *testing.T) {
	for _, limit := range []budget{{files: 2, bytes: 100}, {files: 100, bytes: 9}} {
		from, to := twoTrees(t)
		from.write("d/a", "12345")
		from.write("d/b", "12345")
		_, err := copyWithin(t.Context(), from.dir, to.dir, []string{"d"}, limit)
		if !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), `"d"`) {
			t.Errorf("%+v: error %v", limit, err)
		}
		expectTree(t, to, map[string]string{"d": "/", "d/a": "12345"})
		if _, err := copyWithin(t.Context(), from.dir, to.dir, []string{"d"}, budget{files: 3, bytes: 5}); err != nil {
			t.Errorf("what is there costs bytes: %v", err)
		}
	}
}

func TestX26_CopyCancelled(t *testing.T) {
	from, to := twoTrees(t)
	from.write("a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Copy(ctx, from.dir, to.dir, []string{"*"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	expectTree(t, to, map[string]string{})
}
