package proc

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignoredSignals are those that this process ignores. signal.Ignored knows but few of those that were
// ignored from the start, so the kernel is asked.
func ignoredSignals() (ignored []os.Signal) {
	mask := signalMask(os.Getpid(), "SigIgn")
	for n := range 64 {
		if sig := syscall.Signal(n + 1); mask&(1<<n) != 0 {
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// signalMask reads one of the masks in /proc/<pid>/status; bit 0 is signal 1.
func signalMask(pid int, name string) uint64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, _ := bytes.Cut(b, []byte("\n"+name+":\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, _ := strconv.ParseUint(string(line), 16, 64)
	return mask
}

// unblockSignals unblocks all signals of this thread, whose mask a child forked from it takes over.
func unblockSignals() (restore func()) {
	runtime.LockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
		runtime.UnlockOSThread()
	}
}

// closeOnExec marks all descriptors but the standard ones. Go's own are marked; what this process
// inherited is not, and would be held open for as long as an agent lives: a script's lock file, say.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeListedOnExec("/proc/self/fd")
	}
}
