package proc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Spawn is a process to start. The child has its signals at their defaults as long as this process
// ignores none: Go resets what it handles, and nothing here calls signal.Ignore.
type Spawn struct {
	Path   string
	Args   []string // with the program's name first
	Env    []string
	Dir    string
	Files  []*os.File // become descriptors 0, 1, 2, …; nothing else is inherited
	Setsid bool       // a session, and so a process group, of its own
	Umask  int        // of the child; negative: this process's
}

// umask guards the file mode mask, which belongs to the whole process: the child can only get another
// by having this process carry it around the fork.
var umask sync.Mutex

// Start starts the process and returns its pid. Its errors are those of chdir(2) and execve(2).
func (s Spawn) Start() (int, error) {
	fds := make([]uintptr, len(s.Files))
	for i, f := range s.Files {
		fds[i] = f.Fd()
	}
	if s.Umask >= 0 {
		umask.Lock()
		defer umask.Unlock()
		defer syscall.Umask(syscall.Umask(s.Umask))
	}
	pid, err := syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: s.Setsid},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Path, err)
	}
	return pid, nil
}

// Reap collects a child that has exited and lets its pid go.
func Reap(pid int) (Exit, error) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(pid, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return Exit{}, fmt.Errorf("reap %d: %w", pid, err)
		case ws.Signaled():
			return Exit{PID: pid, Signal: ws.Signal()}, nil
		default:
			return Exit{PID: pid, Code: ws.ExitStatus()}, nil
		}
	}
}
