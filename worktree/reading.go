package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// reader reads the files of a directory for keeping. It goes through the open directory, so that a link that is put
// in the way meanwhile leads nowhere outside.
type reader struct {
	root     *os.Root
	progress func(files int, bytes int64)
	files    int
	bytes    int64
}

func openReader(dir string, progress func(int, int64)) (*reader, error) {
	root, err := os.OpenRoot(dir)
	if progress == nil {
		progress = func(int, int64) {}
	}
	return &reader{root: root, progress: progress}, err
}

func (r *reader) close() { _ = r.root.Close() }

// sink takes one version of a file: begin is told its size before the bytes come.
type sink struct {
	begin func(fs.FileInfo) (io.Writer, error)
	end   func() error
}

// readings is how often a file is read anew that was written to meanwhile.
const readings = 3

// content hands a regular file over. The size is told first and kept to, whatever happens: one that grows is cut
// there, one that shrinks is filled up with zeros, and both are read again, so that the last version that is handed
// over is the one that counts. The error is fs.ErrNotExist when the file is gone, or is no regular file any more.
func (r *reader) content(name string, to sink) error {
	for try := 1; ; try++ {
		whole, steady, err := r.once(name, to)
		if err != nil {
			return err
		}
		if steady {
			break
		}
		if try >= readings && !whole {
			return fmt.Errorf("%s shrinks while it is read", name)
		}
		if try >= readings {
			break // whole, as it was at one moment; a log that somebody writes to never stands still
		}
	}
	r.files++
	r.progress(r.files, r.bytes)
	return nil
}

// once reports whether as many bytes were there as the file had at first, and whether it is unchanged since.
func (r *reader) once(name string, to sink) (whole, steady bool, err error) {
	file, before, err := r.open(name)
	if err != nil {
		return false, false, err
	}
	defer file.Close()
	w, err := to.begin(before)
	if err != nil {
		return false, false, err
	}
	n, err := io.CopyN(w, file, before.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return false, false, err
	}
	r.bytes += n
	whole = n == before.Size()
	if _, err := io.CopyN(w, zeros{}, before.Size()-n); err != nil {
		return false, false, err
	}
	after, err := file.Stat()
	if err != nil {
		return false, false, err
	}
	return whole, whole && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime()), to.end()
}

// open opens a regular file and nothing else: a pipe is not waited for, a link not followed. os.Root follows links that
// stay inside, whatever the flags, so the name is looked at before and after.
func (r *reader) open(name string) (*os.File, fs.FileInfo, error) {
	for try := 1; ; try++ {
		if err := r.regular(name); err != nil {
			return nil, nil, err
		}
		file, err := r.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, nil, errors.Join(err, r.regular(name))
		}
		opened, err := file.Stat()
		now, nowErr := r.root.Lstat(name)
		if err == nil && nowErr == nil && os.SameFile(opened, now) {
			return file, opened, nil
		}
		file.Close()
		if err := errors.Join(err, nowErr); err != nil || try >= readings {
			return nil, nil, errors.Join(err, fmt.Errorf("%s is exchanged while it is read", name))
		}
	}
}

// regular returns fs.ErrNotExist for what is no regular file.
func (r *reader) regular(name string) error {
	info, err := r.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: %w", name, fs.ErrNotExist)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// vanished reports whether an error means that there is nothing under a name: it is gone, or what was a directory above
// it is none.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
