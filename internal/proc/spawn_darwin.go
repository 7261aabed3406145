package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// ignoredSignals are those that Go knows this process to ignore.
func ignoredSignals() (ignored []os.Signal) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE} {
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// unblockSignals does nothing: the mask of a thread cannot be set without C here.
func unblockSignals() (restore func()) { return func() {} }

func closeOnExec() { closeListedOnExec("/dev/fd") }
