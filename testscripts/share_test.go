package testscripts

import (
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// openShared creates a session whose agent's process may serve others.
func (d *driver) openShared() api.Session {
	d.s.t.Helper()
	c := d.s.creation()
	c.Share = true
	return call[api.Session](d, api.MethodSessCreate, c)
}

// Sessions that clients hold share a process: each takes its messages there, and one that is detached leaves the other be.
func TestShare_HeldSessions(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	one, two := a.openShared(), b.openShared()
	pid := a.pid(one.ID)
	if other := b.pid(two.ID); other != pid || s.lines("launches") != 1 {
		t.Fatalf("%d serves one session, %d the other; %d processes", pid, other, s.lines("launches"))
	}
	for range 2 {
		if _, e := a.send(one.ID, "say one"); e.Outcome != "completed" || e.Conversation != "T1" {
			t.Errorf("ended as %+v", e)
		}
		if _, e := b.send(two.ID, "say two"); e.Outcome != "completed" || e.Conversation != "T2" {
			t.Errorf("ended as %+v", e)
		}
	}
	a.detach(one.ID)
	a.owned(one.ID, "free")
	if _, e := b.send(two.ID, "say three"); e.Outcome != "completed" || b.pid(two.ID) != pid {
		t.Errorf("ended as %+v", e)
	}
	b.detach(two.ID)
	s.quiet()
}

// The death of the process is the exit of each session's runtime, that nobody asked for (R1): both come again, at higher
// fences, in their own conversations and in one process.
func TestShare_R1_HeldSessionsComeAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	one, two := a.openShared(), b.openShared()
	a.send(one.ID, "say one")
	b.send(two.ID, "say two")
	pid := a.pid(one.ID)
	s.slay(pid)
	first, second := a.replaced(one.ID, pid), b.replaced(two.ID, pid)
	if first.Fence <= one.Fence || second.Fence <= two.Fence || first.Ownership.Runtime.PID != second.Ownership.Runtime.PID || s.lines("launches") != 2 {
		t.Errorf("they are %+v and %+v; %d processes", first, second, s.lines("launches"))
	}
	if _, e := a.send(one.ID, "say three"); e.Outcome != "completed" || e.Conversation != "T1" {
		t.Errorf("ended as %+v", e)
	}
	if _, e := b.send(two.ID, "say four"); e.Outcome != "completed" || e.Conversation != "T2" {
		t.Errorf("ended as %+v", e)
	}
	a.detach(one.ID)
	b.detach(two.ID)
	s.quiet()
}
