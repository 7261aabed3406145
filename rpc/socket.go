package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxPath is the longest socket path in bytes that bind(2) takes everywhere on Linux.
const maxPath = 107

// ErrDirectory is returned for a socket directory that others could write to.
var ErrDirectory = errors.New("socket directory is not safe")

// Listen binds a socket at path, 0600, in place of a stale one: the caller holds the lock that says that
// nobody serves there.
func Listen(path string) (net.Listener, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove stale socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The directory is 0700, so nobody can come in between.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// Dial connects to the socket at path, if its directory is ours and so is the one who answers.
func Dial(ctx context.Context, path string) (net.Conn, error) {
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
	if err := checkPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// shorten checks the directory of a socket and returns a name for it that bind and connect take: a long
// one goes through a descriptor of the directory, which /proc names in a few bytes.
func shorten(path string) (short string, done func(), err error) {
	dir := filepath.Dir(path)
	if err := checkDirectory(dir); err != nil {
		return "", nil, err
	}
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open socket directory: %w", err)
	}
	short = "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + filepath.Base(path)
	return short, func() { _ = f.Close() }, nil
}

// checkDirectory refuses a directory of another user's, or one that others may enter: whoever can write
// there can put a socket of his own in place of ours.
func checkDirectory(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no directory", ErrDirectory, dir)
	case ok && int(st.Uid) != currentUID():
		return fmt.Errorf("%w: %s belongs to uid %d", ErrDirectory, dir, st.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s is open to others (mode %04o; chmod 700 it)", ErrDirectory, dir, info.Mode().Perm())
	}
	return nil
}

// SocketDir returns, and makes, the directory for the sockets of a state directory: s in it, or, where the
// system has no way around a long path, one of this user's under /tmp.
func SocketDir(stateDir string) (string, error) {
	dir := filepath.Join(stateDir, "s")
	if _, err := os.Stat("/proc/self/fd"); err != nil && len(dir)+20 > maxPath {
		sum := sha256.Sum256([]byte(stateDir))
		dir = filepath.Join("/tmp", "pintle-"+strconv.Itoa(currentUID()), hex.EncodeToString(sum[:8]))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make socket directory: %w", err)
	}
	return dir, checkDirectory(dir)
}

func currentUID() int { return os.Geteuid() }
