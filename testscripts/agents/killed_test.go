//go:build agents

package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A killing is SIGKILL of an app-server whose session a client holds, at a place of a turn to which a prompt leads. Where the
// place is the server's own, it stands still there (SIGSTOP); everywhere else it is the model that says no more.
type killing struct {
	name     string
	prompt   string // "": no turn runs
	fresh    bool   // there was no turn before
	approve  string
	frozen   bool // the server stands still before it is given the prompt
	asks     bool // a permission is pending
	reach    func(k *killed)
	too      []string // who is killed with it: supervisor, shim
	outcome  string
	delivery string
	asked    int // how often the model saw the prompt
}

const (
	opener  = "respond with exactly: first"
	sleeper = "shell: echo x >> ran; exec sleep 61"
	gated   = "shell: echo x >> ran; until test -e go; do sleep 0.02; done; echo over"
)

var killings = []killing{
	{name: "idle, before the first message", fresh: true},
	{name: "handed over, and it has not read", prompt: "respond with exactly: second", frozen: true, outcome: "unknown", delivery: "unknown"},
	{name: "the first message, likewise", fresh: true, prompt: "respond with exactly: second", frozen: true, outcome: "unknown", delivery: "unknown"},
	{name: "the turn has started", prompt: "hang-headers", reach: (*killed).started},
	{name: "the first turn has started", fresh: true, prompt: "hang-headers", reach: (*killed).started},
	{name: "in its reasoning", prompt: "hang-thought: let me see", reach: saying("agent_thought_chunk", "let ")},
	{name: "in a message", prompt: "hang-text: one two", reach: saying("agent_message_chunk", "one ")},
	{name: "in a message, and the supervisor", prompt: "hang-text: one two", reach: saying("agent_message_chunk", "one "), too: []string{"supervisor"}},
	{name: "a tool runs", prompt: sleeper, approve: "all", reach: (*killed).asleep},
	{name: "a tool runs, and the shim", prompt: sleeper, approve: "all", reach: (*killed).asleep, too: []string{"shim"}},
	{name: "it asks", prompt: "shell-escalated: echo x >> ran", approve: "edits", asks: true, reach: (*killed).asking},
	{name: "it asks, and the supervisor", prompt: "shell-escalated: echo x >> ran", approve: "edits", asks: true, reach: (*killed).asking, too: []string{"supervisor"}},
	{name: "the tool has ended, and it has not heard", prompt: gated, approve: "all", reach: (*killed).unheard},
	{name: "the tool has ended, and it has told", prompt: "shell: echo x >> ran ##hang", approve: "all", reach: saying("tool_call_update", "completed")},
	{name: "behind the last item", prompt: "hang-late: all of it", reach: (*killed).complete},
	{name: "idle, behind a turn"},
}

// Whatever real Codex is in the midst of when it is killed: one other takes its place, in the same conversation, at a higher
// fence; what was said is said once, what became of it is told as far as anybody can know, and the next message is one turn.
func TestR1_R7_F6_KilledInTenPlaces(t *testing.T) {
	for _, model := range []string{"gpt-5.5", "gpt-6.2-sol"} { // in code mode the second one, with a process more while it works
		for _, k := range killings {
			t.Run(model+" "+k.name, func(t *testing.T) {
				t.Parallel()
				if k.outcome == "" && k.prompt != "" {
					k.outcome, k.delivery, k.asked = "agent_died", "accepted", 1
				}
				k.play(t, model)
			})
		}
	}
}

// killed is a killing that goes on.
type killed struct {
	*client
	killing
	before api.Session // with the server that is killed
	key    string      // of the message
}

func (k killing) play(t *testing.T, model string) {
	h := newHouse(t, model)
	h.patient(t)
	s := &killed{client: h.join("a"), killing: k}
	id := s.open(k.approve).ID
	if !k.fresh {
		s.send(id, opener, "first")
	}
	s.before = s.comes(id, "it is idle", func(now api.Session) bool { return now.Ownership.State == "live" && len(now.Queue) == 0 })
	s.give()
	exit := s.kill()
	if k.prompt != "" {
		s.settled(exit)
	}
	s.another()
	s.next()
	s.detach(id)
	s.until("only the supervisor is there", func() bool { return len(h.alive()) == 1 })
}

// give has the message come as far as it is to come.
func (k *killed) give() {
	k.t.Helper()
	if k.frozen {
		k.freeze(k.before.Ownership.Runtime.PID)
	}
	if k.prompt != "" {
		sent := k.post(k.before.ID, k.prompt, "")
		k.key = sent.Execution
		if sent.Delivery.HandedOverAt == nil {
			k.t.Fatalf("it was not handed over: %+v", sent)
		}
	}
	if k.reach != nil {
		k.reach(k)
	}
}

// kill kills the server, and who is to die with it at that instant: it stands still until then. It returns the record of the
// exit if a shim made one that nobody has taken yet.
func (k *killed) kill() (exit *shim.Exit) {
	k.t.Helper()
	rt := k.runtime(k.before.ID)
	with := map[string]int{"supervisor": k.supervising().PID, "shim": rt.ShimPID}
	for _, who := range k.too {
		k.freeze(with[who])
	}
	k.house.kill(k.before.Ownership.Runtime.PID)
	if slices.Contains(k.too, "supervisor") {
		d := k.records()
		k.until("its exit is on record", func() bool {
			e, err := state.Read[shim.Exit](d, shim.ExitFile(rt.ID))
			exit = &e
			return err == nil
		})
	}
	for _, who := range k.too {
		k.house.kill(with[who])
	}
	if exit != nil {
		k.back(k.before.ID)
	}
	return exit
}

