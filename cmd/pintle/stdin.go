package main

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// hintStdin says that standard input is not read, if it is a pipe in which something waits: whoever sent it may
// believe that the command gets it.
func (a *app) hintStdin() {
	if waitsIn(a.stdin) {
		a.say("hint: standard input is not read: a command's own is empty; have it read a file (< /dev/null ends this hint)")
	}
}

// waitsIn reports whether a file is a pipe with bytes in it. It neither blocks nor takes any.
func waitsIn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return false
	}
	n := 0
	control(f, func(fd int) { n, _ = unix.IoctlGetInt(fd, fionread) })
	return n > 0
}

// forget drops what was typed at a terminal and not read yet.
func forget(f *os.File) {
	control(f, func(fd int) { _ = flushInput(fd) })
}
