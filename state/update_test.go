package state

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCase17_NothingIsLostAmongGoroutines(t *testing.T) {
	d := open(t)
	const writers, times = 20, 5
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range times {
				if err := Update(t.Context(), d, "counter.json", increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if c, err := Read[counter](d, "counter.json"); err != nil || c.N != writers*times {
		t.Errorf("%d, %v; want %d", c.N, err, writers*times)
	}
}

// 20 processes also race to make the directory.
func TestCase17_NothingIsLostAmongProcesses(t *testing.T) {
	path := t.TempDir() + "/home"
	var all []*exec.Cmd
	for range 20 {
		c := play(t, "count", path, "3", "")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, c.Stderr)
		}
	}
	d, err := OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Read[counter](d, "counter.json"); err != nil || c.N != 60 {
		t.Errorf("%d, %v; want 60", c.N, err)
	}
}

func TestUpdate_EqualBytesWriteNothing(t *testing.T) {
	d := open(t)
	if err := Update(t.Context(), d, "counter.json", increment); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(d.Path("counter.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Update(t.Context(), d, "counter.json", func(*counter) error { return nil }); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(d.Path("counter.json"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written again: %v", err)
	}
}

func TestUpdate_ErrorOfItsFunctionChangesNothing(t *testing.T) {
	d := open(t)
	refuse := errors.New("no")
	err := Update(t.Context(), d, "counter.json", func(c *counter) error { c.N = 7; return refuse })
	if !errors.Is(err, refuse) {
		t.Errorf("%v, want the function's own error", err)
	}
	if _, err := Read[counter](d, "counter.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want no record", err)
	}
	// The lock is free again.
	if err := Update(t.Context(), d, "counter.json", increment); err != nil {
		t.Error(err)
	}
}

