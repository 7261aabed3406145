package shim

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/state"
)

// TestMain makes this test binary a shim, or a supervisor that leaves at once, when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Verb:
			os.Exit(Main())
		case "supervise":
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// running is a shim under test.
type running struct {
	*Control
	dir *state.Dir
	cfg Config
	pid int
}

// launch has a real shim run script, which is told where it may write as $1.
func launch(t *testing.T, script string, change func(*Config)) *running {
	t.Helper()
	d, err := state.Open(t.Context(), t.TempDir()+"/home")
	if err == nil {
		err = d.Mkdir("s")
	}
	if err != nil {
		t.Fatal(err)
	}
	return launchIn(t, d, "x", script, change)
}

// launchIn is launch for another runtime of a state directory.
func launchIn(t *testing.T, d *state.Dir, runtime, script string, change func(*Config)) *running {
	t.Helper()
	if err := d.Mkdir("runtimes", runtime); err != nil {
		t.Fatal(err)
	}
	token := d.HomeID() + "." + runtime
	cfg := Config{
		Runtime: runtime, Home: d.Path(), Token: token, Socket: d.Path("s", runtime), Epoch: 1, Path: "/bin/sh",
		Args: []string{"sh", "-c", script, "sh", d.Path("written")}, Env: []string{"PATH=/usr/bin:/bin", TokenVariable + "=" + token},
		Dir: "/", Umask: -1, SpoolLimit: 1 << 30, Stdin: true,
	}
	if change != nil {
		change(&cfg)
	}
	log, err := os.Create(d.Path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c, pid, err := Launch(cfg, log, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Control: c, dir: d, cfg: cfg, pid: pid}
	t.Cleanup(func() { r.cleanUp(t) })
	return r
}

// cleanUp ends what is left of a test that failed, and the shim itself.
func (r *running) cleanUp(t *testing.T) {
	if t.Failed() {
		log, _ := os.ReadFile(r.dir.Path("log"))
		t.Logf("the shim's log: %s", log)
	}
	if a, err := state.Read[Agent](r.dir, AgentFile(r.cfg.Runtime)); err == nil && t.Failed() {
		_ = proc.Signal(a.Shim, 9)
		if a.Agent != nil {
			_ = proc.Signal(*a.Agent, 9)
		}
	}
	if _, err := proc.Reap(r.pid); err != nil {
		t.Log(err)
	}
}

// next returns the next event for which pick is true; the rest are passed over.
func (r *running) next(t *testing.T, what string, pick func(Event) bool) Event {
	t.Helper()
	for {
		select {
		case e, ok := <-r.Events():
			if !ok {
				t.Fatalf("connection lost before %s", what)
			}
			if pick(e) {
				return e
			}
		case <-t.Context().Done():
			t.Fatalf("no %s", what)
		}
	}
}

func started(e Event) bool { return e.Started != nil }
func ended(e Event) bool   { return e.Exit != nil }
func written(e Event) bool { return e.Written != nil }

// said picks the event that tells of so much output.
func said(out, err int64) func(Event) bool {
	return func(e Event) bool { return e.Out == out && e.Err == err }
}

func (r *running) adopt(t *testing.T, epoch int64) (*running, error) {
	t.Helper()
	conn, err := net.Dial("unix", r.cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Adopt(conn, epoch)
	return &running{Control: c, dir: r.dir, cfg: r.cfg, pid: r.pid}, err
}

func (r *running) spool(t *testing.T, stream string) string {
	t.Helper()
	return string(readSpool(t, r.dir.Path(SpoolDir("x")), stream, 0))
}

func readSpool(t testing.TB, dir, stream string, from int64) []byte {
	t.Helper()
	var all bytes.Buffer
	p := make([]byte, 100_000)
	for {
		n, err := ReadSpool(dir, stream, from+int64(all.Len()), p)
		if n == 0 {
			if err != nil && !strings.Contains(err.Error(), "EOF") {
				t.Fatal(err)
			}
			return all.Bytes()
		}
		all.Write(p[:n])
	}
}

func mustJSON(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}
