package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// WithCwd returns the live processes whose working directory is dir or below, unless spare accepts them. Directories
// are compared as device and inode, going up from each: a mount, a link or another root may give them another name.
// A working directory that was deleted is below nothing. Processes that we may not look at, which are other users',
// are left out.
func WithCwd(dir string, spare func(pid int) bool) (found []Occupant, err error) {
	root, err := inodeOf(dir)
	if err != nil {
		return nil, fmt.Errorf("look for processes in %s: %w", dir, err)
	}
	all, err := pids()
	below := directories{root: true}
	for _, pid := range all {
		if !below.cwd(pid) || spare != nil && spare(pid) {
			continue
		}
		if st, err := Read(pid); err == nil && !st.dead() {
			args, _ := Args(pid)
			found = append(found, Occupant{pid, commandLine(args, st.Comm)})
		}
	}
	return found, err
}

// inode names a directory, whatever path leads there.
type inode struct{ dev, ino uint64 }

// directories have been looked at: true are the one that is asked for, and what is below.
type directories map[inode]bool

func inodeOf(path string) (inode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return inode{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink == 0 {
		return inode{}, os.ErrNotExist // deleted, and still somebody's working directory
	}
	return inode{uint64(st.Dev), st.Ino}, nil
}

// cwd reports whether a process works there.
func (d directories) cwd(pid int) bool {
	path := "/proc/" + strconv.Itoa(pid) + "/cwd"
	here, err := inodeOf(path)
	return err == nil && d.below(path, here)
}

// below goes up to the top, where .. leads nowhere else, or to a directory that is known. Each is looked at once.
func (d directories) below(path string, here inode) bool {
	if known, ok := d[here]; ok {
		return known
	}
	up, err := inodeOf(path + "/..")
	found := err == nil && up != here && d.below(path+"/..", up)
	d[here] = found
	return found
}
