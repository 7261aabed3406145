package testscripts

import (
	"net"
	"testing"

	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/state"
)

// More connections than a supervisor may have files end nothing: it serves on once they are gone, and a run that goes
// on meanwhile is supervised by the same one.
func TestC4_AFloodOfConnectionsEndsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	started := s.command()
	started.Path, started.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 100 && exec "$0" supervise restart`, binary}
	if out, err := started.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := s.supervising(t)
	var all []net.Conn
	for range 300 {
		if conn, err := net.Dial("unix", before.Socket); err == nil {
			all = append(all, conn)
		}
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	s.verb("run", "--id", "k", "-a", "command", "--", "sh", "-c", "echo >> launches.k")
	if n := s.launches("k"); n != 1 {
		t.Errorf("%d launches", n)
	}
	if after := s.supervising(t); after.Identity != before.Identity {
		t.Errorf("another supervisor: %+v, was %+v", after, before)
	}
	s.quiet()
}

// supervising is supervisor.json.
func (s *stage) supervising(t testing.TB) supervisor.Record {
	t.Helper()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
