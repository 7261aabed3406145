package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// What one Copy may take. A pattern that means more than a few files of configuration is a mistake, or a job for set-up.
const (
	maxCopies    = 100_000
	maxCopyBytes = 2 << 30
)

// ErrTooMuch is returned by Copy for patterns that match more than it takes. Narrow the pattern, or have set-up do it.
var ErrTooMuch = errors.New("too much to copy")

// Copy copies what matches the patterns from one working tree to another, directories with all that is in them, and
// returns the paths of what it copied. Patterns are relative to the root and match path by path (path.Match); one that
// matches nothing is fine. Regular files are copied with their permissions, symbolic links as links; anything else, and
// everything called .git, is left out. What is there is never replaced.
//
// It follows no symbolic link in the tree from which it copies, and none that leads out of the other.
//
// Killed at any instant, it leaves whole files and at most one temporary one, which the repetition replaces. Only one
// Copy may be at work in a tree.
func Copy(ctx context.Context, from, to string, patterns []string) (copied []string, err error) {
	return copyWithin(ctx, from, to, patterns, budget{files: maxCopies, bytes: maxCopyBytes})
}

func copyWithin(ctx context.Context, from, to string, patterns []string, limit budget) (copied []string, err error) {
	c := copier{left: limit}
	if c.from, err = os.OpenRoot(from); err != nil {
		return nil, fmt.Errorf("copy from %s: %w", from, err)
	}
	defer c.from.Close()
	if c.to, err = os.OpenRoot(to); err != nil {
		return nil, fmt.Errorf("copy to %s: %w", to, err)
	}
	defer c.to.Close()
	for _, pattern := range patterns {
		if err := c.match(ctx, ".", strings.Split(strings.TrimSuffix(pattern, "/"), "/")); err != nil {
			return c.copied, fmt.Errorf("copy %q from %s: %w", pattern, from, err)
		}
	}
	return c.copied, nil
}

// copier is one Copy under way.
type copier struct {
	from, to *os.Root
	left     budget
	copied   []string
}

// match copies what matches below a directory, the parts of a pattern being of one name each. It goes down into real
// directories only.
func (c *copier) match(ctx context.Context, dir string, parts []string) error {
	entries, err := fs.ReadDir(c.from.FS(), dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		ok, err := path.Match(parts[0], entry.Name())
		if err != nil {
			return err
		}
		name := path.Join(dir, entry.Name())
		switch {
		case !ok || entry.Name() == ".git":
		case len(parts) == 1:
			err = c.take(ctx, name, entry)
		case entry.IsDir():
			err = c.match(ctx, name, parts[1:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take copies what has matched.
func (c *copier) take(ctx context.Context, name string, entry fs.DirEntry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.left.files--; c.left.files < 0 {
		return fmt.Errorf("%w: over %d files", ErrTooMuch, maxCopies)
	}
	switch entry.Type() {
	case fs.ModeDir:
		return c.directory(ctx, name)
	case fs.ModeSymlink:
		return c.put(name, c.link)
	case 0:
		return c.put(name, c.file)
	}
	return nil // a socket, a pipe or a device belongs to what has it open
}

// directory copies all that is in a directory. One that is empty is made too: something may count on it.
func (c *copier) directory(ctx context.Context, name string) error {
	if err := c.mkdir(name); err != nil {
		return err
	}
	return c.match(ctx, name, []string{"*"})
}

// mkdir makes a directory and its parents, with the permissions that they have; ours to write to in any case.
func (c *copier) mkdir(name string) error {
	if there, err := c.to.Stat(name); err == nil && there.IsDir() {
		return nil
	}
	if err := c.mkdir(path.Dir(name)); err != nil {
		return err
	}
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	if err := c.to.Mkdir(name, 0o700); err != nil {
		return err
	}
	return c.to.Chmod(name, info.Mode().Perm()|0o700)
}

// put makes what is to be at name under another one and renames it, unless something is there.
func (c *copier) put(name string, make func(name, temporary string) error) error {
	temporary := temporaryOf(name)
	if err := c.to.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := c.to.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := make(name, temporary); err != nil {
		_ = c.to.Remove(temporary)
		return err
	}
	if err := c.to.Rename(temporary, name); err != nil {
		return err
	}
	c.copied = append(c.copied, name)
	return nil
}

// temporaryOf is beside the file, always the same of one name, so that a repetition finds what was left, and no longer
// than a name may be.
func temporaryOf(name string) string {
	dir, base := path.Split(name)
	sum := sha256.Sum256([]byte(base))
	return dir + ".pintle-copy-" + hex.EncodeToString(sum[:8])
}

func (c *copier) link(name, temporary string) error {
	target, err := c.from.Readlink(name)
	if err != nil {
		return err
	}
	return c.to.Symlink(target, temporary)
}

// file copies a regular file. Since it was listed it may have become a pipe or a link: neither is waited for or followed.
func (c *copier) file(name, temporary string) error {
	in, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	listed, err := c.from.Lstat(name)
	if err != nil || !os.SameFile(info, listed) || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: changed while it was copied", name)
	}
	out, err := c.to.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = c.pour(out, in, info.Mode().Perm())
	return errors.Join(err, out.Close())
}

// pour copies bytes within what is left. The permissions come last: what is half a file is nobody else's.
func (c *copier) pour(out, in *os.File, perm fs.FileMode) error {
	n, err := io.Copy(out, io.LimitReader(in, c.left.bytes+1))
	if c.left.bytes -= n; c.left.bytes < 0 {
		return fmt.Errorf("%w: over %d bytes", ErrTooMuch, int64(maxCopyBytes))
	}
	if err != nil {
		return err
	}
	return out.Chmod(perm)
}
