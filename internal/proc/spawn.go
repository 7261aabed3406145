package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// Spawn is a process to start. The child has all signals at their defaults and none blocked, whatever this
// process was started with: a shell has what it puts in the background ignore SIGINT, nohup SIGHUP.
type Spawn struct {
	Path   string   // not looked up in PATH; relative to Dir
	Args   []string // with the program's name first
	Env    []string
	Dir    string
	Files  []*os.File // become descriptors 0, 1, 2, …; nothing else is inherited
	Setsid bool       // a session, and so a process group, of its own
	Umask  int        // of the child; negative: this process's
}

// forks guards what a child takes over from this whole process and Go cannot set in the child: the file
// mode mask and the ignored signals. Start changes them for the time of the fork, so a file that another
// goroutine creates meanwhile gets the child's mask: set restrictive modes or create it before.
var forks sync.Mutex

// Start starts the process and returns its pid. Its errors are those of chdir(2) and execve(2).
func (s Spawn) Start() (int, error) {
	forks.Lock()
	defer forks.Unlock()
	defer cleanSignals()()
	closeOnExec()
	if s.Umask >= 0 {
		defer syscall.Umask(syscall.Umask(s.Umask))
	}
	pid, err := syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: descriptors(s.Files), Sys: &syscall.SysProcAttr{Setsid: s.Setsid},
	})
	runtime.KeepAlive(s.Files) // a file that is collected is closed
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Path, err)
	}
	return pid, nil
}

// descriptors sets the files to blocking, as Fd does: programs expect that of their standard streams.
func descriptors(files []*os.File) []uintptr {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	return fds
}

// cleanSignals has a child that is forked before restore is called start with clean signals. Go gives a
// child the default for each signal that it handles, but leaves ignored what is ignored. So those are
// handled for that time, into a channel that nobody reads, which is as good as ignoring them.
func cleanSignals() (restore func()) {
	unlock := unblockSignals()
	ignored := ignoredSignals()
	if len(ignored) == 0 { // an empty list would mean all
		return unlock
	}
	signal.Notify(make(chan os.Signal, 1), ignored...)
	return func() {
		signal.Ignore(ignored...) // straight from handled to ignored, never by way of the default
		unlock()
	}
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
			return Exit{PID: pid, Signal: ws.Signal(), Core: ws.CoreDump()}, nil
		default:
			return Exit{PID: pid, Code: ws.ExitStatus()}, nil
		}
	}
}

// closeListedOnExec marks the descriptors that are listed in dir, from 3 on.
func closeListedOnExec(dir string) {
	fds, _ := os.ReadDir(dir)
	for _, entry := range fds {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // the list's own is closed by now; that does no harm
		}
	}
}
