package testscripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// A chapter is what a client does with a session. Its end must not depend on when the supervisor was killed meanwhile: the
// client comes to the next one, and asks once more under the same operation.
type chapter struct {
	name string
	act  func(c *insister)
}

func chapters() []chapter {
	return []chapter{
		{"Create", func(*insister) {}},
		{"Send", func(c *insister) { c.turn("say one") }},
		{"Queue", actQueue},
		{"Steer", actSteer},
		{"Lease", actLease},
		{"Reopen", actReopen},
		{"Goodbye", actGoodbye},
		{"Interrupt", func(c *insister) { c.ends(api.MethodSessInterrupt, map[string]any{"session": c.id}) }},
		{"InterruptRun", func(c *insister) { c.ends(api.MethodInterrupt, map[string]any{}) }},
		{"Stop", func(c *insister) { c.ends(api.MethodStop, map[string]any{}) }},
		{"Answer", actAnswer},
	}
}

// mortal are the points at which the supervisor is killed.
var mortal = []string{
	"supervisor.client_noted", "supervisor.leased", "supervisor.unleased", "supervisor.convened", "supervisor.enqueued", "supervisor.stored",
	"supervisor.reopening", "supervisor.client_ended", "supervisor.client_freed", "supervisor.steered", "journal.append", "journal.appended", "state.renamed",
}

func actQueue(c *insister) {
	first := c.send("hold go", "")
	c.until(first, "confirmed")
	second := c.send("say two", "")
	c.s.touch("go")
	c.until(first, "")
	c.until(second, "")
}

func actSteer(c *insister) {
	host := c.send("steer", "")
	c.until(host, "confirmed")
	c.until(c.send("extra", "steer"), "")
	c.until(host, "")
}

func actLease(c *insister) {
	c.do(api.MethodSessDetach, map[string]any{"session": c.id})
	c.do(api.MethodSessAttach, map[string]any{"session": c.id, "mode": "shared"})
	c.do(api.MethodSessAttach, map[string]any{"session": c.id, "takeOver": true})
}

// actReopen has the agent die with a lease held. A turn shows that the next one is there.
func actReopen(c *insister) {
	c.turn("say one")
	var was api.Session
	c.s.until("it has a process", func() bool { was = c.get(); return was.Ownership.Runtime != nil && was.Ownership.Runtime.PID > 0 })
	c.s.slay(was.Ownership.Runtime.PID)
	c.s.until("there is another one", func() bool {
		now := c.get()
		return now.Ownership.State == "live" && now.Ownership.Runtime != nil && now.Ownership.Runtime.ID != was.Ownership.Runtime.ID && len(now.Queue) == 0
	})
	c.turn("say two")
}

// actGoodbye has another client leave, which holds the session too.
func actGoodbye(c *insister) {
	c.do(api.MethodSessDetach, map[string]any{"session": c.id})
	b := &insister{driver: &driver{s: c.s, id: "b", news: make(chan struct{})}, id: c.id}
	b.come()
	b.do(api.MethodSessAttach, map[string]any{"session": c.id, "mode": "exclusive"})
	_, _ = try[any](b.driver, api.MethodGoodbye, nil)
	b.c.Close()
	if _, err := os.Stat(filepath.Join(c.s.home, "supervisor.json")); err == nil {
		c.s.until("it is free", func() bool { return len(c.get().Leases) == 0 })
	}
}

// ends has a turn ended by somebody.
func (c *insister) ends(method string, params map[string]any) {
	c.s.t.Helper()
	sent := c.send("hold never", "")
	c.until(sent, "confirmed")
	if params["session"] == nil {
		params["id"] = sent
	}
	c.do(method, params)
	c.until(sent, "")
}

func actAnswer(c *insister) {
	sent := c.send("ask ls", "")
	c.s.until("it asks", func() bool { return c.until(sent, "confirmed").WaitingFor != nil })
	c.do(api.MethodAnswer, map[string]any{"id": sent, "decision": "allow", "by": "me"})
	c.until(sent, "")
}

// TestF2_KilledAtEveryPoint has each chapter done undisturbed, and then once for each point that it passes, with the supervisor
// killed there.
func TestF2_KilledAtEveryPoint(t *testing.T) {
	for _, d := range chapters() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			log := filepath.Join(s.dir, "passed")
			s.crash = "log:" + log
			before := map[string]int{}
			want := s.done(d, func(made bool) {
				if d.name == "Create" || made {
					before = passings(log)
				}
			})
			after := passings(log)
			for _, name := range mortal {
				for i := before[name] + 1; i <= after[name]; i++ {
					if !every && i != before[name]+1 && i != after[name] {
						continue
					}
					t.Run(fmt.Sprintf("%s#%d", name, i), func(t *testing.T) {
						t.Parallel()
						stages <- struct{}{}
						defer func() { <-stages }()
						killed(t, d, fmt.Sprintf("%s#%d", name, i), want)
					})
				}
			}
		})
	}
}

func killed(t *testing.T, d chapter, point, want string) {
	s := newStage(t, "")
	flag := filepath.Join(s.dir, "flag")
	s.crash = "kill:" + point + "@" + flag
	got := s.done(d, func(bool) {})
	passes, _ := os.ReadFile(flag)
	if who := strings.Trim(string(passes), ".\n"); who == "shim" { // which ends its agent: another matter
		t.Skip("it was a shim that was killed")
	}
	if got != want {
		t.Errorf("%s ended as\n%s\nwant\n%s", d.name, got, want)
	}
}

