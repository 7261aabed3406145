package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// lockName is in the common git directory. It is never unlinked: that would give two holders.
const lockName = "pintle.lock"

// poll is the time between two tries at a lock. flock(2) can wait by itself, but then no context ends it.
const poll = 2 * time.Millisecond

// lasting switches off what git would leave running behind it, with the lock inherited.
var lasting = []string{"-c", "gc.auto=0", "-c", "maintenance.auto=false"}

// Hold is the lock of one repository. All state directories that have worktrees of it share the lock (X25), and
// what changes a repository is a method of it, so that nothing is changed without.
//
// The commands that are run under it inherit the open file. When the process that holds the lock is killed, a git
// that it left behind goes on, and holds the lock until it is done: the next holder never meets a writer.
type Hold struct {
	repository string
	file       *os.File
}

// Lock waits for the lock of a repository, which is named by its common git directory. Each call opens the file
// anew, since flock locks open files: two goroutines of one process exclude each other as two processes do.
func Lock(ctx context.Context, repository string) (*Hold, error) {
	file, err := openLock(repository)
	if err == nil {
		err = wait(ctx, file)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the repository %s: %w", repository, err)
	}
	return &Hold{repository, file}, nil
}

func openLock(repository string) (*os.File, error) {
	if !isGitDir(repository) {
		return nil, fmt.Errorf("%w there", ErrNone)
	}
	return os.OpenFile(filepath.Join(repository, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// wait tries for the lock until ctx ends, and closes the file if it ends first.
func wait(ctx context.Context, file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			err = pause(ctx)
		}
		if err != nil {
			file.Close()
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(poll):
		return nil
	}
}

// Release gives the lock back. It closes the file and does not unlock it: a child of a git that was cancelled may
// still be at work, and what it inherited keeps the lock until it ends.
func (h *Hold) Release() { h.file.Close() }

// git runs a command on the repository itself, under the lock, and returns what it printed. The directory is given
// and not left to be found: users may forbid git to take a directory that it stands in for a bare repository.
func (h *Hold) git(ctx context.Context, args ...string) ([]byte, error) {
	return h.run(ctx, h.repository, []string{"--git-dir=" + h.repository}, args)
}

// run runs a command in dir, under the lock.
func (h *Hold) run(ctx context.Context, dir string, global, args []string) ([]byte, error) {
	cmd := command(ctx, slices.Concat(quiet, lasting, global, args))
	cmd.Dir = dir
	cmd.Env = environment(os.Environ())
	cmd.WaitDelay = grace
	cmd.ExtraFiles = []*os.File{h.file}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), failure(ctx, dir, args, stderr.String(), err)
	}
	return stdout.Bytes(), nil
}
