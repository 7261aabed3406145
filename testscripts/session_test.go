package testscripts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// get is a session as it is now.
func (d *driver) get(id string) api.Session {
	d.s.t.Helper()
	return call[api.Session](d, api.MethodSessGet, api.SessionTarget{Session: id})
}

// comes waits until a session is as it is to be.
func (d *driver) comes(id, what string, is func(api.Session) bool) (sess api.Session) {
	d.s.t.Helper()
	d.s.until(what, func() bool {
		sess = d.get(id)
		return is(sess)
	})
	return sess
}

// owned waits until a session's runtime is in a state.
func (d *driver) owned(id, state string) api.Session {
	d.s.t.Helper()
	return d.comes(id, "the runtime is "+state, func(s api.Session) bool { return s.Ownership.State == state })
}

// replaced waits until a session's agent is another process, in which its conversation stands.
func (d *driver) replaced(id string, pid int) api.Session {
	d.s.t.Helper()
	return d.comes(id, "the agent is another process", func(s api.Session) bool {
		return s.Ownership.State == "live" && s.Ownership.Runtime != nil && s.Ownership.Runtime.PID != pid && len(s.Queue) == 0
	})
}

// pid is the process of a session's agent.
func (d *driver) pid(id string) int {
	d.s.t.Helper()
	return d.comes(id, "it has a process", func(s api.Session) bool { return s.Ownership.Runtime != nil && s.Ownership.Runtime.PID > 0 }).Ownership.Runtime.PID
}

// post sends a message and does not wait for its end.
func (d *driver) post(id, text string) api.Sent {
	d.s.t.Helper()
	return call[api.Sent](d, api.MethodSessSend, api.Send{Operation: operation(), Session: id, Text: text})
}

// wait waits for the end of an execution.
func (d *driver) wait(key string) api.Execution {
	d.s.t.Helper()
	return call[api.Execution](d, api.MethodWait, api.Wait{ID: key})
}

// over waits for the end of an execution that waits for somebody, too.
func (d *driver) over(key string) (e api.Execution) {
	d.s.t.Helper()
	d.s.until(key+" has ended", func() bool {
		e = call[api.Execution](d, api.MethodGet, api.Target{ID: key})
		return e.EndedAt != nil
	})
	return e
}

// rows is all of a session's history, which is short.
func (d *driver) rows(id string) []record.Row {
	d.s.t.Helper()
	return call[record.Rows](d, api.MethodSessHistory, api.History{Session: id, Limit: 200}).Rows
}

// kinds are what the rows of a session's history are.
func (d *driver) kinds(id string) string {
	d.s.t.Helper()
	var all []string
	for _, row := range d.rows(id) {
		all = append(all, row.Type)
	}
	return strings.Join(all, " ")
}

// aTurn is what the history has of a turn in which the agent said something.
const aTurn = "user_message_chunk agent_message_chunk turn_ended"

// slay kills a process and waits until it is dead.
func (s *stage) slay(pid int) {
	s.t.Helper()
	id, err := proc.Identify(pid)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = proc.Signal(id, syscall.SIGKILL)
	s.until("it is dead", func() bool { return id.Liveness() == proc.Dead })
}

// stop stops a process (SIGSTOP) until the test ends, or go on is called.
func (s *stage) freeze(pid int) (thaw func()) {
	s.t.Helper()
	id, err := proc.Identify(pid)
	if err == nil {
		err = proc.Signal(id, syscall.SIGSTOP)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("it stands still", func() bool {
		data, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
		return err != nil || strings.Contains(string(data), ") T ")
	})
	thaw = func() { _ = proc.Signal(id, syscall.SIGCONT) }
	s.t.Cleanup(thaw)
	return thaw
}

// shimOf is the shim of a session's runtime.
func (s *stage) shimOf(id string) int {
	s.t.Helper()
	d := s.records()
	for _, rec := range supervisor.Runtimes(d) {
		if slices.Contains(rec.Sessions, id) {
			return rec.ShimPID
		}
	}
	s.t.Fatalf("session %s has no shim", id)
	return 0
}

func (s *stage) records() *state.Dir {
	s.t.Helper()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// again kills the supervisor, has another one serve, and has the client come back to it.
func (d *driver) again() {
	d.s.t.Helper()
	d.s.slay(d.s.supervising(d.s.t).PID)
	d.back()
}

// back has the client come back to another supervisor.
func (d *driver) back() {
	d.s.t.Helper()
	d.c.Close()
	d.s.serving()
	if err := d.connect(); err != nil {
		d.s.t.Fatal(err)
	}
}

// touch makes a file for the agent, and without takes it away.
func (s *stage) touch(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) without(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.work, name)); err != nil {
		s.t.Fatal(err)
	}
}

// asked is how often the agent got a request, with words in it.
func (s *stage) requested(method, words string) (n int) {
	data, _ := os.ReadFile(filepath.Join(s.work, "requests"))
	for line := range strings.Lines(string(data)) {
		var m struct{ Method string }
		if json.Unmarshal([]byte(line), &m) == nil && m.Method == method && strings.Contains(line, words) {
			n++
		}
	}
	return n
}

// said is how often a session's journal has an event of a kind.
func (s *stage) journalled(id, kind string) (n int) {
	s.t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.home, record.JournalDir(id), "*.jsonl"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		n += strings.Count(string(data), `"type":"`+kind+`"`)
	}
	return n
}

// ticks waits until the supervisor has looked around several times. That nothing follows from it cannot be waited for.
func (s *stage) ticks() {
	began := time.Now()
	s.until("the supervisor has looked around", func() bool { return time.Since(began) > 2500*time.Millisecond })
}

func itoa(n int) string { return string(must(json.Marshal(n))) }

func must(data []byte, _ error) []byte { return data }
