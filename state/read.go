package state

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// usual is a size in bytes that most records stay below.
const usual = 4 << 10

// readFile is os.ReadFile for small files: open, read, close and no more, where the os package also asks for
// the size, tries the poller and reads once more for the end. Listing ten thousand runs is mostly these calls.
// The bytes are the caller's until done.
func readFile(path string) (data []byte, done func(), err error) {
	buf := buffers.Get().(*[usual]byte)
	done = func() { buffers.Put(buf) }
	n, err := readInto(path, buf[:])
	if err == nil && n == usual {
		data, err = os.ReadFile(path)
		return data, done, err
	}
	return buf[:n], done, err
}

var buffers = sync.Pool{New: func() any { return new([usual]byte) }}

// readInto reads the beginning of a file.
func readInto(path string, buf []byte) (int, error) {
	fd, err := retry(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := retry(func() (int, error) { return syscall.Read(fd, buf) })
	_ = syscall.Close(fd)
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return n, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
