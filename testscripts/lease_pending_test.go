package testscripts

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// attaching has a client's attach to a session pending, until unlock is called: the record is locked by somebody else.
func (d *driver) attaching(id string, a api.Attach) (answer <-chan answered[api.Attached], unlock func()) {
	d.s.t.Helper()
	unlock = d.s.lockRecord(record.SessionFile(id))
	a.Session = id
	answer = ask[api.Attached](d, api.MethodSessAttach, a)
	d.s.until("the attach is pending", func() bool { // the client's record names the session before the lease is written
		return strings.Contains(d.s.bytes(record.ClientFile(d.id)), id)
	})
	return answer, unlock
}

// joinApart is a client whose record has another lock than a session's: of those there are 256.
func (s *stage) joinApart(id string) *driver {
	s.t.Helper()
	lock := func(path string) byte { sum := sha256.Sum256([]byte(path)); return sum[0] }
	name := "b"
	for lock(record.ClientFile(name)) == lock(record.SessionFile(id)) {
		name += "b"
	}
	return s.join(name)
}

func TestL11_AnotherOperationIsBusyWithTheNameOfTheFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	a.detach(id)
	a.owned(id, "free")
	b, first := s.joinApart(id), operation()
	answer, unlock := b.attaching(id, api.Attach{Operation: first, Mode: "exclusive"})
	for method, params := range map[string]any{
		api.MethodSessAttach:    api.Attach{Operation: operation(), Session: id},
		api.MethodSessSend:      api.Send{Operation: operation(), Session: id, Text: "say no"},
		api.MethodSessInterrupt: api.Interrupt{Operation: operation(), Session: id},
	} {
		e := b.refused(api.CodeBusy, method, params)
		pending, _ := e.Data["pending"].(map[string]any)
		if pending["method"] != api.MethodSessAttach || pending["operationId"] != first.OperationID || !strings.Contains(e.Message, first.OperationID) || !e.Retryable {
			t.Errorf("%s is refused with %+v", method, e)
		}
	}
	same := ask[api.Attached](b, api.MethodSessAttach, api.Attach{Operation: first, Session: id, Mode: "exclusive"}) // it is the first
	unlock()
	one, two := <-answer, <-same
	if one.err != nil || two.err != nil || one.answer.Lease != two.answer.Lease {
		t.Errorf("answered %+v and %+v", one, two)
	}
	s.changed(id, "taken a exclusive", "given_back a exclusive", "taken "+b.id+" exclusive")
	b.detach(id)
	s.quiet()
}

func TestL11_ADetachOrTheClientsEndLeavesNoLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	a.detach(id)
	a.owned(id, "free")
	for name, end := range map[string]func(*driver) <-chan answered[any]{
		"detach": func(b *driver) <-chan answered[any] {
			return ask[any](b, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
		},
		"goodbye": func(b *driver) <-chan answered[any] { return ask[any](b, api.MethodGoodbye, nil) },
	} {
		b := s.joinApart(id)
		answer, unlock := b.attaching(id, api.Attach{Operation: operation(), Mode: "exclusive"})
		ended := end(b)
		got := <-answer // it was called off, and does not wait for the lock
		if got.err == nil {
			t.Errorf("%s: attached %+v", name, got.answer)
		}
		unlock()
		if done := <-ended; done.err != nil && name == "detach" { // a goodbye is answered by the end of the connection
			t.Errorf("%s: %v", name, done.err)
		}
		a.comes(id, "nobody holds it", func(s api.Session) bool { return len(s.Leases) == 0 })
		a.attach(id, "exclusive")
		a.detach(id)
		if name == "detach" {
			_, _ = try[any](b, api.MethodGoodbye, nil)
		}
		s.until("the client has ended", func() bool {
			_, err := os.Stat(filepath.Join(s.home, record.ClientFile(b.id)))
			return os.IsNotExist(err)
		})
		for _, change := range s.leaseChanges(id) {
			if strings.Contains(change, b.id+" ") {
				t.Errorf("%s: %q", name, change)
			}
		}
	}
	if s.lines("launches") != 1 {
		t.Errorf("%d processes", s.lines("launches"))
	}
	s.quiet()
}
