package rpc

import (
	"net"
	"os"
	"runtime"
	"syscall"
)

// dialAs connects as another user: setresuid(2) by its number changes this thread alone, which is not given
// back. The thread keeps root's capabilities in its saved id until it is connected.
func dialAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		conn, err := connectAs(uid, path)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

func connectAs(uid int, path string) (net.Conn, error) {
	// A user may connect who holds a descriptor of the directory: that stands for a leak of it.
	dir, err := syscall.Open(path[:len(path)-2], syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(dir)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, err
	}
	if err := syscall.Fchdir(dir); err != nil {
		return nil, err
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), ^uintptr(0)); e != 0 {
		return nil, e
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
