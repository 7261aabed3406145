package testscripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pintle/pintle/internal/proc"
)

// patience is how long a fact may take to come true before a script fails. It is a safety net, never a
// measure.
const patience = 2 * time.Minute

// words are the verbs of our own.
var words = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"waitfor":  waitfor,
	"gone":     gone,
	"json":     jsonWord,
	"lines":    lines,
	"killsup":  killSupervisor,
	"sendsig":  sendsig,
	"freeze":   func(ts *testscript.TestScript, _ bool, args []string) { signalFile(ts, args[0], syscall.SIGSTOP) },
	"thaw":     func(ts *testscript.TestScript, _ bool, args []string) { signalFile(ts, args[0], syscall.SIGCONT) },
	"nobody":   nobody,
	"rebooted": rebooted,
	"exits":    exits,
	"start":    start,
	"ended":    ended,
	"events":   events,
	"home":     moveHome,
	"tmpfs":    tmpfs,
	"hold":     hold,
	"repo":     repo,
	"let": func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(exec.Command("umount", ts.MkAbs(args[0])).Run())
	},
}

// condition is what a script can ask of the machine: [root], and [tmpfs] for one that may mount.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "tmpfs":
		dir, err := os.MkdirTemp("", "pt-mount-")
		if err != nil {
			return false, err
		}
		defer os.Remove(dir)
		if exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "pintle", dir).Run() != nil {
			return false, nil
		}
		return true, exec.Command("umount", dir).Run()
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// until waits for a fact.
func until(ts *testscript.TestScript, what string, fact func() bool) {
	for limit := time.Now().Add(patience); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			ts.Fatalf("never came true: %s", what)
		}
	}
}

// waitfor CMD ARG…: repeats a command until it succeeds. waitfor exists FILE: until the file is there.
func waitfor(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "exists" {
		until(ts, strings.Join(args, " "), func() bool { _, err := os.Stat(ts.MkAbs(args[1])); return err == nil })
		return
	}
	until(ts, strings.Join(args, " "), func() bool { return command(ts, args...).Run() == nil })
}

func command(ts *testscript.TestScript, args ...string) *exec.Cmd {
	path := args[0]
	if path == "pintle" {
		path = binary
	}
	c := exec.Command(path, args[1:]...)
	c.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"WORK", "HOME", "TMPDIR", "PATH", "PINTLE_HOME", "LANG", "GORACE", "BASE", "PINTLE_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
	} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	return c
}

func pidIn(ts *testscript.TestScript, file string) int {
	data, err := os.ReadFile(ts.MkAbs(file))
	ts.Check(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	ts.Check(err)
	return pid
}

// gone FILE…: waits until the processes whose pids are in the files are dead. ! gone: they live.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args {
		pid := pidIn(ts, file)
		if neg {
			if _, err := proc.Identify(pid); err != nil {
				ts.Fatalf("process %d of %s: %v", pid, file, err)
			}
			continue
		}
		until(ts, file+" is gone", func() bool { _, err := proc.Identify(pid); return errors.Is(err, proc.ErrGone) })
	}
}

// sendsig SIG FILE: signals the process whose pid is in the file. sendsig SIG -GROUPFILE: its group.
func sendsig(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}[args[0]]
	signalFile(ts, args[1], sig)
}

func signalFile(ts *testscript.TestScript, file string, sig syscall.Signal) {
	id, err := proc.Identify(pidIn(ts, file))
	ts.Check(err)
	ts.Check(proc.Signal(id, sig))
}

// killsup [N]: SIGKILLs the supervisor and waits until it is dead; N times, waiting for a successor
// between. ! killsup: there is none.
func killSupervisor(ts *testscript.TestScript, neg bool, args []string) {
	n := 1
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0])
	}
	for range n {
		var id proc.Identity
		if neg {
			return
		}
		until(ts, "a supervisor lives", func() bool { id = supervisorOf(ts); return id.Liveness() == proc.Alive })
		ts.Check(proc.Signal(id, syscall.SIGKILL))
		until(ts, "the supervisor is dead", func() bool { return id.Liveness() == proc.Dead })
	}
}

func supervisorOf(ts *testscript.TestScript) (id proc.Identity) {
	data, err := os.ReadFile(filepath.Join(ts.Getenv("PINTLE_HOME"), "supervisor.json"))
	if err == nil {
		_ = json.Unmarshal(data, &id)
	}
	return id
}

// json FILE PATH [WANT]: the field at a dotted path of a file's last JSON line equals WANT, or, without
// WANT, is there; a number indexes a list, # is its length. FILE may be stdout or stderr. ! json: it is not so.
func jsonWord(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	all := strings.Split(text, "\n")
	var v any
	ts.Check(json.Unmarshal([]byte(all[len(all)-1]), &v))
	got, ok := descend(v, strings.Split(args[1], "."))
	match := ok && (len(args) < 3 || got == args[2])
	if match == neg {
		ts.Fatalf("%s of %s: got %q (there: %v), want %q (not: %v)", args[1], args[0], got, ok, args[2:], neg)
	}
}

func descend(v any, path []string) (string, bool) {
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				return "", false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if name == "#" {
				v = len(at)
			} else if err == nil && i < len(at) {
				v = at[i]
			} else {
				return "", false
			}
		default:
			return "", false
		}
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	data, err := json.Marshal(v)
	return string(data), err == nil
}

// lines FILE N: the file has N lines. It is how launches are counted from outside.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	text := ""
	if args[0] == "stdout" || args[0] == "stderr" {
		text = ts.ReadFile(args[0])
	} else if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil {
		text = string(data)
	}
	if got := strings.Count(text, "\n"); (strconv.Itoa(got) == args[1]) == neg {
		ts.Fatalf("%s has %d lines, want %s (not: %v)", args[0], got, args[1], neg)
	}
}

