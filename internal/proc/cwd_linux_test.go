package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inDir starts a process that works in a directory.
func inDir(t *testing.T, dir string) Identity {
	t.Helper()
	return start(t, Spawn{Args: []string{"/bin/sh", "-c", "exec sleep 1000 # \x1b[2J"}, Dir: dir})
}

func TestX22_ProcessesWithTheirCwdInside(t *testing.T) {
	top := t.TempDir()
	dir, beside := filepath.Join(top, "tree"), filepath.Join(top, "tree2")
	below, link := filepath.Join(dir, "a", "b (deleted)"), filepath.Join(top, "link")
	for _, d := range []string{below, beside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	in, deep, out := inDir(t, link), inDir(t, below), inDir(t, beside)
	for _, path := range []string{dir, link} {
		found, err := WithCwd(path, nil)
		if err != nil || len(found) != 2 || !has(found, in.PID) || !has(found, deep.PID) {
			t.Errorf("in %s: %+v, %v; want %d and %d, not %d", path, found, err, in.PID, deep.PID, out.PID)
		}
	}
	found, err := WithCwd(dir, func(pid int) bool { return pid == in.PID })
	if err != nil || len(found) != 1 || found[0].PID != deep.PID {
		t.Errorf("without %d: %+v, %v", in.PID, found, err)
	}
}

func has(found []Occupant, pid int) bool {
	for _, o := range found {
		if o.PID == pid {
			return true
		}
	}
	return false
}

func TestX22_DeletedCwdIsBelowNothing(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "gone")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	inDir(t, below)
	if err := os.Remove(below); err != nil {
		t.Fatal(err)
	}
	if found, err := WithCwd(dir, nil); err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := WithCwd(below, nil); err == nil {
		t.Error("no error for a directory that is not there")
	}
}

func TestX22_CommandLineIsOnePrintableLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sleep", "10"}, "sleep 10"},
		{[]string{"a\nb", "\x1b[2J", "ü", "\xff"}, `a\nb \x1b[2J ü \ufffd`},
		{nil, "[comm]"},
		{[]string{""}, "[comm]"},
		{[]string{strings.Repeat("x", 300)}, strings.Repeat("x", 200)},
	} {
		if got := commandLine(c.args, "comm"); got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}
