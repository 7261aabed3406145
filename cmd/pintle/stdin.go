package main

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/providers/command"
)

// hintStdin says that standard input is not read, if it is a pipe in which something waits: whoever sent it may
// believe that the command or the agent gets it.
func (a *app) hintStdin(provider string) {
	if !waitsIn(a.stdin) {
		return
	}
	help := "a command's own is empty; have it read a file"
	if provider != command.Name {
		help = "add - behind the prompt to have it in there"
	}
	a.say("hint: standard input is not read: %s (< /dev/null ends this hint)", help)
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
