package proc

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// role makes this test binary play another program instead of running the tests.
const role = "PROC_TEST_ROLE"

var roles = map[string]func(){"spawner": spawner, "headless": headless, "locker": locker}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(role)]; play != nil {
		play()
		os.Exit(0)
	}
	code := m.Run()
	if left, err := Descendants(os.Getpid(), nil); err != nil || len(left)+len(Zombies()) > 0 {
		fmt.Fprintln(os.Stderr, "processes left behind:", left, Zombies(), err)
		code = 1
	}
	os.Exit(code)
}

// spawner ignores one signal and blocks another, starts cat, which shows the signals that it was given, and
// says after that what it ignores and blocks itself.
func spawner() {
	runtime.LockOSThread() // a mask belongs to a thread
	signal.Ignore(syscall.SIGUSR1)
	block(syscall.SIGTERM)
	before := signalMask(os.Getpid(), "SigIgn")
	pid, err := Spawn{
		Path: "/bin/cat", Args: []string{"cat", "/proc/self/status"},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Umask: -1,
	}.Start()
	if err == nil {
		_, err = Reap(pid)
	}
	fmt.Printf("before %x\nafter %x\nblocked %x\nerror %v\n", before, signalMask(os.Getpid(), "SigIgn"), block(0), err)
}

// block blocks sig, if any, on this thread and returns what was blocked before.
func block(sig syscall.Signal) uint64 {
	var set, old unix.Sigset_t
	if sig > 0 {
		set.Val[0] = 1 << (sig - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		panic(err)
	}
	return old.Val[0]
}

// headless ends the first thread of the process and leaves the others running.
func headless() {
	for {
		go func() {
			runtime.LockOSThread() // held, so that each goroutine has a thread of its own
			if unix.Gettid() == os.Getpid() {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
		time.Sleep(time.Millisecond) // frees the first thread, should it be this goroutine's
	}
}

// lockVariable names the file that a locker locks, lockKind how.
const (
	lockVariable = "PROC_TEST_LOCK"
	lockKind     = "PROC_TEST_LOCK_KIND"
)

// locker locks a file and keeps it.
func locker() {
	f, err := os.OpenFile(os.Getenv(lockVariable), os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	switch os.Getenv(lockKind) {
	case "flock":
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	case "posix":
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &whole)
	case "of the open file":
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole)
	}
	if err != nil {
		panic(err)
	}
	for {
		time.Sleep(time.Hour)
	}
}

// waitFor polls for a fact. Its deadline only ends a test that has failed.
func waitFor(t testing.TB, what string, fact func() bool) {
	t.Helper()
	for end := BootClock() + 30*time.Second; !fact(); {
		if BootClock() > end {
			t.Fatalf("in 30 s never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// start starts a program, without standard streams, and has it ended and reaped after the test.
func start(t testing.TB, s Spawn) Identity {
	t.Helper()
	s.Path, s.Umask = s.Args[0], -1
	pid, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endTree(t) })
	id, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func startSleep(t testing.TB, env ...string) Identity {
	t.Helper()
	return start(t, Spawn{Args: []string{"/bin/sleep", "1000"}, Env: env})
}

// endTree ends and reaps all that a test started. A killed parent leaves orphans, which fall to us where
// the test made us a subreaper.
func endTree(t testing.TB) {
	t.Helper()
	below := func() ([]Identity, error) { return Descendants(os.Getpid(), nil) }
	if left, err := KillAll(t.Context(), below); err != nil {
		t.Error(left, err)
	}
	left, err := below()
	for ; err == nil && len(left) > 0; left, err = below() {
		for _, id := range left {
			_ = Signal(id, syscall.SIGKILL)
		}
	}
	for _, pid := range Zombies() {
		if _, err := Reap(pid); err != nil {
			t.Error(err)
		}
	}
}

// pipeOutput runs a program to its end and returns what it wrote to stdout.
func pipeOutput(t *testing.T, s Spawn) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Files = []*os.File{os.Stdin, w, os.Stderr}
	pid, err := s.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := r.WriteTo(&out); err != nil {
		t.Error(err)
	}
	if _, err := Reap(pid); err != nil {
		t.Error(err)
	}
	return out.String()
}
