package proc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BootID is the kernel's random id of this boot.
func BootID() (string, error) { return bootID() }

// bootID is read once: no process lives through a boot.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
})

// readProc reads a file of one process. Looks at all processes read hundreds, so it makes no more system calls than
// it must: none to learn a size that /proc does not tell, none to poll what never blocks, and none to see the end
// again, since the kernel fills the buffer as long as there is something.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	b := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return b, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if b = b[:len(b)+n]; len(b) < cap(b) {
			return b, nil
		}
		b = slices.Grow(b, len(b))
	}
}

// BootClock is the time since boot, suspends included. Setting the clock does not change it, and two
// processes of one boot read the same.
func BootClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // cannot fail since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// Read returns the status of a process, zombies too; ErrGone if there is none.
func Read(pid int) (Stat, error) {
	b, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Stat{}, absent(pid)
	}
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	st, err := ParseStat(b)
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return st, nil
}

// Args is the command line of a process.
func Args(pid int) ([]string, error) {
	b, err := readProc("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, fmt.Errorf("read command line of %d: %w", pid, err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}

// open returns a pidfd of that very process: the identity is checked after the descriptor is held, so the
// pid cannot be given to another process in between. Whose identity cannot be read is not opened.
func (id Identity) open() (int, error) {
	if err := signalable(id.PID); err != nil {
		return -1, err
	}
	fd, openErr := unix.PidfdOpen(id.PID, 0)
	err := id.check()
	if openErr == nil && err == nil {
		return fd, nil
	}
	if openErr == nil {
		_ = unix.Close(fd)
	}
	// Gone comes first: a pid that is a thread's by now cannot be opened, with an error that varies.
	if errors.Is(openErr, unix.ESRCH) || errors.Is(err, ErrGone) {
		return -1, fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	return -1, fmt.Errorf("open process %d: %w", id.PID, cmp.Or(openErr, err))
}

// Signal signals that very process, or returns ErrGone.
func Signal(id Identity, sig syscall.Signal) error {
	fd, err := id.open()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return nil
}

// awaitSlice bounds, in milliseconds, how late Await sees that its context ended.
const awaitSlice = 20

// Await returns nil once that very process is dead (a zombie is), or the context's error.
func Await(ctx context.Context, id Identity) error {
	fd, err := id.open()
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, awaitSlice)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", id.PID, err)
		}
	}
	return ctx.Err()
}

// WithToken returns the live processes whose environment has name=value with a value that match accepts.
// What vanishes or may not be read meanwhile is left out. It is the environment that the program was
// started with; one that cleared it is only found by Descendants.
func WithToken(name string, match func(value string) bool) ([]Tagged, error) {
	pids, err := pids()
	if err != nil {
		return nil, err
	}
	var found []Tagged
	for _, pid := range pids {
		value, ok := Variable(pid, name)
		if !ok || !match(value) {
			continue
		}
		id, err := Identify(pid)
		if err != nil {
			continue
		}
		// Once more: the pid may have been given to another process before it was identified.
		if again, ok := Variable(pid, name); !ok || again != value {
			continue
		}
		args, _ := Args(pid)
		found = append(found, Tagged{Identity: id, Token: value, Args: args})
	}
	return found, nil
}

func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Variable looks a variable up in the environment that a process was started with.
func Variable(pid int, name string) (string, bool) {
	b := environ(pid)
	key := []byte(name + "=")
	for len(b) > 0 {
		entry, rest, _ := bytes.Cut(b, []byte{0})
		if value, ok := bytes.CutPrefix(entry, key); ok {
			return string(value), true
		}
		b = rest
	}
	return "", false
}

// environ is the initial environment of a process. A first thread that has ended shows none (ESRCH, an empty
// one on older kernels); the other threads still have it.
func environ(pid int) []byte {
	base := "/proc/" + strconv.Itoa(pid)
	b, err := readProc(base + "/environ")
	if len(b) > 0 || (err != nil && !errors.Is(err, syscall.ESRCH)) {
		return b
	}
	if st, err := Read(pid); err != nil || st.State != 'Z' || st.dead() {
		return nil
	}
	tasks, _ := os.ReadDir(base + "/task")
	for _, task := range tasks {
		if b, _ := readProc(base + "/task/" + task.Name() + "/environ"); len(b) > 0 {
			return b
		}
	}
	return nil
}

// BecomeSubreaper has orphans below this process become its children (PR_SET_CHILD_SUBREAPER): what calls
// setsid and outlives its parent stays in our tree.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// NextExited blocks until a child has exited and returns its pid. The child is left a zombie, so that its
// pid and its group's number stay taken until Reap.
func NextExited() (int, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return 0, ErrNoChildren
		case err != nil:
			return 0, fmt.Errorf("wait for children: %w", err)
		default:
			return siginfoPID(&info), nil
		}
	}
}

// WithPipe returns the live processes that hold one of the pipes with the given inodes open. A pipe's inode is
// not given again before the kernel's counter has gone round.
func WithPipe(inodes ...uint64) (found []Identity, err error) {
	want := map[string]bool{}
	for _, inode := range inodes {
		want["pipe:["+strconv.FormatUint(inode, 10)+"]"] = true
	}
	if len(want) == 0 {
		return nil, nil
	}
	all, err := pids()
	for _, pid := range all {
		if id, err := Identify(pid); err == nil && holds(pid, want) {
			found = append(found, id)
		}
	}
	return found, err
}

func holds(pid int, want map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); err == nil && want[to] {
			return true
		}
	}
	return false
}
