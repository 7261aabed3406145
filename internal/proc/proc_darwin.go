package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This is best effort: no pidfd, no subreaper, no environments of other processes. A pid is checked and
// then signalled, with the short gap that this leaves.

// BootID is the id of this boot.
func BootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return id, nil
}

// BootClock is the time since boot; setting the clock does not change it.
func BootClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Read returns the status of a process, zombies too; ErrGone if there is none.
func Read(pid int) (Stat, error) {
	kp, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) { // EIO: x/sys got no entry
		return Stat{}, absent(pid)
	}
	if err != nil {
		return Stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return statOf(kp), nil
}

func statOf(kp *unix.KinfoProc) Stat {
	state := byte('S')
	if kp.Proc.P_stat == 5 { // SZOMB
		state = 'Z'
	}
	start := kp.Proc.P_starttime
	return Stat{
		PID: int(kp.Proc.P_pid), PPID: int(kp.Eproc.Ppid), PGID: int(kp.Eproc.Pgid),
		State: state, StartTicks: uint64(start.Sec)*1e6 + uint64(start.Usec),
	}
}

// Args is not known here.
func Args(int) ([]string, error) { return nil, errors.ErrUnsupported }

// Signal signals that very process, or returns ErrGone.
func Signal(id Identity, sig syscall.Signal) error {
	if err := signalable(id.PID); err != nil {
		return err
	}
	if err := id.check(); err != nil {
		return err
	}
	err := syscall.Kill(id.PID, sig)
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return nil
}

// Await returns nil once that very process is dead, or the context's error.
func Await(ctx context.Context, id Identity) error {
	return poll(ctx, 20*time.Millisecond, func() bool { return id.Liveness() == Dead })
}

// WithToken finds nothing: environments of other processes cannot be read.
func WithToken(string, func(string) bool) ([]Tagged, error) { return nil, nil }

// Variable finds nothing, for the same reason.
func Variable(int, string) (string, bool) { return "", false }

// Tree returns the live processes below root, and the zombies there.
func Tree(root int, spare func(Stat, []string) bool) (living []Identity, zombies []int, err error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, nil, fmt.Errorf("list processes: %w", err)
	}
	boot, err := BootID()
	if err != nil {
		return nil, nil, err
	}
	below := map[int][]Stat{}
	for i := range procs {
		st := statOf(&procs[i])
		below[st.PPID] = append(below[st.PPID], st)
	}
	for queue := below[root]; len(queue) > 0; queue = queue[1:] {
		st := queue[0]
		switch {
		case spare != nil && spare(st, nil):
			continue
		case st.dead():
			zombies = append(zombies, st.PID)
		default:
			living = append(living, Identity{PID: st.PID, StartTicks: st.StartTicks, BootID: boot})
		}
		queue = append(queue, below[st.PID]...)
	}
	return living, zombies, nil
}

// BecomeSubreaper does nothing here.
func BecomeSubreaper() error { return nil }

// NextExited polls for a child that has exited. There is no WNOWAIT in the syscall package here, so
// zombies are looked for among the children.
func NextExited() (int, error) {
	for {
		procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
		if err != nil {
			return 0, fmt.Errorf("wait for children: %w", err)
		}
		self, children := syscall.Getpid(), 0
		for i := range procs {
			st := statOf(&procs[i])
			if st.PPID != self {
				continue
			}
			if children++; st.dead() {
				return st.PID, nil
			}
		}
		if children == 0 {
			return 0, ErrNoChildren
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// poll calls done every interval until it is true or ctx ends.
func poll(ctx context.Context, interval time.Duration, done func() bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Zombies returns the children of this process that have exited and were not reaped.
func Zombies() (zombies []int) {
	procs, _ := unix.SysctlKinfoProcSlice("kern.proc.all")
	for i := range procs {
		if st := statOf(&procs[i]); st.PPID == syscall.Getpid() && st.dead() {
			zombies = append(zombies, st.PID)
		}
	}
	return zombies
}

// WithPipe finds nothing: descriptors of other processes cannot be read.
func WithPipe(...uint64) ([]Identity, error) { return nil, nil }

// LockHolders finds nobody, for the same reason.
func LockHolders(string) ([]Identity, error) { return nil, nil }

// WithCwd finds nobody: working directories of other processes cannot be read.
func WithCwd(string, func(int) bool) ([]Occupant, error) { return nil, nil }
