// Package proc starts, identifies and ends processes. It is the only package that signals.
//
// Invariants:
//   - A process is named by pid, start ticks and boot id together: a pid alone is reused.
//   - Nothing is signalled whose identity was not checked, pid 1 and below never.
//   - A process counts as dead only on proof; a zombie is dead.
//   - A process is found by the token in its environment or by its place in our tree, never by name.
package proc

import (
	"context"
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
	// ErrRefused is returned for a signal to pid 1, to every process, or to our own group.
	ErrRefused = errors.New("refusing to signal")
)

// Identity names one process for good.
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
	State                byte // R S D T Z …; Z and X are dead
	StartTicks           uint64
}

func (s Stat) dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

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
	if id.PID <= 0 {
		return Dead
	}
	now, err := Identify(id.PID)
	switch {
	case errors.Is(err, ErrGone):
		return Dead
	case err != nil:
		return Uncertain
	case now != id:
		return Dead
	}
	return Alive
}

// signalable refuses what would reach more than one process of ours.
func signalable(pid int) error {
	if pid <= 1 {
		return fmt.Errorf("pid %d: %w", pid, ErrRefused)
	}
	return nil
}

// SignalGroup signals the process group pgid; ErrGone if it has no member. The caller holds the group's
// leader unreaped or knows that it lives: only so does the number still mean this group.
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

// KillAll sends SIGKILL to all that find returns, over and over, since a tree may fork while it is being
// killed, until find returns none. When ctx ends first it returns what is left.
func KillAll(ctx context.Context, find func() ([]Identity, error)) (left []Identity, err error) {
	for {
		found, err := find()
		if err != nil || len(found) == 0 {
			return nil, err
		}
		for _, id := range found {
			if err := Signal(id, syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
				return found, err
			}
		}
		if err := awaitAll(ctx, found); err != nil {
			return living(found), nil
		}
	}
}

func awaitAll(ctx context.Context, ids []Identity) error {
	for _, id := range ids {
		if err := Await(ctx, id); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func living(ids []Identity) (left []Identity) {
	for _, id := range ids {
		if id.Liveness() != Dead {
			left = append(left, id)
		}
	}
	return left
}
