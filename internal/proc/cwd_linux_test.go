package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestX22_WhoWorksInADirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, beside := filepath.Join(dir, "in", "deep"), filepath.Join(dir, "inner")
	for _, d := range []string{in, beside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start := func(at string) int {
		cmd := exec.Command("sh", "-c", "read line; true \a")
		cmd.Dir = at
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	pid, _ := start(in), start(beside)
	found, err := WithCwd(filepath.Join(dir, "in"), nil)
	if err != nil || len(found) != 1 || found[0].PID != pid {
		t.Fatalf("%v, %v; want %d", found, err, pid)
	}
	if !strings.HasPrefix(found[0].Command, "sh -c read line") || strings.Contains(found[0].Command, "\a") {
		t.Errorf("its command is %q", found[0].Command)
	}
	if found, err := WithCwd(filepath.Join(dir, "in"), func(p int) bool { return p == pid }); err != nil || len(found) > 0 {
		t.Errorf("spared: %v, %v", found, err)
	}
}
