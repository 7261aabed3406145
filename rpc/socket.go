package rpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Listen binds a socket at path, 0600, in place of a stale one: the caller holds the lock that says that
// nobody serves there. The file stays when the listener is closed. Errors: ErrDirectory, ErrPathTooLong.
func Listen(path string) (net.Listener, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// By then the short name may be another directory's. A socket that nobody serves harms nobody.
	l.SetUnlinkOnClose(false)
	// Until here only the directory, 0700, kept others out.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// removeStale removes a socket, but nothing else: a file in its place is somebody's.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen on %s: %w and no socket", path, fs.ErrExist)
	case err == nil:
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

// DialSocket connects to the socket at path, if its directory is ours and so is the one who answers.
// Errors: ErrDirectory, ErrForeign, ErrPathTooLong, and those of connect(2): fs.ErrNotExist and
// syscall.ECONNREFUSED mean that nobody serves there.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", short)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
	if _, err := checkPeer(conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
	return conn, nil
}

// Dial is DialSocket.
func Dial(ctx context.Context, path string) (net.Conn, error) { return DialSocket(ctx, path) }

// shorten checks the directory of a socket and returns a name for it that bind and connect take: a long
// one goes through a descriptor of the directory, which /proc names in a few bytes.
func shorten(path string) (short string, done func(), err error) {
	dir := filepath.Dir(path)
	if len(path) <= maxPath {
		return path, func() {}, checkDirectory(dir)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("socket directory: %w", err), checkDirectory(dir))
	}
	short = "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + filepath.Base(path)
	info, err := f.Stat()
	if err == nil {
		err = judge(dir, info)
	}
	if _, e := os.Stat(filepath.Dir(short)); err == nil && (e != nil || len(short) > maxPath) {
		err = fmt.Errorf("%w: %s has %d bytes, at most %d can be bound", ErrPathTooLong, path, len(path), maxPath)
	}
	if err != nil {
		_ = f.Close()
		return "", nil, err
	}
	return short, func() { _ = f.Close() }, nil
}
