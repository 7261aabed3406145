package rpc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// converse serves at path and calls once.
func converse(t *testing.T, path string) {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = Serve(context.Background(), conn, echo)
		}
		served <- err
	}()
	conn, err := DialSocket(t.Context(), path)
	if err != nil {
		l.Close()
		t.Fatal(err)
	}
	c := NewClient(conn, nil)
	if err := c.Call(t.Context(), "echo", nil, nil); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	l.Close()
}

func TestSocketIsOursAloneAndReplacesAStaleOne(t *testing.T) {
	dir := privateDir(t)
	path := filepath.Join(dir, "s.sock")
	for range 2 { // the second finds the first one's file
		converse(t, path)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if _, err := DialSocket(t.Context(), path); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial a stale socket: %v", err)
	}
	if _, err := DialSocket(t.Context(), path+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dial no socket: %v", err)
	}
}

func TestListenLeavesAFileThatIsNoSocket(t *testing.T) {
	path := filepath.Join(privateDir(t), "notes")
	if err := os.WriteFile(path, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if got, err := os.ReadFile(path); string(got) != "dear" {
		t.Errorf("file holds %q, %v", got, err)
	}
}

func TestCase25_LongHomePath(t *testing.T) {
	home := t.TempDir()
	for _, n := range []int{maxPath - 1, maxPath, maxPath + 1, 300, 1000} {
		long := home
		for len(long)+len("/s/supervisor.sock") < n {
			long = filepath.Join(long, strings.Repeat("x", min(200, n-len(long)-1-len("/s/supervisor.sock"))))
			if err := os.Mkdir(long, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		dir, err := SocketDir(long)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "linux" && dir != filepath.Join(long, "s") {
			t.Errorf("%d bytes: %s, though /proc shortens it", n, dir)
		}
		converse(t, filepath.Join(dir, "supervisor.sock"))
	}
}

func TestCase25_WithoutProcAShortDirectoryServes(t *testing.T) {
	tmp, long := privateDir(t), filepath.Join("/", strings.Repeat("x", 200))
	a, err := socketDir(long, tmp, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := socketDir(long, tmp, false)
	if err != nil || a != b {
		t.Errorf("%s, then %s, %v", a, b, err)
	}
	if other, err := socketDir(long+"y", tmp, false); err != nil || other == a {
		t.Errorf("two homes share %s, %v", other, err)
	}
	converse(t, filepath.Join(a, "s"))
	if err := os.Chmod(filepath.Dir(a), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := socketDir(long, tmp, false); !errors.Is(err, ErrDirectory) {
		t.Errorf("a directory under /tmp that is open to others: %v", err)
	}
}

func TestCase25_NameTooLongForAnyWay(t *testing.T) {
	path := filepath.Join(privateDir(t), strings.Repeat("x", maxPath))
	if _, err := Listen(path); !errors.Is(err, ErrPathTooLong) {
		t.Errorf("listen: %v", err)
	}
	if _, err := DialSocket(t.Context(), path); !errors.Is(err, ErrPathTooLong) {
		t.Errorf("dial: %v", err)
	}
}

func TestCase26_ForeignOrOpenDirectoryRefused(t *testing.T) {
	spoil := map[string]func(t *testing.T, dir string) (names string){
		"writable by all": func(t *testing.T, dir string) string { return mode(t, dir, 0o777) },
		"open to a group": func(t *testing.T, dir string) string { return mode(t, dir, 0o750) },
		"enterable":       func(t *testing.T, dir string) string { return mode(t, dir, 0o701) },
		"a link": func(t *testing.T, dir string) string {
			if err := errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir)); err != nil {
				t.Fatal(err)
			}
			return "no directory"
		},
		"another user's": func(t *testing.T, dir string) string {
			if os.Geteuid() != 0 {
				t.Skip("chown needs root")
			}
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
			return "uid 65534"
		},
	}
	for name, f := range spoil {
		for _, leaf := range []string{"s", strings.Repeat("long", 40)} { // both ways to a socket
			t.Run(name+" "+leaf[:1], func(t *testing.T) {
				dir := filepath.Join(privateDir(t), leaf)
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				refusedDirectory(t, dir, f)
			})
		}
	}
}

func refusedDirectory(t *testing.T, dir string, spoil func(*testing.T, string) string) {
	path := filepath.Join(dir, "x.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := spoil(t, dir)
	_, listening := Listen(path)
	_, dialling := DialSocket(t.Context(), path)
	for _, err := range []error{listening, dialling} {
		if !errors.Is(err, ErrDirectory) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v; want one that names %s and %q", err, dir, why)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket there was touched: %v", err)
	}
}

func mode(t *testing.T, dir string, m fs.FileMode) string {
	if err := os.Chmod(dir, m); err != nil {
		t.Fatal(err)
	}
	return "open to others"
}

func privateDir(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
