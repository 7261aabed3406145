package proc

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wantGone checks that nothing treats id as a living process.
func wantGone(t *testing.T, id Identity) {
	t.Helper()
	if got := id.Liveness(); got != Dead {
		t.Errorf("liveness %v, want dead", got)
	}
	if err := Signal(id, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal: %v, want ErrGone", err)
	}
	if err := Await(t.Context(), id); err != nil {
		t.Errorf("await: %v, want nil at once", err)
	}
}

func TestCase8_RecycledPidIsNotSignalled(t *testing.T) {
	other := startSleep(t)
	recorded := map[string]Identity{
		"started at another time": {PID: other.PID, StartTicks: other.StartTicks - 1, BootID: other.BootID},
		"of another boot":         {PID: other.PID, StartTicks: other.StartTicks, BootID: "another"},
		"nothing known":           {PID: other.PID},
	}
	for name, id := range recorded {
		t.Run(name, func(t *testing.T) {
			wantGone(t, id)
			if got := other.Liveness(); got != Alive {
				t.Errorf("the other process is %v", got)
			}
		})
	}
}

// The kernel is made to hand out the pid of a dead process again.
func TestCase8_ReallyRecycledPidIsNotSignalled(t *testing.T) {
	const lastPID = "/proc/sys/kernel/ns_last_pid"
	for range 200 { // another program's fork may take the pid
		first := startSleep(t)
		endTree(t)
		ended := BootClock()
		waitFor(t, "another clock tick", func() bool { return BootClock()-ended > 20*time.Millisecond })
		if err := os.WriteFile(lastPID, []byte(strconv.Itoa(first.PID-1)), 0); err != nil {
			t.Skip("may not choose pids:", err)
		}
		second := startSleep(t)
		if second.PID != first.PID {
			continue
		}
		wantGone(t, first)
		if got := second.Liveness(); got != Alive {
			t.Errorf("the pid's new owner is %v", got)
		}
		return
	}
	t.Skip("the pid was always taken by others")
}

// A thread's id is a pid too, which pidfd_open refuses with an error of its own.
func TestCase8_PidThatIsAThreadByNowIsNotSignalled(t *testing.T) {
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	tid, done := make(chan int), make(chan struct{})
	defer close(done)
	for range 2 { // one of the two is not the first thread
		go func() {
			runtime.LockOSThread()
			tid <- unix.Gettid()
			<-done
		}()
	}
	a, b := <-tid, <-tid
	if a == os.Getpid() {
		a = b
	}
	wantGone(t, Identity{PID: a, StartTicks: 1, BootID: boot})
}

func TestR8_ZombieIsDead(t *testing.T) {
	id := startSleep(t)
	if err := Signal(id, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if pid, err := NextExited(); err != nil || pid != id.PID {
		t.Fatalf("next exited: %d, %v; want %d", pid, err, id.PID)
	}
	if err := syscall.Kill(id.PID, 0); err != nil {
		t.Fatalf("no zombie: %v", err)
	}
	wantGone(t, id)
	if _, err := Identify(id.PID); !errors.Is(err, ErrGone) {
		t.Errorf("identify: %v, want ErrGone", err)
	}
	if st, err := Read(id.PID); err != nil || st.State != 'Z' {
		t.Errorf("read: %+v, %v; want a zombie", st, err)
	}
	exit, err := Reap(id.PID)
	if want := (Exit{PID: id.PID, Signal: syscall.SIGTERM}); err != nil || exit != want {
		t.Errorf("reap: %+v, %v; want %+v", exit, err, want)
	}
	wantGone(t, id)
}

func TestR8_ZombieLeaderWithLivingThreadsIsAlive(t *testing.T) {
	id := start(t, Spawn{Args: []string{"/proc/self/exe"}, Env: []string{role + "=headless", "TOKEN=x"}})
	waitFor(t, "the first thread ended", func() bool {
		st, err := Read(id.PID)
		return err == nil && st.State == 'Z'
	})
	if got := id.Liveness(); got != Alive {
		t.Errorf("liveness %v, want alive", got)
	}
	found, err := WithToken("TOKEN", func(v string) bool { return v == "x" })
	if err != nil || len(found) != 1 || found[0].Identity != id {
		t.Errorf("with token: %+v, %v; want %+v", found, err, id)
	}
	if below, err := Descendants(os.Getpid(), nil); err != nil || len(below) != 1 || below[0] != id {
		t.Errorf("descendants: %+v, %v; want %+v", below, err, id)
	}
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := Await(t.Context(), id); err != nil {
		t.Error(err)
	}
	wantGone(t, id)
}

func TestR8_UnreadableIsUncertain(t *testing.T) {
	id := startSleep(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 0, Max: limit.Max} // no descriptor can be opened any more
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	got, err := id.Liveness(), Signal(id, syscall.SIGKILL)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if got != Uncertain {
		t.Errorf("liveness %v, want uncertain", got)
	}
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrGone) {
		t.Errorf("signal: %v, want EMFILE", err)
	}
	if got := id.Liveness(); got != Alive {
		t.Errorf("liveness %v, want alive: it must not have been signalled", got)
	}
}

