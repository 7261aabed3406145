package testscripts

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobodyElse is another user than root.
const nobodyElse = 65534

// A supervisor says nothing to a peer of another user, should its directory and the socket's mode ever let one in: the
// connection ends without a word, nothing is carried out, and its log names the user. Its own user is served meanwhile
// (case 26).
func TestCase26_PeerOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	s := newStage(t, "")
	socket := s.serving()
	s.begin("k")
	ours := dialWire(t, socket)
	chmod(t, 0o711, s.dir, s.home, filepath.Dir(socket))
	chmod(t, 0o666, socket)
	theirs := dialAs(t, nobodyElse, socket)
	_, _ = io.WriteString(theirs, strings.Join([]string{hello(), request(1, "execution/stop", "k")}, "\n")+"\n")
	said, err := io.ReadAll(theirs)
	if len(said) > 0 || (err != nil && !errors.Is(err, syscall.ECONNRESET)) {
		t.Errorf("another user was told %q, %v", said, err)
	}
	ours.say(hello(), request(1, "execution/get", "k"))
	_, answers := ours.hear(2)
	if e := answers["1"].execution(t); e.Outcome != "" || e.Cancel != nil {
		t.Errorf("our own user is told %s", answers["1"].Result)
	}
	chmod(t, 0o600, socket)
	chmod(t, 0o700, s.dir, s.home, filepath.Dir(socket))
	s.until("the log names the user", func() bool {
		log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log"))
		return strings.Contains(string(log), "65534")
	})
	s.verb("stop", "k")
	s.quiet()
}

func chmod(t *testing.T, mode os.FileMode, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// dialAs connects as another user: setresuid(2) by its number changes this thread alone, and the thread ends with
// its goroutine.
func dialAs(t *testing.T, uid int, path string) net.Conn {
	t.Helper()
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled)
	go func() {
		runtime.LockOSThread()
		conn, err := connectAs(uid, path)
		done <- dialled{conn, err}
	}()
	d := <-done
	if d.err != nil {
		t.Fatal(d.err)
	}
	t.Cleanup(func() { _ = d.conn.Close() })
	return d.conn
}

func connectAs(uid int, path string) (net.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	// By its bare name from its directory: the directories above may let nobody else in. The thread has a working
	// directory of its own from here on.
	if err := errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chdir(filepath.Dir(path))); err != nil {
		return nil, err
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), ^uintptr(0)); e != 0 {
		return nil, e
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: filepath.Base(path)}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
