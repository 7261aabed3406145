package state

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func pid() string { return strconv.Itoa(os.Getpid()) }

func TestOpen_MakesWhatIsAbsentOrEmptyAndKeepsItsID(t *testing.T) {
	for name, path := range map[string]string{"absent": t.TempDir() + "/a/b", "empty": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			if _, err := OpenExisting(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open existing: %v, want fs.ErrNotExist", err)
			}
			d, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			again, err := OpenExisting(path)
			if err != nil || again.HomeID() != d.HomeID() || d.HomeID() == "" {
				t.Errorf("%q then %q, %v", d.HomeID(), again.HomeID(), err)
			}
			if d.Moved() || again.Moved() {
				t.Error("an original is taken for a copy")
			}
			wantModes(t, d)
		})
	}
}

func TestOpen_20AtOnceAgree(t *testing.T) {
	path := t.TempDir() + "/home"
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			d, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = d.HomeID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("ids %v", ids)
		}
	}
}

func TestOpen_RefusesWhatIsNotOurs(t *testing.T) {
	foreign, file, home := t.TempDir(), t.TempDir()+"/file", open(t)
	for _, path := range []string{foreign + "/photo.jpg", file} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(home.Path(), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"somebody's files": foreign, "a file": file, "below a file": file + "/home", "open to others": home.Path(),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), path); !errors.Is(err, ErrNotOurs) {
				t.Errorf("%v, want ErrNotOurs", err)
			}
		})
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
		t.Errorf("something was made there: %v, %v", entries, err)
	}
}

func TestOpen_RefusesAnotherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	path := t.TempDir()
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "12345") {
		t.Errorf("%v, want ErrNotOurs naming the owner", err)
	}
}

func TestOpen_NewerAndDamagedLayout(t *testing.T) {
	for content, want := range map[string]error{
		`{"version":2,"homeId":"x"}`: ErrNewer, "": ErrDamaged, `{"version":1,"home`: ErrDamaged, "{}": ErrDamaged, "null": ErrDamaged,
	} {
		d := open(t)
		if err := os.WriteFile(d.Path("layout.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), d.Path()); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", content, err, want)
		}
		if data, err := os.ReadFile(d.Path("layout.json")); err != nil || string(data) != content {
			t.Errorf("the layout became %q, %v", data, err)
		}
	}
}

// Killed while it was made, it is made by the next.
func TestX8_OpenKilledAnywhereIsMadeByTheNext(t *testing.T) {
	for _, point := range []string{"state.locked", "state.write", "state.written", "state.renamed", "state.synced"} {
		t.Run(point, func(t *testing.T) {
			path := t.TempDir() + "/home"
			err := play(t, "count", path, "0", "kill:"+point+"@"+t.TempDir()+"/passes").Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v, want killed", err)
			}
			d, err := Open(t.Context(), path)
			if err != nil || d.HomeID() == "" || d.Moved() {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

func TestX38_CopyIsMovedUntilSettled(t *testing.T) {
	d := open(t)
	copied := t.TempDir() + "/copy"
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", d.Path(), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, err := Open(t.Context(), copied)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Moved() || c.HomeID() != d.HomeID() {
		t.Errorf("moved %v, id %s of %s", c.Moved(), c.HomeID(), d.HomeID())
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), copied)
	if err != nil || c.Moved() || again.Moved() || again.HomeID() == d.HomeID() || again.HomeID() != c.HomeID() {
		t.Errorf("after settling: moved %v and %v, id %s of %s, %v", c.Moved(), again.Moved(), again.HomeID(), d.HomeID(), err)
	}
	if original, err := Open(t.Context(), d.Path()); err != nil || original.Moved() {
		t.Errorf("the original: moved %v, %v", original.Moved(), err)
	}
}

func TestX38_RenamedIsNotMoved(t *testing.T) {
	d := open(t)
	if err := os.Rename(d.Path(), d.Path()+"2"); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(t.Context(), d.Path()+"2"); err != nil || again.Moved() {
		t.Errorf("moved %v, %v", again.Moved(), err)
	}
}

func TestMkdir_TwiceAndOverAFile(t *testing.T) {
	d := open(t)
	for range 2 {
		if err := d.Mkdir("a", "b", "c"); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(d.Path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Mkdir("file", "b"); err == nil {
		t.Error("made a directory below a file")
	}
}
