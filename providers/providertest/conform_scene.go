package providertest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
)

// patience is how long a cell waits for anything: some agents take ten seconds for a start, and more on a machine that others use.
const patience = 2 * time.Minute

// A scene is a cell that is being played.
type scene struct {
	Subject
	Stage
	t    *testing.T
	warm bool // a runtime is kept, as was asked
	note string
}

// execution is what `show --json` prints, as far as the suite looks.
type execution struct {
	ID, Session, AgentVersion, Model, Conversation, Phase, Text string

	Outcome     session.Outcome
	ExitCode    *int
	Cause       cause
	Attempt     int
	Fence       int64
	Usage       Usage
	Permissions []struct{ ID, Title string }
	WaitingFor  struct{ Kind string }
	Replayed    bool
}

type cause struct {
	Code, Message, Disposition string
	Try                        int
}

// event is a line of `logs --json`.
type event struct {
	Seq  int64
	Type string
	Data struct {
		Content              content
		ToolCallID, Status   string
		Signal               string
		Entries              []struct{ Content, Status string }
		RawOutput            json.RawMessage
		Permission, Decision string
	}
}

// content is a piece of a message. What tools have for it is a list, and has none.
type content struct{ Text string }

// UnmarshalJSON takes either form.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return nil
	}
	type plain content
	return json.Unmarshal(data, (*plain)(c))
}

// run gives an order and waits for its end.
func (s *scene) run(id, prompt string, flags ...string) Told {
	return s.Pintle("", slices.Concat([]string{"run", "--id", id, "-a", s.Agent}, flags, []string{"--", prompt})...)
}

// order gives one and does not wait.
func (s *scene) order(id, prompt string, flags ...string) {
	s.t.Helper()
	if r := s.run(id, prompt, append(flags, "-d")...); r.Code != 0 {
		s.t.Fatalf("the order is not taken: %+v", r)
	}
}

// next gives the order that goes on with the conversation of an earlier run.
func (s *scene) next(id, earlier, prompt string, flags ...string) Told {
	s.t.Helper()
	words := slices.Concat([]string{"send", "--id", id}, flags, []string{s.show(earlier).Session, "--", prompt})
	return s.Pintle("", words...)
}

// want holds a verb to an exit code and what it printed.
func (s *scene) want(r Told, code int, out string) {
	s.t.Helper()
	if r.Code != code || r.Out != out {
		s.t.Errorf("exit %d, %.300q, %.1000s; want %d, %.300q", r.Code, r.Out, r.Err, code, out)
	}
}

// code holds a verb to an exit code.
func (s *scene) code(r Told, code int) {
	s.t.Helper()
	if r.Code != code {
		s.t.Errorf("exit %d, %.300q, %.1000s; want %d", r.Code, r.Out, r.Err, code)
	}
}

// must is a verb that succeeds, or nothing else can be tried.
func (s *scene) must(args ...string) Told {
	s.t.Helper()
	r := s.Pintle("", args...)
	if r.Code != 0 {
		s.t.Fatalf("%q: exit %d, %.300q, %.1000s", args, r.Code, r.Out, r.Err)
	}
	return r
}

func (s *scene) same(what string, got, want any) {
	s.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func (s *scene) decode(text string, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%.300q: %v", text, err)
	}
}

func (s *scene) show(id string) (e execution) {
	s.t.Helper()
	s.decode(s.must("show", "--json", id).Out, &e)
	return e
}

// ended waits for a run's end, which must be this one.
func (s *scene) ended(id string, o session.Outcome) execution {
	s.t.Helper()
	r := s.Pintle("", "wait", id)
	e := s.show(id)
	if e.Outcome != o || r.Code != o.Exit() {
		s.t.Errorf("%s ended as %q, %+v, wait exits %d; want %s", id, e.Outcome, e.Cause, r.Code, o)
	}
	return e
}

func (s *scene) events(id string) (all []event) {
	s.t.Helper()
	for line := range strings.Lines(s.must("logs", "--json", id).Out) {
		var e event
		s.decode(line, &e)
		all = append(all, e)
	}
	return all
}

