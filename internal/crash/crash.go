// Package crash lets a test end the own process with SIGKILL at a named point.
//
// It is always compiled in, costs one comparison of an empty string when off, and is armed by the
// environment variable PINTLE_CRASH alone:
//
//	PINTLE_CRASH=kill:NAME@FILE   the first process to pass NAME creates FILE and dies there
//	PINTLE_CRASH=log:FILE         every point that is passed is appended to FILE, a name a line
//
// FILE makes the death happen once over all processes that inherit the variable, so that the
// successor of a killed process lives.
package crash

import (
	"os"
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
		want, file, _ := strings.Cut(rest, "@")
		if want == name && first(file) {
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

// first reports whether this call was the one to create file: the kernel's O_EXCL decides between
// processes that reach the point together.
func first(file string) bool {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// die does not return: SIGKILL to oneself is delivered before kill(2) is back in this thread, and
// the select covers the instant in which another thread takes it.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
