package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A background job of a shell without job control ignores INT and QUIT, nohup's HUP; some launchers leave
// signals blocked. An agent must still be interruptible.
func TestSpawn_SignalsAreCleanInTheChild(t *testing.T) {
	out := pipeForked(t, `trap "" HUP INT TSTP PIPE; exec /proc/$PPID/exe`, role+"=spawner")
	for _, mask := range []string{"SigIgn", "SigBlk", "SigCgt"} {
		if want := mask + ":\t0000000000000000\n"; !strings.Contains(out, want) {
			t.Errorf("the child lacks %q:\n%s", want, out)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGUSR1} {
		if maskOf(t, out, "before")&(1<<(sig-1)) == 0 {
			t.Errorf("the parent did not ignore %v: this proves nothing", sig)
		}
	}
	if before, after := maskOf(t, out, "before"), maskOf(t, out, "after"); before != after {
		t.Errorf("the parent ignored %x, and %x after the start", before, after)
	}
	if maskOf(t, out, "blocked") != 1<<(syscall.SIGTERM-1) {
		t.Errorf("the parent does not block TERM any more, or never did:\n%s", out)
	}
	if !strings.Contains(out, "error <nil>") {
		t.Error(out)
	}
}

func maskOf(t *testing.T, out, name string) uint64 {
	t.Helper()
	_, rest, _ := strings.Cut(out, "\n"+name+" ")
	word, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", name, err, out)
	}
	return mask
}

// pipeForked runs a shell script without Spawn and returns what it wrote.
func pipeForked(t *testing.T, script string, env ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script},
		&syscall.ProcAttr{Env: env, Files: []uintptr{0, w.Fd(), 2}})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	if _, err := Reap(pid); err != nil {
		t.Error(err)
	}
	return string(out)
}

func TestSpawn_NothingElseIsInherited(t *testing.T) {
	leak, err := unix.Dup(0) // not close-on-exec, as what a shell hands down
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	id := start(t, Spawn{Args: []string{"/bin/sleep", "1000"}, Files: []*os.File{r, w}})
	// The dynamic loader has files of its own open for a moment; what is inherited would stay.
	waitFor(t, "just the files given are open", func() bool {
		return slices.Equal(openIn(t, id.PID), []string{"0", "1"})
	})
	if flags := fdFlags(t, id.PID, 0); flags&unix.O_NONBLOCK != 0 {
		t.Errorf("stdin has flags %o: it must block", flags)
	}
}

func openIn(t *testing.T, pid int) (fds []string) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fds = append(fds, e.Name())
	}
	return fds
}

func fdFlags(t *testing.T, pid, fd int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "flags:\t")
	word, _, _ := strings.Cut(rest, "\n")
	flags, err := strconv.ParseUint(word, 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// Where close_range(2) is missing.
func TestCloseListedOnExec(t *testing.T) {
	leak, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	closeListedOnExec("/proc/self/fd")
	if flags, err := unix.FcntlInt(uintptr(leak), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %d, %v", flags, err)
	}
	if flags, err := unix.FcntlInt(2, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		t.Errorf("stderr: flags %d, %v", flags, err)
	}
}

func TestSpawn_EachChildGetsItsOwnUmask(t *testing.T) {
	ours := umaskOf(t, os.Getpid())
	t.Cleanup(func() { endTree(t) })
	wants := map[int]string{0: "0000", 0o077: "0077", 0o027: "0027", -1: ours}
	var wg sync.WaitGroup
	for mask, want := range wants {
		for range 8 {
			wg.Go(func() {
				pid, err := Spawn{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Umask: mask}.Start()
				if err != nil {
					t.Error(err)
				} else if got := umaskOf(t, pid); got != want {
					t.Errorf("umask %s, want %s", got, want)
				}
			})
		}
	}
	wg.Wait()
	if got := umaskOf(t, os.Getpid()); got != ours {
		t.Errorf("our own umask is %s now, and was %s", got, ours)
	}
}

func umaskOf(t *testing.T, pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
	}
	_, rest, _ := strings.Cut(string(b), "\nUmask:\t")
	word, _, _ := strings.Cut(rest, "\n")
	return word
}

func TestSpawn_SessionDirectoryAndEnvironment(t *testing.T) {
	dir := t.TempDir()
	s := Spawn{Path: "/bin/sh", Args: []string{"agent", "-c", `echo "$0 $PWD $A"`}, Env: []string{"A=b"}, Dir: dir, Umask: -1}
	if got, want := pipeOutput(t, s), "agent "+dir+" b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, setsid := range []bool{true, false} {
		id := start(t, Spawn{Args: []string{"/bin/sleep", "1000"}, Setsid: setsid})
		st, err := Read(id.PID)
		if own := st.SID == id.PID && st.PGID == id.PID; err != nil || own != setsid {
			t.Errorf("setsid %v gave %+v, %v", setsid, st, err)
		}
	}
}

func TestSpawn_SaysWhyItCouldNotStart(t *testing.T) {
	plain := t.TempDir() + "/plain"
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/nonexistent": fs.ErrNotExist, plain: fs.ErrPermission} {
		if pid, err := (Spawn{Path: path, Args: []string{path}, Umask: 0o777}).Start(); !errors.Is(err, want) {
			t.Errorf("start %s: %d, %v; want %v", path, pid, err, want)
		}
	}
}
