package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BootID is the kernel's random id of this boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Stat{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return ParseStat(b)
}

// Args is the command line of a process.
func Args(pid int) ([]string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, fmt.Errorf("read command line of %d: %w", pid, err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}

// open returns a pidfd of that very process: the identity is checked after the descriptor is held, so the
// pid cannot be given to another process in between.
func (id Identity) open() (int, error) {
	if err := signalable(id.PID); err != nil {
		return -1, err
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", id.PID, err)
	}
	if id.Liveness() == Dead {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	return fd, nil
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
// What vanishes or may not be read meanwhile is left out.
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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
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

// Descendants returns the live processes below root. One that spare accepts is left out with all below it.
func Descendants(root int, spare func(Stat, []string) bool) ([]Identity, error) {
	children, err := childrenTable(root)
	if err != nil {
		return nil, err
	}
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	var found []Identity
	for queue := children(root); len(queue) > 0; queue = queue[1:] {
		st, err := Read(queue[0])
		if err != nil {
			continue
		}
		if args, _ := Args(st.PID); spare != nil && spare(st, args) {
			continue
		}
		if !st.dead() {
			found = append(found, Identity{PID: st.PID, StartTicks: st.StartTicks, BootID: boot})
		}
		queue = append(queue, children(st.PID)...)
	}
	return found, nil
}

// childrenTable returns how to look up children: from the kernel's own lists, which exist where it was
// built with checkpoint support (CONFIG_PROC_CHILDREN), else from one look at all processes.
func childrenTable(root int) (func(int) []int, error) {
	if _, err := os.Stat("/proc/" + strconv.Itoa(root) + "/task/" + strconv.Itoa(root) + "/children"); err == nil {
		return kernelChildren, nil
	}
	all, err := pids()
	if err != nil {
		return nil, err
	}
	below := map[int][]int{}
	for _, pid := range all {
		if st, err := Read(pid); err == nil {
			below[st.PPID] = append(below[st.PPID], pid)
		}
	}
	return func(pid int) []int { return below[pid] }, nil
}

func kernelChildren(pid int) (children []int) {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, _ := os.ReadDir(base)
	for _, task := range tasks {
		b, _ := os.ReadFile(base + "/" + task.Name() + "/children")
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
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

// Zombies returns the children of this process that have exited and were not reaped.
func Zombies() (zombies []int) {
	children, err := childrenTable(os.Getpid())
	if err != nil {
		return nil
	}
	for _, pid := range children(os.Getpid()) {
		if st, err := Read(pid); err == nil && st.dead() {
			zombies = append(zombies, pid)
		}
	}
	return zombies
}
