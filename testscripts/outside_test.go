package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// What can be seen of a session from outside: its files, and what reached its agent.

// bytes is all of the files below directories or files of the home, each behind its name.
func (s *stage) bytes(names ...string) string {
	s.t.Helper()
	var b strings.Builder
	for _, name := range names {
		_ = filepath.WalkDir(filepath.Join(s.home, name), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %v\n%s\n", path, err, data)
			return nil
		})
	}
	return b.String()
}

// traces is all that an operation on a session could leave: its record, its journal, the clients' records, what the agent got.
func (s *stage) traces(id string) string {
	return s.bytes("sessions/"+id, "clients", "executions") + fmt.Sprint(s.lines("requests"), s.lines("launches"))
}

// tales are the events of a kind in a session's journal.
func (s *stage) tales(id, kind string) []journal.Event {
	s.t.Helper()
	events, err := journal.Scan(filepath.Join(s.home, record.JournalDir(id)), time.Time{}, kind)
	if err != nil {
		s.t.Fatal(err)
	}
	return events
}

// whole is a session's journal.
func (s *stage) whole(id string) (all []journal.Event) {
	s.t.Helper()
	r := journal.NewReader(filepath.Join(s.home, record.JournalDir(id)), 0)
	defer r.Close()
	for {
		events, err := r.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
	}
}

// leaseChanges are the lease_changed events of a session: what, and whose.
func (s *stage) leaseChanges(id string) (all []string) {
	for _, e := range s.tales(id, "lease_changed") {
		var d struct{ Change, Client, Mode string }
		_ = json.Unmarshal(e.Data, &d)
		all = append(all, strings.Join([]string{d.Change, d.Client, d.Mode}, " "))
	}
	return all
}

// changed compares the lease_changed events with those that are wanted.
func (s *stage) changed(id string, want ...string) {
	s.t.Helper()
	if got := s.leaseChanges(id); !slices.Equal(got, want) {
		s.t.Errorf("leases changed: %q, want %q", got, want)
	}
}

// sessionRecord is a session's record.
func (s *stage) sessionRecord(id string) record.Session {
	s.t.Helper()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		s.t.Fatal(err)
	}
	sess, err := state.Read[record.Session](d, record.SessionFile(id))
	if err != nil {
		s.t.Fatal(err)
	}
	return sess
}

// lockRecord holds the lock of a record, so that whoever wants to change it waits.
func (s *stage) lockRecord(path string) (unlock func()) {
	s.t.Helper()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		s.t.Fatal(err)
	}
	unlock, err = d.LockRecord(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return unlock
}

// holdFile has nobody put another file in the place of one, until it is let go.
func (s *stage) holdFile(path string) (let func()) {
	s.t.Helper()
	file := filepath.Join(s.home, path)
	if err := bind(file); err != nil {
		s.t.Skipf("cannot mount: %v", err)
	}
	held := true
	let = func() {
		if held {
			held = false
			_ = unbind(file)
		}
	}
	s.t.Cleanup(let)
	return let
}

func (d *driver) attach(id, mode string) api.Attached {
	d.s.t.Helper()
	return call[api.Attached](d, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, Mode: mode})
}

func (d *driver) takeOver(id string) api.Attached {
	d.s.t.Helper()
	return call[api.Attached](d, api.MethodSessAttach, api.Attach{Operation: operation(), Session: id, TakeOver: true})
}

func (d *driver) detach(id string) api.Detached {
	d.s.t.Helper()
	return call[api.Detached](d, api.MethodSessDetach, api.Detach{Operation: operation(), Session: id})
}

// waitUntil is an execution whose message has come so far.
func (d *driver) waitUntil(id, until string) api.Execution {
	d.s.t.Helper()
	return call[api.Execution](d, api.MethodWait, api.Wait{ID: id, Until: until})
}

// owner is who has the session, as a refusal says.
func owner(t *testing.T, e *api.Error) (o struct {
	Client, Execution, Mode string
	Since                   time.Time
	Connected               *bool
	GraceUntil              *time.Time
},
) {
	t.Helper()
	data, err := json.Marshal(e.Data["owner"])
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil || len(e.Data) != 1 || e.Next == "" {
		t.Errorf("refused with %+v (%v)", e, err)
	}
	return o
}

// answered is the answer of a request that was made in another goroutine.
type answered[T any] struct {
	answer T
	err    error
}

// ask makes a request in the background.
func ask[T any](d *driver, method string, params any) <-chan answered[T] {
	c := make(chan answered[T], 1)
	go func() {
		a, err := try[T](d, method, params)
		c <- answered[T]{a, err}
	}()
	return c
}

// lose breaks the connection, and waits until the supervisor knows.
func (d *driver) lose(seenBy *driver, id string) {
	d.s.t.Helper()
	d.c.Close()
	d.s.until(d.id+" is away", func() bool {
		return !slices.ContainsFunc(seenBy.get(id).Leases, func(l api.Lease) bool { return l.Client == d.id && l.Connected })
	})
}

// reconnect is back on another connection.
func (d *driver) reconnect() {
	d.s.t.Helper()
	if err := d.connect(); err != nil {
		d.s.t.Fatal(err)
	}
}
