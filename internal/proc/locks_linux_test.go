package proc

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lockFile makes a file to be locked.
func lockFile(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(t.TempDir() + "/lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// holders waits until just these hold a lock on the file.
func holders(t *testing.T, f *os.File, want ...Identity) {
	t.Helper()
	var got []Identity
	var err error
	defer func() {
		if t.Failed() {
			t.Errorf("holders %+v, %v; want %+v", got, err, want)
		}
	}()
	waitFor(t, "the holders", func() bool {
		got, err = LockHolders(f.Name())
		return err == nil && slices.Equal(got, want)
	})
}

func TestCase32_WhoLocksAFile(t *testing.T) {
	for _, kind := range []string{"flock", "posix", "of the open file"} {
		t.Run(kind, func(t *testing.T) {
			f := lockFile(t)
			id := start(t, Spawn{Args: []string{"/proc/self/exe"}, Env: []string{role + "=locker", lockVariable + "=" + f.Name(), lockKind + "=" + kind}})
			start(t, Spawn{Args: []string{"/bin/sleep", "1000"}, Files: []*os.File{f}}) // has it open, and no lock
			holders(t, f, id)
			if err := Signal(id, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			holders(t, f)
		})
	}
}

// Who took the lock has gone from it; who inherited it has it.
func TestCase32_ALockThatWasInherited(t *testing.T) {
	f := lockFile(t)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	holders(t, f, self)
	id := start(t, Spawn{Args: []string{"/bin/sleep", "1000"}, Files: []*os.File{f}})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	holders(t, f, id)
}

func TestLockHolders_OfNothing(t *testing.T) {
	if got, err := LockHolders(t.TempDir() + "/none"); err != nil || got != nil {
		t.Errorf("no file: %+v, %v", got, err)
	}
	f := lockFile(t)
	if got, err := LockHolders(f.Name()); err != nil || got != nil {
		t.Errorf("no lock: %+v, %v", got, err)
	}
	if _, err := LockHolders(f.Name() + "/below"); err == nil {
		t.Error("what cannot be looked at has no holders, without an error")
	}
}

func TestHoldsLock(t *testing.T) {
	const head = "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t3384229\n"
	for line, want := range map[string]bool{
		"": false,
		"lock:\t1: FLOCK  ADVISORY  WRITE 8747 fe:00:3384229 0 EOF\n": true,
		"lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:3384229 0 EOF\n":   true,
		"lock:\t1: LEASE  ACTIVE    READ  8747 fe:00:3384229 0 EOF\n": false,
		"lock:\t1: LEASE  BREAKING  READ  8747 fe:00:3384229 0 EOF\n": false,
		"inotify wd:1 ino:1 sdev:1 mask:1 FLOCK  ADVISORY  WRITE 1\n": false,
	} {
		if got := holdsLock([]byte(head + line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestTokenOf(t *testing.T) {
	id := startSleep(t, "TOKEN=home.x", "EMPTY=")
	for variable, want := range map[string]string{"TOKEN": "home.x", "EMPTY": ""} {
		if got, ok := TokenOf(id, variable); !ok || got != want {
			t.Errorf("%s: %q, %v", variable, got, ok)
		}
	}
	if got, ok := TokenOf(id, "OTHER"); ok {
		t.Errorf("none: %q", got)
	}
	other := id
	other.StartTicks--
	if got, ok := TokenOf(other, "TOKEN"); ok {
		t.Errorf("of a process that had the pid before: %q", got)
	}
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := Await(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got, ok := TokenOf(id, "TOKEN"); ok {
		t.Errorf("of a dead process: %q", got)
	}
}

func BenchmarkLockHolders(b *testing.B) {
	f := lockFile(b)
	for _, how := range []int{unix.LOCK_UN, unix.LOCK_EX} {
		if err := unix.Flock(int(f.Fd()), how); err != nil {
			b.Fatal(err)
		}
		b.Run(map[int]string{unix.LOCK_UN: "none", unix.LOCK_EX: "one"}[how], func(b *testing.B) {
			for b.Loop() {
				if _, err := LockHolders(f.Name()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