// exits N CMD ARG…: the command's exit code is N.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s: exit code %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// events FILE: every line is one JSON object, and their sequences rise.
func events(ts *testscript.TestScript, _ bool, args []string) {
	last := uint64(0)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var e struct{ Seq uint64 }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq <= last {
			ts.Fatalf("event behind %d: %v: %.200q", last, err, line)
		}
		last = e.Seq
	}
	if last == 0 {
		ts.Fatalf("%s: no events", args[0])
	}
}

// home DIR: goes on with another state directory, of which nothing may be left at the end either.
func moveHome(ts *testscript.TestScript, _ bool, args []string) {
	home := ts.MkAbs(args[0])
	ts.Setenv("PINTLE_HOME", home)
	ts.Defer(func() { leave(home) })
}

// leave ends all that has the state directory in its environment.
func leave(home string) {
	stop := exec.Command(binary, "supervise", "stop")
	stop.Env = append(os.Environ(), "PINTLE_HOME="+home)
	_ = stop.Run()
	_ = killAll(home)
}

// tmpfs DIR SIZE: mounts a file system of that size until the script ends.
func tmpfs(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(exec.Command("mount", "-t", "tmpfs", "-o", "mode=0700,size="+args[1], "pintle", dir).Run())
	ts.Defer(func() {
		leave(dir)
		if err := exec.Command("umount", dir).Run(); err != nil {
			_ = exec.Command("umount", "-l", dir).Run()
		}
	})
}

// hold FILE: nobody can put another file in the place of this one, root neither, until let FILE.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	ts.Check(exec.Command("mount", "--bind", file, file).Run())
	ts.Defer(func() { _ = exec.Command("umount", "-l", file).Run() })
}

// nobody: waits until no process of this script's state directory but its supervisor is left.
func nobody(ts *testscript.TestScript, _ bool, _ []string) {
	home := ts.Getenv("PINTLE_HOME")
	until(ts, "nothing is left", func() bool {
		left, err := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == home })
		return err == nil && len(left) <= supervisors(left)
	})
}

func supervisors(all []proc.Tagged) (n int) {
	for _, t := range all {
		if len(t.Args) > 1 && t.Args[1] == "supervise" {
			n++
		}
	}
	return n
}

// rebooted: plays a reboot as far as a test can: all processes of the state directory are killed and the
// boot id in its records is another one.
func rebooted(ts *testscript.TestScript, _ bool, _ []string) {
	home := ts.Getenv("PINTLE_HOME")
	ts.Check(killAll(home))
	boot, err := proc.BootID()
	ts.Check(err)
	ts.Check(filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		other := strings.ReplaceAll(string(data), boot, "00000000-0000-0000-0000-000000000000")
		return os.WriteFile(path, []byte(other), 0o600)
	}))
}

// killAll ends everything that has the state directory in its environment, supervisors first: they would
// take note.
func killAll(home string) error {
	for {
		left, err := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == home })
		if err != nil || len(left) == 0 {
			return err
		}
		for _, role := range []string{"supervise", "shim", ""} {
			for _, t := range left {
				if role == "" || (len(t.Args) > 1 && t.Args[1] == role) {
					if err := proc.Signal(t.Identity, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
						return err
					}
				}
			}
		}
	}
}

// remains is what is left of a state directory's processes. A supervisor lets go of its lock a moment before
// it is gone.
func remains(home string) (left []proc.Tagged, err error) {
	for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		left, err = proc.WithToken("PINTLE_HOME", func(v string) bool { return v == home })
		if err != nil || len(left) == 0 {
			break
		}
	}
	return left, err
}

// cleanUp ends the script's supervisor and says what else was left.
func cleanUp(e *testscript.Env, base string) {
	home := filepath.Join(base, "h")
	stop := exec.Command(binary, "supervise", "stop")
	stop.Env = append(os.Environ(), "PINTLE_HOME="+home)
	_ = stop.Run()
	left, err := remains(home)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left running: %+v", left)
		_ = killAll(home)
	}
	if err != nil {
		e.T().Log(err)
		e.T().FailNow()
	}
	_ = os.RemoveAll(base)
}

// start NAME CMD ARG…: starts a command of which signals can be sent to NAME.pid; its output goes to NAME.out
// and NAME.err.
func start(ts *testscript.TestScript, _ bool, args []string) {
	file := func(ext string) *os.File {
		f, err := os.Create(ts.MkAbs(args[0] + ext))
		ts.Check(err)
		return f
	}
	c := command(ts, args[1:]...)
	out, errs := file(".out"), file(".err")
	c.Stdout, c.Stderr = out, errs
	ts.Check(c.Start())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pid"), []byte(strconv.Itoa(c.Process.Pid)), 0o600))
	rc, done := ts.MkAbs(args[0]+".rc"), make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Wait()
		_, _ = out.Close(), errs.Close()
		_ = os.WriteFile(rc+"~", []byte(strconv.Itoa(c.ProcessState.ExitCode())), 0o600)
		_ = os.Rename(rc+"~", rc)
	}()
	ts.Defer(func() { _ = c.Process.Kill(); <-done })
}

// ended NAME N: waits until what was started exits, with code N. -1 is by a signal.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	rc := ts.MkAbs(args[0] + ".rc")
	until(ts, args[0]+" has ended", func() bool { _, err := os.Stat(rc); return err == nil })
	if got := ts.ReadFile(args[0] + ".rc"); got != args[1] {
		ts.Fatalf("%s: exit code %s, want %s\n%s", args[0], got, args[1], ts.ReadFile(args[0]+".err"))
	}
}