func TestUpdate_WritesOneLineOf0600(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	d := open(t)
	if err := d.Mkdir("a", "b"); err != nil {
		t.Fatal(err)
	}
	err := Update(t.Context(), d, "a/b/c.json", func(c *counter) error {
		*c = counter{Version: 1, N: 1, Text: "<a>\n&"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(d.Path("a/b/c.json"))
	if want := `{"version":1,"n":1,"text":"<a>\n&"}` + "\n"; err != nil || string(data) != want {
		t.Errorf("%q, %v; want %q", data, err, want)
	}
	wantModes(t, d)
}

func wantModes(t *testing.T, d *Dir) {
	t.Helper()
	err := filepath.WalkDir(d.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCase18_DamagedIsNotAbsent(t *testing.T) {
	for name, bad := range map[string]string{
		"0 bytes": "", "half": `{"version":1,"n":`, "no object": "null\n", "empty object": "{}\n", "zeroes": strings.Repeat("\x00", 40),
		"two": `{"version":1,"n":1}{"version":1,"n":2}`, "text": "garbage", "a list": "[1]", "type": `{"version":1,"n":"x"}`,
		"version 0": `{"version":0,"n":1}`, "no version": `{"n":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			if err := os.WriteFile(d.Path("counter.json"), []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := Read[counter](d, "counter.json"); !errors.Is(err, ErrDamaged) {
					t.Errorf("read: %v, want ErrDamaged", err)
				}
				if err := Update(t.Context(), d, "counter.json", increment); !errors.Is(err, ErrDamaged) {
					t.Errorf("update: %v, want ErrDamaged", err)
				}
			}
			if data, err := os.ReadFile(d.Path("counter.json")); err != nil || string(data) != bad {
				t.Errorf("the file became %q, %v", data, err)
			}
			wantQuarantined(t, d, bad)
			wantModes(t, d)
			if err := Update(t.Context(), d, "other.json", increment); err != nil {
				t.Errorf("another record: %v", err)
			}
		})
	}
}

// wantQuarantined wants one copy, however often the record was looked at.
func wantQuarantined(t *testing.T, d *Dir, want string) {
	t.Helper()
	copies, err := os.ReadDir(d.Path("quarantine"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies: %v, %v; want one", copies, err)
	}
	data, err := os.ReadFile(d.Path("quarantine", copies[0].Name()))
	if err != nil || string(data) != want {
		t.Errorf("the copy holds %q, %v; want %q", data, err, want)
	}
}

func TestCase18_NewerIsLeftAlone(t *testing.T) {
	for _, newer := range []string{`{"version":2,"n":1}`, `{"n":{"other":"type"},"version":99}`} {
		d := open(t)
		if err := os.WriteFile(d.Path("counter.json"), []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read[counter](d, "counter.json"); !errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged) {
			t.Errorf("read: %v, want ErrNewer", err)
		}
		if err := Update(t.Context(), d, "counter.json", increment); !errors.Is(err, ErrNewer) {
			t.Errorf("update: %v, want ErrNewer", err)
		}
		if data, err := os.ReadFile(d.Path("counter.json")); err != nil || string(data) != newer {
			t.Errorf("the file became %q, %v", data, err)
		}
		if _, err := os.Stat(d.Path("quarantine")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it was quarantined: %v", err)
		}
	}
}

// No bytes are taken for a record that is not there: that is how a run would be launched twice.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "null", "{}", `{"version":1}`, `{"version":2}`, `{"version":1,"n":1}`, `{"version":-1}`, `{"VERSION":1}`} {
		f.Add([]byte(seed))
	}
	d := open(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Count(strings.ToLower(string(data)), "ver") > 1 || bytes.ContainsRune(data, '\\') {
			t.Skip("two versions, which we never write")
		}
		c, err := decode[counter](d, "counter.json", data, true)
		switch {
		case err == nil && c.Version != 1:
			t.Errorf("%q became %+v", data, c)
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer):
			t.Errorf("%q: %v", data, err)
		}
	})
}

// Killed at any point, the record is the old or the new one, whole; the next writer carries on.
func TestX8_UpdateKilledAnywhereIsOldOrNew(t *testing.T) {
	isNew := map[string]bool{"state.locked": false, "state.write": false, "state.written": false, "state.renamed": true, "state.synced": true}
	for point, renamed := range isNew {
		t.Run(point, func(t *testing.T) {
			d := open(t)
			if err := Update(t.Context(), d, "counter.json", increment); err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("long enough ", 10_000)
			err := play(t, "replace", d.Path(), text, "kill:"+point+"@"+t.TempDir()+"/passes").Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v, want killed", err)
			}
			want := counter{Version: 1, N: 1}
			if renamed {
				want = counter{Version: 1, N: 2, Text: text}
			}
			got, err := Read[counter](d, "counter.json")
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
			if err := Update(t.Context(), d, "counter.json", increment); err != nil {
				t.Error(err)
			}
			// What is left over is hidden from who lists records.
			if entries, err := filepath.Glob(d.Path("[^.]*")); err != nil || len(entries) != 3 {
				t.Errorf("%v, %v; want layout.json, locks and the record", entries, err)
			}
		})
	}
}

// The points above are all there are: a new one must be added to the table.
func TestX8_AllPointsAreWalked(t *testing.T) {
	d := open(t)
	log := t.TempDir() + "/points"
	if err := play(t, "replace", d.Path(), "x", "log:"+log).Run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	want := "state.locked\nstate.write\nstate.written\nstate.renamed\nstate.synced\n"
	if diff := cmp.Diff(want, string(data)); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestCase20_FullDiskKeepsTheLastRecord(t *testing.T) {
	d := open(t)
	if err := Update(t.Context(), d, "counter.json", increment); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(d.Path("counter.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := play(t, "replace", d.Path(), "x", "")
	c.Args = append([]string{"sh", "-c", `ulimit -f 0; trap "" XFSZ; exec /proc/` + pid() + `/exe "$@"`, "sh"}, c.Args[1:]...)
	c.Path = "/bin/sh"
	if err := c.Run(); err == nil {
		t.Error("an update without space succeeded")
	}
	after, err := os.ReadFile(d.Path("counter.json"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the record became %q, %v", after, err)
	}
	if err := Update(t.Context(), d, "counter.json", increment); err != nil {
		t.Error(err)
	}
}

func TestFull_MarksWhatMeansNoSpace(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, &fs.PathError{Op: "write", Err: syscall.ENOSPC}} {
		if err := Full(full); !errors.Is(err, ErrFull) || !errors.Is(err, full) {
			t.Errorf("%v: %v", full, err)
		}
	}
	for _, other := range []error{nil, syscall.EIO} {
		if err := Full(other); errors.Is(err, ErrFull) || !errors.Is(err, other) {
			t.Errorf("%v: %v", other, err)
		}
	}
}

func TestUpdate_RoundTrip(t *testing.T) {
	d := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		want := counter{Version: 1, N: rapid.Int().Draw(rt, "n"), Text: rapid.String().Draw(rt, "text")}
		if err := Put(t.Context(), d, "counter.json", want); err != nil {
			rt.Fatal(err)
		}
		got, err := Read[counter](d, "counter.json")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			rt.Fatalf("%v (-want +got)\n%s", err, diff)
		}
	})
}

// What interrupted writes left goes, under the lock of the record it was meant for; nothing else does.
func TestCleanTemporary(t *testing.T) {
	d := open(t)
	if err := d.Mkdir("executions", "k"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".spec.json123", ".status.json9", "spec.json", ".text5"} {
		if err := os.WriteFile(d.Path("executions", "k", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.CleanTemporary(t.Context(), "executions/k", time.Hour)
	if left, err := os.ReadDir(d.Path("executions", "k")); err != nil || len(left) != 4 {
		t.Errorf("young ones are gone: %v, %v", left, err)
	}
	unlock, err := d.LockRecord(t.Context(), "executions/k/spec.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d.CleanTemporary(ctx, "executions/k", 0)
	if _, err := os.Stat(d.Path("executions", "k", ".spec.json123")); err != nil {
		t.Errorf("its writer lives: %v", err)
	}
	unlock()
	d.CleanTemporary(t.Context(), "executions/k", 0)
	left, err := os.ReadDir(d.Path("executions", "k"))
	if err != nil || len(left) != 1 || left[0].Name() != "spec.json" {
		t.Errorf("left %v, %v", left, err)
	}
}
