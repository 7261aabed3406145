// Package proc starts, identifies and ends processes. It is the only package that signals.
//
// Invariants:
//   - A process is named by pid, start ticks and boot id together: a pid alone is reused.
//   - Nothing is signalled whose identity was not checked, pid 1 and below never.
//   - A process counts as dead only on proof; a zombie is dead.
//   - A process is found by the token in its environment or by its place in our tree, never by name.
package proc

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrGone is returned for a process that is not there any more, that is a zombie, or whose pid
	// belongs to another one by now.
	ErrGone = errors.New("process is gone")
	// ErrNoChildren is returned by NextExited when there is nothing to wait for.
	ErrNoChildren = errors.New("no children")
	// ErrRefused is returned for a signal to pid 1, to every process, or to our own group, and by KillAll
	// when it is told to kill its own process. It is a mistake of the caller.
	ErrRefused = errors.New("refusing to signal")
)

// Identity names one process for good. Two processes can only share it if all pids were handed out once
// within one clock tick (10 ms).
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"` // since boot, in the kernel's clock ticks
	BootID     string `json:"bootId"`
}

// Liveness is what can be said of a process.
type Liveness int

const (
	// Uncertain: it could not be found out. It must not be taken for dead.
	Uncertain Liveness = iota
	// Alive: it runs, or is stopped.
	Alive
	// Dead: proven; absent, a zombie, another process by now, or of another boot.
	Dead
)

func (l Liveness) String() string {
	return [...]string{"uncertain", "alive", "dead"}[l]
}

// Stat is what the system says of a process.
type Stat struct {
	PID, PPID, PGID, SID int
	Comm                 string
	State                byte // R S D T Z …
	StartTicks           uint64
	Threads              int // 0 where the system does not say
}

// dead is not just a matter of the state: a process whose first thread has ended shows as a zombie while
// its other threads run on, and the kernel lets nobody wait for it until they have ended too.
func (s Stat) dead() bool {
	return s.State == 'X' || s.State == 'x' || (s.State == 'Z' && s.Threads <= 1)
}

// Tagged is a live process whose environment carries a token.
type Tagged struct {
	Identity
	Token string
	Args  []string
}

// Exit is how a process ended. Code counts when Signal is 0.
type Exit struct {
	PID    int
	Code   int
	Signal syscall.Signal
	Core   bool // a core was dumped
}

// Identify returns the identity of a live process, or ErrGone.
func Identify(pid int) (Identity, error) {
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	st, err := Read(pid)
	if err != nil {
		return Identity{}, err
	}
	if st.dead() {
		return Identity{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, StartTicks: st.StartTicks, BootID: boot}, nil
}

// Liveness says whether that very process lives.
func (id Identity) Liveness() Liveness {
	switch err := id.check(); {
	case err == nil:
		return Alive
	case errors.Is(err, ErrGone):
		return Dead
	}
	return Uncertain
}

// check returns nil if that very process lives, ErrGone if it is proven not to, else why nobody can tell.
func (id Identity) check() error {
	if id.PID <= 0 {
		return fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	boot, err := BootID()
	if err != nil {
		return err
	}
	if boot != id.BootID {
		return fmt.Errorf("process %d of an earlier boot: %w", id.PID, ErrGone)
	}
	now, err := Read(id.PID)
	if err != nil {
		return err
	}
	if now.dead() || now.StartTicks != id.StartTicks {
		return fmt.Errorf("process %d: %w", id.PID, ErrGone)
	}
	return nil
}

// absent is what a missing entry in the process table means. It proves nothing by itself: where /proc is
// mounted with hidepid, what belongs to others is just not shown. Signal 0 sends nothing.
func absent(pid int) error {
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d is hidden from us", pid)
	}
	return fmt.Errorf("process %d: %w", pid, ErrGone)
}

// signalable refuses what would reach more than one process of ours.
func signalable(pid int) error {
	if pid <= 1 {
		return fmt.Errorf("pid %d: %w", pid, ErrRefused)
	}
	return nil
}

// SignalGroup signals the process group pgid; ErrGone if it has no member. An unreaped zombie is one still,
// so success does not mean that anything lived. The caller holds the group's leader unreaped or knows that
// it lives: only so does the number still mean this group.
func SignalGroup(pgid int, sig syscall.Signal) error {
	if err := signalable(pgid); err != nil {
		return err
	}
	if pgid == syscall.Getpgrp() {
		return fmt.Errorf("group %d is our own: %w", pgid, ErrRefused)
	}
	err := syscall.Kill(-pgid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("group %d: %w", pgid, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("signal group %d: %w", pgid, err)
	}
	return nil
}

// TokenOf is the value of a variable in the environment that a process was started with; false if it has none, or it
// cannot be read any more.
func TokenOf(id Identity, variable string) (string, bool) {
	value, ok := Variable(id.PID, variable)
	// Checked after the read: who has the pid now and had it when he was identified had it in between.
	if !ok || id.check() != nil {
		return "", false
	}
	return value, true
}

// Descendants returns the live processes below root, as Tree does.
func Descendants(root int, spare func(Stat, []string) bool) ([]Identity, error) {
	living, _, err := Tree(root, spare)
	return living, err
}