func passings(log string) map[string]int {
	data, _ := os.ReadFile(log)
	counts := map[string]int{}
	for name := range strings.Lines(string(data)) {
		counts[strings.TrimSpace(name)]++
	}
	return counts
}

// done has a chapter done, and says how it ended. At is called when the client is there, and when its session is.
func (s *stage) done(d chapter, at func(made bool)) string {
	s.t.Helper()
	c := &insister{driver: &driver{s: s, id: "a", news: make(chan struct{})}}
	c.come()
	at(false)
	creation := map[string]any{}
	_ = json.Unmarshal(must(json.Marshal(s.creation())), &creation)
	var made api.Session
	_ = json.Unmarshal(c.do(api.MethodSessCreate, creation), &made)
	c.id = made.ID
	at(true)
	d.act(c)
	c.do(api.MethodSessDetach, map[string]any{"session": made.ID})
	c.s.until("nobody holds it", func() bool { v := c.get(); return v.Ownership.State == "free" && len(v.Leases) == 0 })
	left := s.outcome(made.ID)
	for _, one := range c.asked {
		if again := c.insist(one.method, one.params); string(again) != string(one.answer) {
			s.t.Errorf("%s is answered\n%s, first\n%s", one.method, again, one.answer)
		}
	}
	if again := s.outcome(made.ID); again != left {
		s.t.Errorf("repeats changed\n%s\ninto\n%s", left, again)
	}
	c.c.Close()
	s.quiet()
	s.fences(made.ID)
	return left + strings.Join(c.said, "\n")
}

// outcome is all that counts of how a session is.
func (s *stage) outcome(id string) string {
	var prompts []string
	if s.lines("prompts") > 0 {
		prompts = s.prompted()
	}
	slices.Sort(prompts)
	all := []string{fmt.Sprint(prompts, s.lines("launches"), s.lines("steers"), s.lines("overlaps")), fmt.Sprintf("%q", s.leaseChanges(id))}
	for _, kind := range []string{"message_stored", "message_handed_over", "message_confirmed", "message_steered", "turn_started", "turn_ended", "session_opened", "permission_resolved", "receipt"} {
		all = append(all, fmt.Sprint(kind, " ", s.journalled(id, kind)))
	}
	return strings.Join(all, "\n") + "\n"
}

// insister is a client that asks until it is answered, by whichever supervisor.
type insister struct {
	*driver
	id    string // of its session
	asked []demand
	said  []string // of the answers: what does not differ from run to run
}

// demand is what was asked, and how it was answered.
type demand struct {
	method string
	params any
	answer json.RawMessage
}

// come connects, to another supervisor if need be. A client whose first hello was not answered has no token, and has to be
// another one.
func (c *insister) come() {
	c.s.t.Helper()
	if c.c != nil {
		c.c.Close()
	}
	c.s.until("it is connected", func() bool {
		if _, err := os.Stat(filepath.Join(c.s.home, "supervisor.json")); err != nil || c.connect() != nil {
			c.s.verb("supervise", "restart")
			if c.token == "" {
				c.driver.id += "'"
			}
			return c.connect() == nil
		}
		return true
	})
}

func (c *insister) insist(method string, params any) json.RawMessage {
	c.s.t.Helper()
	for range 5 {
		answer, err := try[json.RawMessage](c.driver, method, params)
		switch api.CodeOf(err) {
		case "":
			return answer
		case api.CodeUnreachable, api.CodeStopping:
			c.come()
		default:
			c.s.t.Fatalf("%s %v: %v", method, params, err)
		}
	}
	c.s.t.Fatalf("%s is never answered", method)
	return nil
}

// do has an operation carried out.
func (c *insister) do(method string, params map[string]any) json.RawMessage {
	c.s.t.Helper()
	params = maps.Clone(params)
	params["operationId"] = operation().OperationID
	answer := c.insist(method, params)
	c.asked = append(c.asked, demand{method, params, answer})
	var said struct {
		State, When string
		Lease       *api.Lease
	}
	_ = json.Unmarshal(answer, &said)
	mode := ""
	if said.Lease != nil {
		mode = said.Lease.Mode
	}
	c.said = append(c.said, strings.Join([]string{method, said.State, said.When, mode}, " "))
	return answer
}

func (c *insister) send(text, when string) string {
	c.s.t.Helper()
	var sent api.Sent
	_ = json.Unmarshal(c.do(api.MethodSessSend, map[string]any{"session": c.id, "text": text, "when": when}), &sent)
	return sent.Execution
}

func (c *insister) until(execution, until string) api.Execution {
	c.s.t.Helper()
	var e api.Execution
	_ = json.Unmarshal(c.insist(api.MethodWait, api.Wait{ID: execution, Until: until}), &e)
	if until == "" {
		c.said = append(c.said, e.Outcome+" "+e.Delivery.State)
	}
	return e
}

func (c *insister) turn(text string) {
	c.s.t.Helper()
	c.until(c.send(text, ""), "")
}

func (c *insister) get() (v api.Session) {
	c.s.t.Helper()
	_ = json.Unmarshal(c.insist(api.MethodSessGet, api.SessionTarget{Session: c.id}), &v)
	return v
}
