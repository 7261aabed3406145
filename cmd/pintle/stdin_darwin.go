package main

import "golang.org/x/sys/unix"

const (
	fionread   = 0x4004667f    // asks how many bytes can be read: _IOR('f', 127, int) of <sys/filio.h>
	getTermios = unix.TIOCGETA // asks for the settings that terminals alone have
)

func flushInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, unix.TCIFLUSH) }
