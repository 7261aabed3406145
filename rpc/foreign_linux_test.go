package rpc

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The directory and the mode keep others out; should one come in all the same, the kernel names him.
func TestForeignPeerIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	dir, err := os.MkdirTemp("/tmp", "pintle-test-") // t.TempDir's parent lets no other user through
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	theirs, err := dialAs(65534, path)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), ours, echo); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "65534") {
		t.Errorf("error %v", err)
	}
}

// dialAs connects as another user: setresuid(2) by its number changes this thread alone, and the thread ends
// with its goroutine.
func dialAs(uid int, path string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		conn, err = connectAs(uid, path)
	}()
	<-done
	return conn, err
}

func connectAs(uid int, path string) (net.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), ^uintptr(0)); e != 0 {
		return nil, e
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