// As with hidepid: no entry, and yet a process.
func TestR8_HiddenIsNotGone(t *testing.T) {
	if err := absent(os.Getpid()); errors.Is(err, ErrGone) {
		t.Errorf("hidden: %v, must not be ErrGone", err)
	}
	const beyondAllPIDs = 1 << 30
	if _, err := Read(beyondAllPIDs); !errors.Is(err, ErrGone) {
		t.Errorf("absent: %v, want ErrGone", err)
	}
}

func TestSignal_RefusesInitAndBelow(t *testing.T) {
	for _, pid := range []int{1, 0, -1} {
		id, _ := Identify(pid)
		id.PID = pid
		if err := Signal(id, syscall.Signal(0)); !errors.Is(err, ErrRefused) {
			t.Errorf("signal %d: %v, want ErrRefused", pid, err)
		}
		if err := SignalGroup(pid, syscall.Signal(0)); !errors.Is(err, ErrRefused) {
			t.Errorf("signal group %d: %v, want ErrRefused", pid, err)
		}
	}
	if err := SignalGroup(syscall.Getpgrp(), syscall.Signal(0)); !errors.Is(err, ErrRefused) {
		t.Errorf("signal our own group: %v, want ErrRefused", err)
	}
	if got := (Identity{}).Liveness(); got != Dead {
		t.Errorf("nobody is %v, want dead", got)
	}
}

func TestSignalGroup_EndsAllAndIsGoneAfterReaping(t *testing.T) {
	leader := start(t, Spawn{Args: []string{"/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait"}, Setsid: true})
	var below []Identity
	waitFor(t, "two children", func() bool {
		below, _ = Descendants(leader.PID, nil)
		return len(below) == 2
	})
	if err := SignalGroup(leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(below, leader) {
		if err := Await(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	// Its orphans are our zombies if a test made us a subreaper, else init's.
	waitFor(t, "the group is gone", func() bool {
		for _, pid := range Zombies() {
			if _, err := Reap(pid); err != nil {
				t.Error(err)
			}
		}
		return errors.Is(SignalGroup(leader.PID, 0), ErrGone)
	})
}

func TestAwait_EndsWithItsContext(t *testing.T) {
	id := startSleep(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { ended <- Await(ctx, id) }()
	cancel(nil)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("await: %v, want canceled", err)
	}
	go func() { ended <- Await(t.Context(), id) }()
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("await: %v, want nil", err)
	}
}

func TestNextExited_SaysWhenThereAreNoChildren(t *testing.T) {
	if pid, err := NextExited(); !errors.Is(err, ErrNoChildren) {
		t.Errorf("next exited: %d, %v; want ErrNoChildren", pid, err)
	}
}

func TestNextExited_LeavesTheChildUntilItIsReaped(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	id := start(t, Spawn{Args: []string{"/bin/sh", "-c", "read x; exit 7"}, Files: []*os.File{r}})
	_, _ = r.Close(), w.Close() // lets it go on
	for range 2 {
		if pid, err := NextExited(); err != nil || pid != id.PID {
			t.Fatalf("next exited: %d, %v; want %d", pid, err, id.PID)
		}
	}
	exit, err := Reap(id.PID)
	if want := (Exit{PID: id.PID, Code: 7}); err != nil || exit != want {
		t.Errorf("reap: %+v, %v; want %+v", exit, err, want)
	}
}
