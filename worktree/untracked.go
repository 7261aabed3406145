package worktree

import (
	"bytes"
	"io"
	"os"
	"syscall"
)

// What is read of untracked files to count their lines. An agent may leave a whole node_modules or a core dump;
// the numbers are for people, and a verb should not read gigabytes for them.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// sniff is how far git looks for a NUL to call a file binary.
const sniff = 8000

// budget is what may still be read.
type budget struct {
	files int
	bytes int64
}

func (b *budget) spent() bool { return b.files <= 0 || b.bytes <= 0 }

// lines returns how many lines a file would add. It is 0 for what is binary, is over the budget, or is gone.
func (b *budget) lines(path string) int {
	b.files--
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return 0
	case info.Mode()&os.ModeSymlink != 0:
		return 1 // git keeps the target as the one line of a file
	case !info.Mode().IsRegular() || info.Size() > b.bytes:
		return 0 // a repository inside this one ends with a slash and is a directory
	}
	return b.read(path)
}

// read counts the lines of a regular file. Between Lstat and here it may have become a pipe or a link: neither
// is waited for or followed.
func (b *budget) read(path string) int {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	counter := &lineCounter{}
	n, err := io.Copy(counter, io.LimitReader(file, b.bytes))
	b.bytes -= n
	if err != nil {
		return 0
	}
	return counter.lines()
}

// lineCounter counts as git does: a last line without newline is a line, and a NUL near the beginning makes a
// file binary, which has none.
type lineCounter struct {
	newlines, size int
	last           byte
	binary         bool
}

func (c *lineCounter) Write(p []byte) (int, error) {
	if c.size < sniff && bytes.IndexByte(p[:min(len(p), sniff-c.size)], 0) >= 0 {
		c.binary = true
	}
	if len(p) > 0 {
		c.last = p[len(p)-1]
	}
	c.newlines += bytes.Count(p, []byte{'\n'})
	c.size += len(p)
	return len(p), nil
}

func (c *lineCounter) lines() int {
	switch {
	case c.binary || c.size == 0:
		return 0
	case c.last != '\n':
		return c.newlines + 1
	}
	return c.newlines
}
