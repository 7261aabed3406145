package main

import "golang.org/x/sys/unix"

// fionread asks how many bytes can be read.
const fionread = unix.TIOCINQ