// settled holds the message to what became of it.
func (k *killed) settled(exit *shim.Exit) {
	k.t.Helper()
	e := k.ended(k.key)
	if e.Outcome != k.outcome || e.Delivery == nil || e.Delivery.State != k.delivery || len(e.Permissions) > 0 {
		k.t.Errorf("it ended as %+v, %+v, %+v", e, e.Cause, e.Delivery)
	}
	if exit != nil && (e.EndedAt == nil || !e.EndedAt.Equal(exit.At)) {
		k.t.Errorf("it ended at %v, and the server at %v", e.EndedAt, exit.At)
	}
	if got := len(k.prompts(k.prompt)); got != k.asked {
		k.t.Errorf("the model saw it %d times", got)
	}
	if k.asks {
		k.lapsed()
	}
}

// lapsed: what it asked for nobody can answer any more.
func (k *killed) lapsed() {
	k.t.Helper()
	var asked, resolved struct{ Permission, Decision string }
	only(k.t, k.journalled(k.before.ID, "permission_requested"), &asked)
	only(k.t, k.journalled(k.before.ID, "permission_resolved"), &resolved)
	if asked.Permission == "" || resolved.Permission != asked.Permission || resolved.Decision != "lapsed" {
		k.t.Errorf("it asked %+v, and that was %+v", asked, resolved)
	}
	k.refused(api.CodeResolved, api.MethodAnswer, api.Answer{Operation: operation(), ID: asked.Permission, Decision: "allow"})
}

// only reads what the only one of some events says.
func only(t testing.TB, events []journal.Event, into any) {
	t.Helper()
	if len(events) != 1 || json.Unmarshal(events[0].Data, into) != nil {
		t.Fatalf("not one: %+v", events)
	}
}

// another holds the session to one other server, and nothing beside.
func (k *killed) another() {
	k.t.Helper()
	id, pid := k.before.ID, k.before.Ownership.Runtime.PID
	now := k.replaced(id, pid)
	if now.Fence <= k.before.Fence || len(now.Leases) != 1 || now.Leases[0].Client != "a" || now.State != "ready" {
		k.t.Errorf("before %+v, afterwards %+v", k.before, now)
	}
	if got := len(k.journalled(id, "runtime_started")); got != 2 {
		k.t.Errorf("%d servers were started", got)
	}
	k.until("a supervisor, a shim and a server are all", func() bool { return len(k.alive()) == 3 })
}

// next has another turn, which is one, and where the conversation was kept in that.
func (k *killed) next() {
	k.t.Helper()
	const prompt = "respond with exactly: next"
	id := k.before.ID
	e := k.send(id, prompt, "next")
	was := k.before.Conversation
	replaced := k.journalled(id, "conversation_replaced")
	if was != "" && (e.Conversation != was || len(replaced) > 0) {
		k.t.Errorf("conversation %s, it was %s; %v", e.Conversation, was, replaced)
	}
	if now := k.get(id); now.Conversation != e.Conversation || now.Fence != e.Fence {
		k.t.Errorf("the record says %+v, the turn %+v", now, e)
	}
	var want []string
	if !k.fresh {
		want = append(want, "completed")
	}
	if k.prompt != "" {
		want = append(want, k.outcome)
	}
	if diff := cmp.Diff(append(want, "completed"), k.turns(id)); diff != "" {
		k.t.Errorf("turns (-want +got)\n%s", diff)
	}
	asked := k.prompts(prompt)
	if len(asked) != 1 || !k.fresh && !slices.Contains(asked[0].Earlier, opener) {
		k.t.Errorf("the model was asked %+v", asked)
	}
	if ran, _ := os.ReadFile(filepath.Join(k.dir, "ran")); string(ran) != "" && string(ran) != "x\n" {
		k.t.Errorf("the tool ran %d times", strings.Count(string(ran), "x"))
	}
}

// The places.

func (k *killed) started() {
	k.t.Helper()
	k.saw(k.key, "message_confirmed")
	k.lab.wait(k.t, func([]fakemodel.Request, int) bool { return len(k.lab.asked(k.prompt)) == 1 })
}

// saying is where something came of it.
func saying(kind string, words ...string) func(*killed) {
	return func(k *killed) {
		k.t.Helper()
		k.saw(k.key, kind, words...)
	}
}

func (k *killed) asleep() {
	k.t.Helper()
	k.until("the command sleeps", func() bool { return k.works("sleep 61") })
}

func (k *killed) asking() {
	k.t.Helper()
	k.saw(k.key, "permission_requested")
	k.comes(k.before.ID, "it waits for an answer", func(api.Session) bool {
		return len(call[api.Execution](k.client, api.MethodGet, api.Target{ID: k.key}).Permissions) == 1
	})
}

// unheard: the server stands still when the tool has ended.
func (k *killed) unheard() {
	k.t.Helper()
	k.until("the command runs", func() bool { return k.works("until test") })
	k.freeze(k.before.Ownership.Runtime.PID)
	k.proceed()
	k.until("the command has ended", func() bool { return !k.works("until test") })
}

// complete: the server has said that the message is whole.
func (k *killed) complete() {
	k.t.Helper()
	spool := filepath.Join(k.house.home, shim.SpoolDir(k.runtime(k.before.ID).ID), "out*")
	k.until("the last item is complete", func() bool {
		files, _ := filepath.Glob(spool)
		for _, path := range files {
			data, _ := os.ReadFile(path)
			for line := range strings.Lines(string(data)) {
				if has(line, []string{`"item/completed"`, `"agentMessage"`, "all of it"}) {
					return true
				}
			}
		}
		return false
	})
}
