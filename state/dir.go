// Package state keeps pintle's records: JSON files in one directory that short-lived processes read and
// change together.
//
// Invariants:
//   - A record is changed by Update alone: one lock file, one read, one change, one atomic rename.
//   - A reader sees the old bytes or the new ones, never a mixture, and needs no lock.
//   - After Update returned nil the change outlives a power cut (file and directory are synced).
//   - What cannot be read is never taken for absent (ErrDamaged, ErrNewer).
//   - Lock files are never unlinked: an unlinked lock has two holders.
//
// It knows nothing of what the records mean.
package state

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// LayoutVersion is the newest layout of the directory that this code reads and writes.
const LayoutVersion = 1

// Layout is layout.json: what the directory is.
type Layout struct {
	Version int    `json:"version"`
	HomeID  string `json:"homeId"`
	// Inode is that of the directory when it was made. A copy, or one that was restored from a cache,
	// has another: what runs under the original is not its own (demand X38).
	Inode uint64 `json:"inode"`
}

// Dir is an open state directory.
type Dir struct {
	path   string
	layout Layout
	moved  bool
}

// Open returns the state directory at path, which must be absolute, and makes it if it is absent or
// empty. Errors: ErrNotOurs, ErrNewer, ErrDamaged, ErrFull, or of the file system.
func Open(ctx context.Context, path string) (*Dir, error) {
	d, err := OpenExisting(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	if err := create(ctx, path); err != nil {
		return nil, fmt.Errorf("make state directory %s: %w", path, unmade(Full(err)))
	}
	return OpenExisting(path)
}

// unmade says of a directory that cannot be made that it is none of ours, if nothing else is known.
func unmade(err error) error {
	if errors.Is(err, ErrFull) || errors.Is(err, ErrNotOurs) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotOurs, err)
}

// OpenExisting is Open without making anything: fs.ErrNotExist says that there is no state yet.
func OpenExisting(path string) (*Dir, error) {
	inode, mode, err := examine(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path}
	layout, err := Read[Layout](d, "layout.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, foreign(path, err)
	}
	if err != nil {
		return nil, err
	}
	// One that is not made yet gets its mode when it is.
	if mode&0o022 != 0 {
		return nil, fmt.Errorf("state directory %s: %w: others may write to it (chmod 700)", path, ErrNotOurs)
	}
	d.layout, d.moved = layout, layout.Inode != inode
	return d, nil
}

// examine refuses what is no directory or belongs to somebody else.
func examine(path string) (inode uint64, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return 0, 0, fmt.Errorf("state directory %s: %w: a part of the path is no directory", path, ErrNotOurs)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("state directory: %w", err)
	}
	if !info.IsDir() {
		return 0, 0, fmt.Errorf("state directory %s: %w: it is no directory", path, ErrNotOurs)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() {
		return 0, 0, fmt.Errorf("state directory %s: %w: it belongs to uid %d", path, ErrNotOurs, st.Uid)
	}
	if !ok {
		return 0, info.Mode(), nil
	}
	return st.Ino, info.Mode(), nil
}

// foreign tells a directory that is not made yet (empty, or made up to the layout by one that was
// killed) from somebody else's files.
func foreign(path string, absent error) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "layout.json" {
			return absent // it was made since we looked: that is whom Open joins
		}
	}
	for _, e := range entries {
		if e.Name() != "locks" && e.Name() != "quarantine" && !temporary(e.Name()) {
			return fmt.Errorf("state directory %s: %w: it holds %s and no layout.json", path, ErrNotOurs, e.Name())
		}
	}
	return absent
}

func create(ctx context.Context, path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(path, "locks"), 0o700); err != nil {
		return err
	}
	d := &Dir{path: path}
	inode, _, err := examine(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	return Update(ctx, d, "layout.json", func(l *Layout) error {
		if l.Version == 0 {
			*l = Layout{Version: LayoutVersion, HomeID: newHomeID(), Inode: inode}
		}
		return nil
	})
}

func newHomeID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// Settle gives a moved directory an id of its own, once everything in it that had not ended was
// settled: from then on it is an original. It is the supervisor's to call.
func (d *Dir) Settle(ctx context.Context) error {
	inode, _, err := examine(d.path)
	if err != nil {
		return err
	}
	err = Update(ctx, d, "layout.json", func(l *Layout) error {
		l.HomeID, l.Inode = newHomeID(), inode
		d.layout = *l
		return nil
	})
	d.moved = d.moved && err != nil
	return err
}

// Path is the absolute path of the file called by the elements under the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// HomeID names this directory in the tokens of its processes.
func (d *Dir) HomeID() string { return d.layout.HomeID }

// Moved reports whether the directory is a copy of the one that its layout was written for.
func (d *Dir) Moved() bool { return d.moved }

// Mkdir makes a directory of records, 0700, with its parents, and syncs the parent of what it made, so
// that a record written into it cannot be lost with it.
func (d *Dir) Mkdir(elem ...string) error {
	path := d.Path(elem...)
	err := os.Mkdir(path, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && len(elem) > 0:
		if err := d.Mkdir(elem[:len(elem)-1]...); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("make directory: %w", Full(err))
	}
	return SyncDir(filepath.Dir(path))
}
