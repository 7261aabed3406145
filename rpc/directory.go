package rpc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// nameRoom is how long the name of a socket in SocketDir may be.
const nameRoom = 20

// SocketDir returns, and makes, the directory for the sockets of a state directory: s in it, or, where the
// system has no way around a long path, one of this user's under /tmp. Errors: ErrDirectory.
func SocketDir(stateDir string) (string, error) {
	_, err := os.Stat("/proc/self/fd")
	return socketDir(stateDir, "/tmp", err == nil)
}

func socketDir(stateDir, tmp string, anyLength bool) (string, error) {
	dir := filepath.Join(stateDir, "s")
	if anyLength || len(dir)+1+nameRoom <= maxPath {
		return dir, makeDirectory(dir)
	}
	// Anybody may make names in /tmp: ours is only one that we own, at both levels.
	users := filepath.Join(tmp, "pintle-"+strconv.Itoa(currentUID()))
	if err := makeDirectory(users); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(stateDir))
	dir = filepath.Join(users, hex.EncodeToString(sum[:8]))
	return dir, makeDirectory(dir)
}

func makeDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make socket directory: %w", err)
	}
	return checkDirectory(dir)
}

func checkDirectory(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	return judge(dir, info)
}

// judge refuses a directory of another user's, or one that others may enter: whoever can write there can
// put a socket of his own in place of ours (case 26).
func judge(dir string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	perm := info.Mode().Perm()
	switch {
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no directory", ErrDirectory, dir)
	case !ok || int(st.Uid) != currentUID():
		return fmt.Errorf("%w: %s belongs to uid %d, not to uid %d", ErrDirectory, dir, st.Uid, currentUID())
	case perm&0o077 != 0:
		return fmt.Errorf("%w: %s is open to others (mode %04o; chmod 700 it)", ErrDirectory, dir, perm)
	}
	return nil
}

func currentUID() int { return os.Geteuid() }
