// Package crash lets a test end the own process with SIGKILL at a named point.
//
// It is always compiled in, costs one comparison of an empty string when off, and is armed by the
// environment variable PINTLE_CRASH alone:
//
//	PINTLE_CRASH=kill:NAME@FILE     the first process to pass NAME dies there
//	PINTLE_CRASH=kill:NAME#N@FILE   the one that passes it as the Nth does
//	PINTLE_CRASH=log:FILE           every point that is passed is appended to FILE, a name a line
//
// FILE counts the passes over all processes that inherit the variable, a dot each, so that the
// death happens once and the successor of a killed process lives. Who died there adds what it was:
// its first argument.
package crash

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Variable is the environment variable that arms a point; supervisors and shims inherit it.
const Variable = "PINTLE_CRASH"

var armed = os.Getenv(Variable)

// At ends this process if the point called name is armed.
func At(name string) {
	if armed != "" {
		fire(name)
	}
}

func fire(name string) {
	mode, rest, _ := strings.Cut(armed, ":")
	switch mode {
	case "log":
		note(rest, name)
	case "kill":
		which, file, _ := strings.Cut(rest, "@")
		want, nth, ok := strings.Cut(which, "#")
		if !ok {
			nth = "1"
		}
		if want == name && strconv.FormatInt(pass(file), 10) == nth {
			note(file, strings.Join(os.Args[min(1, len(os.Args)):min(2, len(os.Args))], ""))
			die()
		}
	}
}

func note(file, name string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(name + "\n")
}

// pass returns how many have passed so far, this one included. The kernel decides between processes
// that reach the point together: an append and the position behind it are one.
func pass(file string) int64 {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0
	}
	defer f.Close()
	if _, err := f.WriteString("."); err != nil {
		return 0
	}
	at, _ := f.Seek(0, io.SeekCurrent)
	return at
}

// die does not return: SIGKILL to oneself is delivered before kill(2) is back in this thread, and
// the select covers the instant in which another thread takes it.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