// of are the events of one type.
func (s *scene) of(id, kind string) []event {
	s.t.Helper()
	return slices.DeleteFunc(s.events(id), func(e event) bool { return e.Type != kind })
}

// until waits for a fact.
func (s *scene) until(what string, fact func() bool) {
	s.t.Helper()
	for limit := time.Now().Add(patience); !fact(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			s.t.Fatalf("never came true: %s; alive are %v", what, s.Alive())
		}
	}
}

// said waits for the first words of an answer.
func (s *scene) said(id string) {
	s.t.Helper()
	s.until("it says something", func() bool { return len(s.of(id, "agent_message_chunk")) > 0 })
}

// sleeping is the command of a prompt that sleeps, by a word of its own.
const sleeping = "echo x >> ran; exec sleep 61"

// asleep waits for that command.
func (s *scene) asleep() {
	s.t.Helper()
	s.until("the command sleeps", func() bool { return s.sleepers() > 0 })
}

func (s *scene) sleepers() (n int) {
	for _, p := range s.Alive() {
		if len(p.Args) == 2 && filepath.Base(p.Args[0]) == "sleep" && p.Args[1] == "61" {
			n++
		}
	}
	return n
}

// once holds a prompt to one request of the model, and returns what the user had said before.
func (s *scene) once(prompt string) (earlier []string) {
	s.t.Helper()
	asked := s.Asked(prompt)
	if len(asked) != 1 {
		s.t.Fatalf("the model was asked %d times for %.100q", len(asked), prompt)
	}
	return asked[0].Earlier
}

// after holds a run to be the next one of an earlier one's conversation.
func (s *scene) after(id, prompt, earlier, first string) {
	s.t.Helper()
	e, before := s.show(id), s.show(earlier)
	if e.Conversation == "" || e.Conversation != before.Conversation || e.Session != before.Session {
		s.t.Errorf("after %+v came %+v", before, e)
	}
	if !slices.Contains(s.once(prompt), first) {
		s.t.Errorf("the model does not know of %.100q", first)
	}
}

// afterCut is the same of a run that was cut off, whose prompt some agents drop.
func (s *scene) afterCut(id, prompt, earlier, first string) {
	s.t.Helper()
	if s.Forgets == "" {
		s.after(id, prompt, earlier, first)
		return
	}
	s.note = s.Forgets
	if e, before := s.show(id), s.show(earlier); e.Conversation == "" || e.Session != before.Session {
		s.t.Errorf("after %+v came %+v", before, e)
	}
	s.once(prompt)
}

// newer holds a run to a later generation of its session than an earlier one's: it had another process (F1).
func (s *scene) newer(id, earlier string) {
	s.t.Helper()
	if now, before := s.show(id).Fence, s.show(earlier).Fence; now <= before {
		s.t.Errorf("fence %d, after %d", now, before)
	}
}

// status is what `supervise status --json` prints.
type status struct {
	PID      int
	Runtimes []struct{ PID int }
}

func (s *scene) status() (st status) {
	s.t.Helper()
	s.decode(s.must("supervise", "status", "--json").Out, &st)
	return st
}

// agent is the process of the one agent that lives.
func (s *scene) agent() int {
	s.t.Helper()
	st := s.status()
	if len(st.Runtimes) != 1 || st.Runtimes[0].PID == 0 {
		s.t.Fatalf("there is not one agent: %+v", st)
	}
	return st.Runtimes[0].PID
}

// agents are what lives of agents and their commands: all but pintle's own. What has no command line any more is
// past its end: it ended while it was looked at.
func (s *scene) agents() []Process {
	return slices.DeleteFunc(s.Alive(), func(p Process) bool {
		return strings.Join(p.Args, "") == "" || filepath.Base(p.Args[0]) == "pintle"
	})
}

// leave ends the cell: nothing of its runs is left, and then nothing at all.
func (s *scene) leave() {
	s.t.Helper()
	if left := s.agents(); !s.warm && len(left) > 0 {
		s.t.Errorf("left of runs that ended: %v", left)
	}
	s.must("supervise", "stop")
	if left := s.agents(); len(left) > 0 {
		s.t.Errorf("left after supervise stop: %v", left)
	}
	s.until("nothing is left", func() bool { return len(s.Alive()) == 0 })
}
