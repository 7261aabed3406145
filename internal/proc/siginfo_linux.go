package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfoPID is si_pid of a SIGCHLD siginfo (sigaction(2)). The union behind signo, errno and code is
// aligned to a pointer, which x/sys leaves unnamed.
func siginfoPID(info *unix.Siginfo) int {
	head := 3 * unsafe.Sizeof(int32(0))
	align := unsafe.Sizeof(uintptr(0))
	offset := (head + align - 1) / align * align
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}
