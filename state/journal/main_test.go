package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/crash"
)

// role makes this test binary append to the journal in the directory that it names.
const role = "JOURNAL_TEST_APPEND_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(role); dir != "" {
		w, _, err := Open(dir, 0, clock)
		if err == nil {
			_, err = w.Append([]Event{event("a"), event("b")}, Commit{Runtime: "r", Out: 2}, true)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // it was to be killed
	}
	os.Exit(m.Run())
}

func appendKilled(t *testing.T, dir, point string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = append(os.Environ(), role+"="+dir, crash.Variable+"=kill:"+point+"@"+t.TempDir()+"/passes")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v, want killed: %s", err, out)
	}
}

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }

func event(text string) Event {
	data, _ := json.Marshal(text)
	return Event{Session: "s-1", Execution: "k", Fence: 3, Turn: "t", Type: "agent_message_chunk", Data: data}
}

func open(t testing.TB, dir string, skip uint64) (*Writer, Recovered) {
	t.Helper()
	w, found, err := Open(dir, skip, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, found
}

func add(t testing.TB, w *Writer, events ...Event) uint64 {
	t.Helper()
	last, err := w.Append(events, Commit{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func readAll(t testing.TB, dir string, after uint64) []Event {
	t.Helper()
	events, err := ReadAll(dir, after)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// texts are the data of events, as short as they were given to event.
func texts(events []Event) (all []string) {
	for _, e := range events {
		var s string
		_ = json.Unmarshal(e.Data, &s)
		all = append(all, s)
	}
	return all
}

// segment is the path of the only segment.
func segment(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(found) != 1 {
		t.Fatalf("segments %v, %v; want one", found, err)
	}
	return found[0]
}

func rewrite(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// memory is a directory in which fsync costs nothing, if there is one: for tests of thousands of appends.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
