package testscripts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// bound is what a supervisor, a shim or a verb may have had in memory at most, in MB: far more than they need, far
// less than 100 MB of output in any two copies.
const bound = 150

// lineLength is the length in MB of the longest line; PINTLE_LONG has it 100.
func lineLength() int {
	if os.Getenv("PINTLE_LONG") != "" {
		return 100
	}
	return 15
}

// A line of 15 MB, or of 100, passes through shim, supervisor and logs -f, whole, and none of them ever holds much
// of it (case 16).
func TestCase16_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	size := lineLength() << 20
	s.verb("run", "-d", "--id", "k", "-a", "command", "--", "sh", "-c",
		fmt.Sprintf(`echo x >> launches.k; head -c %d /dev/zero | tr '\0' a; echo; until [ -e go ]; do sleep 0.02; done`, size))
	c := s.command("logs", "-f", "k")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, size+1)
	if n, err := io.ReadFull(out, line); err != nil {
		t.Errorf("%d of %d bytes came: %v", n, len(line), err)
	}
	if got := bytes.Count(line, []byte{'a'}); got != size || line[size] != '\n' {
		t.Errorf("%d of %d bytes are as they were", got, size)
	}
	peaks := map[string]float64{"logs": peak(t, c.Process.Pid)}
	for _, p := range s.tagged() {
		if len(p.Args) > 1 && (p.Args[1] == "shim" || p.Args[1] == "supervise") {
			peaks[p.Args[1]] = peak(t, p.PID)
		}
	}
	t.Logf("peaks in MB: %v", peaks)
	for role, mb := range peaks {
		if mb > bound {
			t.Errorf("%s had %.0f MB in memory, want %d at most", role, mb, bound)
		}
	}
	if len(peaks) != 3 {
		t.Errorf("peaks of %v, want those of shim, supervise and logs", peaks)
	}
	s.letGo()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	text, _ := s.quietly("result", "k")
	if e := s.ending("k"); e.Outcome != "completed" || s.launches("k") != 1 || len(text) != 1<<20 {
		t.Errorf("ended as %s after %d launches, with %d bytes of text", e.Outcome, s.launches("k"), len(text))
	}
	s.quiet()
}

// peak is VmHWM in MB: the most that a process has had in memory.
func peak(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kb) / 1024
}
