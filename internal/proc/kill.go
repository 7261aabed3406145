package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// KillAll sends SIGKILL to all that find returns and waits for the end of each, over and over, since a
// tree may fork while it is being killed. It is done when find returns none; once it has returned some,
// twice in a row, since what changes its parent during a look can be missed by it. When ctx ends first, it
// returns what is left. What we may not signal (a setuid program) is waited for like the rest, so give ctx
// a deadline. An error is find's, or tells that a process could not be looked at or must not be killed.
func KillAll(ctx context.Context, find func() ([]Identity, error)) (left []Identity, err error) {
	for looks := 1; looks > 0; looks-- {
		found, err := find()
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		looks = 3 // two that find nothing, after this one
		if err := killEach(found); err != nil {
			return living(found), err
		}
		if err := awaitEach(ctx, found); err != nil {
			return leftOf(ctx, found, err)
		}
	}
	return nil, nil
}

// killEach goes on after a failure: one process that cannot be killed must not save the others.
func killEach(ids []Identity) error {
	var failed []error
	for _, id := range ids {
		err := kill(id)
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, syscall.EPERM) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func kill(id Identity) error {
	if id.PID == os.Getpid() {
		return fmt.Errorf("kill process %d, which is this one: %w", id.PID, ErrRefused)
	}
	return Signal(id, syscall.SIGKILL)
}

func awaitEach(ctx context.Context, ids []Identity) error {
	for _, id := range ids {
		if err := Await(ctx, id); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// leftOf tells the end of ctx, after which what is left is the answer, from a failure.
func leftOf(ctx context.Context, ids []Identity, err error) ([]Identity, error) {
	if ctx.Err() != nil {
		return living(ids), nil
	}
	return living(ids), err
}

// living returns each that is not proven dead, once.
func living(ids []Identity) (left []Identity) {
	seen := map[Identity]bool{}
	for _, id := range ids {
		if !seen[id] && id.Liveness() != Dead {
			left = append(left, id)
		}
		seen[id] = true
	}
	return left
}
