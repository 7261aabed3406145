package state

import (
	"errors"
	"fmt"
	"syscall"
)

// The sentinels of this package. Callers match them with errors.Is.
var (
	// ErrDamaged is returned by Read and Update for a record that is there but cannot be read. The
	// file stays as it is and blocks its id; a copy is in quarantine/. Tell the user; never treat it
	// as absent.
	ErrDamaged = errors.New("record is damaged")
	// ErrNewer is returned for a record or a directory that a newer pintle wrote. Leave it alone.
	ErrNewer = errors.New("written by a newer pintle")
	// ErrNotOurs is returned by Open for a directory that pintle did not make, that belongs to
	// another user, or that is open to others.
	ErrNotOurs = errors.New("not a pintle state directory of this user")
	// ErrFull is returned when the disk or the quota is full. The last good record stays.
	ErrFull = errors.New("no space left")
	// ErrLocked is returned by TryLock when somebody else holds the lock.
	ErrLocked = errors.New("lock is held")
)

// Full marks errors of a full disk or quota, so that callers need not know the errno.
func Full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
