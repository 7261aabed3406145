package main

import "golang.org/x/sys/unix"

const (
	fionread   = unix.TIOCINQ // asks how many bytes can be read
	getTermios = unix.TCGETS  // asks for the settings that terminals alone have
)

func flushInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
