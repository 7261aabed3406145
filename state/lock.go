package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// pollLock is how often a lock that another process holds is asked for again. flock(2) has no wait with
// a deadline, and a blocked call cannot be cancelled.
const pollLock = 2 * time.Millisecond

// held are the mutexes before the locks: goroutines of one process queue here and do not poll the file.
var held sync.Map // path of the lock file → chan struct{} of capacity 1

// Lock takes the lock file called name under locks/ and returns how to release it. Two processes, or
// two goroutines, never hold it together; a process that dies lets go of it.
func (d *Dir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	path := d.Path("locks", name)
	slot, _ := held.LoadOrStore(path, make(chan struct{}, 1))
	mutex := slot.(chan struct{})
	select {
	case mutex <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
	}
	// A value of its own for every acquisition: flock.Flock is re-entrant.
	f := flock.New(path, flock.SetPermissions(0o600))
	if _, err := f.TryLockContext(ctx, pollLock); err != nil {
		<-mutex
		return nil, fmt.Errorf("lock %s: %w", name, Full(err))
	}
	return func() { _ = f.Unlock(); <-mutex }, nil
}

// TryLock takes the lock file at path at once or returns ErrLocked; fs.ErrNotExist when there is no such
// directory. Whoever holds the lock of a runtime so has proof that its shim is dead.
func TryLock(path string) (unlock func(), err error) { return try(path, (*flock.Flock).TryLock) }

// TryShared is TryLock for who only looks: any number of them share the lock, and none is taken for a holder by
// another one.
func TryShared(path string) (unlock func(), err error) { return try(path, (*flock.Flock).TryRLock) }

func try(path string, take func(*flock.Flock) (bool, error)) (unlock func(), err error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := take(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, Full(err))
	case !ok:
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", filepath.Base(path), ErrLocked)
	}
	return func() { _ = f.Unlock() }, nil
}

// recordLock names the lock of a record: 256 files serve all of them.
func recordLock(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:1])
}

// LockRecord takes the lock under which Update changes the record at path (relative), for what moves the
// record as a whole. Nothing else may be locked meanwhile.
func (d *Dir) LockRecord(ctx context.Context, path string) (unlock func(), err error) {
	return d.Lock(ctx, recordLock(path))
}
