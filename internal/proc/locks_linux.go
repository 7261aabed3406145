package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// LockHolders returns the live processes that hold an advisory lock on the file at path, flock(2)'s or fcntl(2)'s, as
// far as we may look at their descriptors. Nobody locks a file that is not there.
//
// /proc/locks has who took a lock, as its pid or as -1, and not who has it: a lock of an open file belongs to all that
// inherited the descriptor, and outlives who took it. So it is asked first, being one file, whether there is a lock at
// all, and then each descriptor whether it has one.
func LockHolders(path string) (holders []Identity, err error) {
	file, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && locked(file) {
		var all []int
		all, err = pids()
		for _, pid := range all {
			if id, err := Identify(pid); err == nil && locks(pid, file) {
				holders = append(holders, id)
			}
		}
	}
	if err != nil {
		return holders, fmt.Errorf("look who locks %s: %w", path, err)
	}
	return holders, nil
}

// locked reports whether a file may be locked: whether one with its inode is. The device in there is the file
// system's own, which on some (btrfs, overlayfs) is not the one that stat(2) tells.
func locked(file os.FileInfo) bool {
	st, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	all, err := readProc("/proc/locks") // 1: FLOCK  ADVISORY  WRITE 8747 fe:00:3384229 0 EOF
	return err != nil || bytes.Contains(all, []byte(":"+strconv.FormatUint(st.Ino, 10)+" "))
}

// locks reports whether one of a process's descriptors is of that file and has a lock on it.
func locks(pid int, file os.FileInfo) bool {
	base := "/proc/" + strconv.Itoa(pid)
	entries, _ := os.ReadDir(base + "/fd")
	for _, e := range entries {
		if of, err := os.Stat(base + "/fd/" + e.Name()); err != nil || !os.SameFile(of, file) {
			continue
		}
		if b, _ := readProc(base + "/fdinfo/" + e.Name()); holdsLock(b) {
			return true
		}
	}
	return false
}

// holdsLock reports whether a descriptor's fdinfo (proc(5)) names a lock. A lease is named as one too.
func holdsLock(fdinfo []byte) bool {
	for line := range bytes.Lines(fdinfo) {
		if bytes.HasPrefix(line, []byte("lock:")) && bytes.Contains(line, []byte(" ADVISORY ")) {
			return true
		}
	}
	return false
}
