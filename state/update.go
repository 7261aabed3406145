package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/pintle/pintle/internal/crash"
)

// RecordVersion is the version of records that this code reads; a record says its own in "version".
const RecordVersion = 1

// Update changes the record at path (relative to the directory) by fn, under the record's lock, and
// returns once the change is durable. fn gets the zero value if there is no record, must do no I/O, and
// an error from it leaves everything as it was. Equal bytes write nothing.
//
// Of two Updates one comes second and sees what the first wrote. Killed at any point, the record is the
// old or the new one, whole.
func Update[T any](ctx context.Context, d *Dir, path string, fn func(*T) error) error {
	unlock, err := d.Lock(ctx, recordLock(path))
	if err != nil {
		return err
	}
	defer unlock()
	crash.At("state.locked")
	old, err := os.ReadFile(d.Path(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	record, err := decode[T](d, path, old, err == nil)
	if err != nil {
		return err
	}
	if err := fn(&record); err != nil {
		return err
	}
	return d.replace(path, old, record)
}

func (d *Dir) replace(path string, old []byte, record any) error {
	data, err := encode(record)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if bytes.Equal(data, old) {
		return nil
	}
	if err := d.write(path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// write puts data at path and syncs the directory, which renameio leaves to its callers.
func (d *Dir) write(path string, data []byte) error {
	if err := d.WriteSide(path, data); err != nil {
		return err
	}
	crash.At("state.renamed")
	if err := SyncDir(filepath.Dir(d.Path(path))); err != nil {
		return err
	}
	crash.At("state.synced")
	return nil
}

// WriteSide puts data at path (relative) atomically, without syncing the directory: the rename is
// durable with the next Update of a record beside it, which is what names the file.
func (d *Dir) WriteSide(path string, data []byte) error {
	target := d.Path(path)
	crash.At("state.write")
	f, err := renameio.NewPendingFile(target,
		renameio.WithTempDir(filepath.Dir(target)), renameio.WithPermissions(0o600), renameio.IgnoreUmask())
	if err != nil {
		return Full(err)
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(data); err != nil {
		return Full(err)
	}
	crash.At("state.written")
	return Full(f.CloseAtomicallyReplace())
}

// Read returns the record at path (relative). Errors: fs.ErrNotExist, ErrDamaged, ErrNewer.
func Read[T any](d *Dir, path string) (T, error) {
	data, done, err := readFile(d.Path(path))
	defer done()
	if err != nil {
		var zero T
		return zero, fmt.Errorf("read %s: %w", path, err)
	}
	return decode[T](d, path, data, true)
}

// decode makes a record of bytes. Nothing but a whole JSON object of a version that we know is one.
func decode[T any](d *Dir, path string, data []byte, exists bool) (record T, err error) {
	if !exists {
		return record, nil
	}
	err = json.Unmarshal(data, &record)
	version := versioned(data)
	switch {
	case version > RecordVersion:
		return record, fmt.Errorf("%s: %w", path, ErrNewer)
	case err == nil && version < 1: // null, {}: a zero value would be taken for a record that is absent
		err = errors.New("it has no version")
	case err == nil:
		return record, nil
	}
	d.quarantine(path, data)
	return record, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
}

// versioned finds the "version" of a record without decoding it twice: it is always the first field
// that we write; a newer layout's may stand anywhere.
func versioned(data []byte) int {
	if bytes.HasPrefix(data, []byte(`{"version":1,`)) {
		return 1
	}
	var v struct {
		Version int `json:"version"`
	}
	_ = json.Unmarshal(data, &v)
	return v.Version
}

// quarantine keeps a copy of what could not be read, once for the same bytes. It is best effort: the
// file itself stays where it is.
func (d *Dir) quarantine(path string, data []byte) {
	sum := sha256.Sum256(data)
	name := strings.ReplaceAll(path, "/", "_") + "." + hex.EncodeToString(sum[:4])
	copied := d.Path("quarantine", name)
	if _, err := os.Lstat(copied); err == nil || d.Mkdir("quarantine") != nil {
		return
	}
	_ = renameio.WriteFile(copied, data, 0o600, renameio.WithTempDir(filepath.Dir(copied)))
}

// encode writes a record as one line, so that it can be read with cat, jq and grep.
func encode(record any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(record)
	return b.Bytes(), err
}

// SyncDir makes what was created, renamed or removed in a directory durable.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, Full(err))
	}
	return nil
}

// temporary reports whether a file of that name is one that an interrupted write left.
func temporary(name string) bool { return strings.HasPrefix(name, ".") }

// CleanTemporary removes what interrupted writes left in dir (relative), if it is older than age. It holds the lock
// of the record that a file was meant for; records that are written without it, by Put, need their one writer to
// call this, or an age that no write reaches.
func (d *Dir) CleanTemporary(ctx context.Context, dir string, age time.Duration) {
	entries, _ := os.ReadDir(d.Path(dir))
	for _, e := range entries {
		if !temporary(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < age {
			continue
		}
		unlock, err := d.LockRecord(ctx, filepath.Join(dir, meant(e.Name())))
		if err != nil {
			return
		}
		_ = os.Remove(d.Path(dir, e.Name()))
		unlock()
	}
}

// meant is the name of the record that a temporary file was to become: the digits at its end are random.
func meant(temporary string) string { return strings.TrimRight(temporary[1:], "0123456789") }

// Put replaces the record at path, whatever it was: for a file's only writer, who knows better.
func Put(ctx context.Context, d *Dir, path string, record any) error {
	data, err := encode(record)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.write(path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
