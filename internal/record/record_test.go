package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

func open(t *testing.T) *state.Dir {
	t.Helper()
	d, err := state.Open(t.Context(), t.TempDir()+"/home")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func order(id string) Spec {
	return Spec{
		ID: id, Controller: session.Local, CreatedAt: time.Unix(1, 0).UTC(),
		Payload: session.Payload{Argv: []string{"true"}, Provider: "command", Cwd: "/"},
	}
}

func fine(*Spec) error { return nil }

func claim(t *testing.T, d *state.Dir, id string, attempt int) Claimed {
	t.Helper()
	c, err := Claim(t.Context(), d, order(id), attempt, fine)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// become writes what a supervisor would.
func become(t *testing.T, d *state.Dir, folder string, change func(*Status)) {
	t.Helper()
	spec, err := SpecOf(d, folder)
	if err != nil {
		t.Fatal(err)
	}
	st := Status{Version: Version, Execution: claimed(spec)}
	change(&st)
	if err := state.Put(t.Context(), d, StatusFile(folder), st); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, d *state.Dir, folder string, attempt int, o session.Outcome) {
	t.Helper()
	become(t, d, folder, func(st *Status) {
		code := o.Exit()
		st.Attempt, st.Phase, st.Outcome, st.ExitCode = attempt, string(session.Ended), string(o), &code
	})
}

func wantCode(t *testing.T, err error, want api.Code) *api.Error {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Fatalf("%v, want %s", err, want)
	}
	return e
}

func TestX1_OneOfManyClaimsIsNew(t *testing.T) {
	d := open(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	fresh := 0
	for range 20 {
		wg.Go(func() {
			c, err := Claim(t.Context(), d, order("k"), 0, fine)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if c.New {
				fresh++
			}
			if c.New != (c.Verdict == session.Begin) || c.Verdict != session.Begin && c.Verdict != session.Join {
				t.Errorf("new %v, verdict %v", c.New, c.Verdict)
			}
		})
	}
	wg.Wait()
	if fresh != 1 {
		t.Errorf("%d claims are new, want 1", fresh)
	}
}

func TestX1_OneOfManyClaimsBeginsTheNextAttempt(t *testing.T) {
	d := open(t)
	folder := claim(t, d, "k", 1).Folder
	end(t, d, folder, 1, session.Failed)
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := 0
	for range 20 {
		wg.Go(func() {
			c, err := Claim(t.Context(), d, order("k"), 2, fine)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || c.Spec.Desired.Attempt != 2 {
				t.Errorf("attempt %d, %v", c.Spec.Desired.Attempt, err)
			}
			if c.Verdict == session.Begin {
				began++
			}
		})
	}
	wg.Wait()
	if began != 1 {
		t.Errorf("attempt 2 began %d times, want once", began)
	}
}

func TestX2_RepeatOfAnEndedRunIsReplayed(t *testing.T) {
	for _, o := range []session.Outcome{session.Completed, session.Failed, session.Unknown} {
		d := open(t)
		folder := claim(t, d, "k", 0).Folder
		end(t, d, folder, 1, o)
		if c := claim(t, d, "k", 0); c.New || c.Verdict != session.Replay {
			t.Errorf("%s: %+v", o, c)
		}
	}
}

func TestX4_OtherPayloadIsAConflictAndChangesNothing(t *testing.T) {
	d := open(t)
	folder := claim(t, d, "k", 0).Folder
	before, err := os.ReadFile(d.Path(SpecFile(folder)))
	if err != nil {
		t.Fatal(err)
	}
	other := order("k")
	other.Payload.Argv, other.Payload.Model = []string{"false"}, "m"
	_, err = Claim(t.Context(), d, other, 7, func(*Spec) error { return errors.New("rules of new orders") })
	if diff := cmp.Diff([]string{"argv", "model"}, wantCode(t, err, api.CodeConflict).Fields); diff != "" {
		t.Error(diff)
	}
	if after, err := os.ReadFile(d.Path(SpecFile(folder))); err != nil || string(after) != string(before) {
		t.Errorf("the order became %s, %v", after, err)
	}
}

func TestX4_RulesOfNewOrdersDoNotBindARepeat(t *testing.T) {
	d := open(t)
	refuse := errors.New("unknown provider")
	refused := func(*Spec) error { return refuse }
	if _, err := Claim(t.Context(), d, order("k"), 0, refused); !errors.Is(err, refuse) {
		t.Errorf("%v, want the rule's error", err)
	}
	if _, err := os.Stat(d.Path("executions")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	folder := claim(t, d, "k", 0).Folder
	if _, err := Claim(t.Context(), d, order("k"), 0, refused); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	end(t, d, folder, 1, session.Failed)
	if _, err := Claim(t.Context(), d, order("k"), 2, refused); !errors.Is(err, refuse) {
		t.Errorf("the next attempt: %v, want the rule's error", err)
	}
}

func TestClaim_OnlyRetryGoesPastUnknown(t *testing.T) {
	d := open(t)
	folder := claim(t, d, "k", 0).Folder
	end(t, d, folder, 1, session.Unknown)
	_, err := Claim(t.Context(), d, order("k"), 2, fine)
	wantCode(t, err, api.CodeUnknown)
	if err := Retry(t.Context(), d, folder, "boot", time.Minute, time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	err = Retry(t.Context(), d, folder, "boot", time.Minute, time.Unix(2, 0))
	wantCode(t, err, api.CodeBusy)
	if spec, err := SpecOf(d, folder); err != nil || spec.Desired.Attempt != 2 {
		t.Errorf("%+v, %v; want attempt 2", spec.Desired, err)
	}
	if c := claim(t, d, "k", 2); c.Verdict != session.Join {
		t.Errorf("%+v, want joined", c)
	}
}

func TestCase18_DamagedOrderBlocksItsKeyAlone(t *testing.T) {
	for _, bad := range []string{"", "{}", "null", `{"version":1,`} {
		d := open(t)
		folder := claim(t, d, "k", 0).Folder
		if err := os.WriteFile(d.Path(SpecFile(folder)), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Claim(t.Context(), d, order("k"), 0, fine); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%q: %+v, %v; want ErrDamaged", bad, c, err)
		}
		claim(t, d, "other", 0)
		rows, err := List(d)
		if err != nil || len(rows) != 2 {
			t.Errorf("%q: %d rows, %v", bad, len(rows), err)
		}
	}
}

func TestK1_TheFirstReasonOfACancelStands(t *testing.T) {
	d := open(t)
	folder := claim(t, d, "k", 0).Folder
	for i, c := range []struct {
		action, reason string
		recorded       bool
		want           string
	}{
		{"interrupt", "first", true, "first"}, {"interrupt", "second", false, "first"}, {"stop", "third", true, "third"},
		{"stop", "fourth", false, "third"}, {"interrupt", "fifth", false, "third"},
	} {
		recorded, err := Cancel(t.Context(), d, folder, api.Cancel{Action: c.action, Reason: c.reason})
		if err != nil || recorded != c.recorded {
			t.Errorf("%d: recorded %v, %v; want %v", i, recorded, err, c.recorded)
		}
		if spec, err := SpecOf(d, folder); err != nil || spec.Desired.Cancel.Reason != c.want || spec.Desired.Cancel.Attempt != 1 {
			t.Errorf("%d: %+v, %v; want %s", i, spec.Desired.Cancel, err, c.want)
		}
	}
	end(t, d, folder, 1, session.Cancelled)
	if c := claim(t, d, "k", 2); c.Verdict != session.Begin || c.Spec.Desired.Cancel != nil {
		t.Errorf("the next attempt is cancelled already: %+v", c.Spec.Desired)
	}
}

func TestX36_OnlyRemoveFreesAKey(t *testing.T) {
	d := open(t)
	folder := claim(t, d, "k", 0).Folder
	wantCode(t, Remove(t.Context(), d, folder), api.CodeBusy)
	end(t, d, folder, 1, session.Failed)
	if err := Retry(t.Context(), d, folder, "boot", 0, time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, Remove(t.Context(), d, folder), api.CodeBusy)
	end(t, d, folder, 2, session.Completed)
	if err := Remove(t.Context(), d, folder); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), d, folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: %v, want fs.ErrNotExist", err)
	}
	_, err := Find(d, "k")
	wantCode(t, err, api.CodeNotFound)
	if kept, err := os.ReadDir(d.Path("archived")); err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
	if c := claim(t, d, "k", 0); !c.New {
		t.Errorf("the key is not free: %+v", c)
	}
}

func TestFind(t *testing.T) {
	d := open(t)
	folders := map[string]string{}
	for _, id := range []string{"fix", "r-0123456789abcdef", "r-0123ffffffffffff", "r-abcd000000000000"} {
		folders[id] = claim(t, d, id, 0).Folder
	}
	for id, want := range map[string]string{"fix": "fix", "r-0123456789abcdef": "r-0123456789abcdef", "r-abcd": "r-abcd000000000000", "r-01234": "r-0123456789abcdef"} {
		if got, err := Find(d, id); err != nil || got != folders[want] {
			t.Errorf("%s: %s, %v; want %s", id, got, err, want)
		}
	}
	for id, want := range map[string]api.Code{"fi": api.CodeNotFound, "r-abc": api.CodeNotFound, "r-ffff": api.CodeNotFound, "r-0123": api.CodeAmbiguous} {
		_, err := Find(d, id)
		wantCode(t, err, want)
	}
}

// A session, and its workspace, mean the newest of its runs, also one that nobody has taken up.
func TestFind_OfASessionTheNewest(t *testing.T) {
	d := open(t)
	for i, id := range []string{"new", "old", "newest"} {
		o := order(id)
		o.CreatedAt = time.Unix([]int64{5, 1, 9}[i], 0)
		if id == "newest" {
			o.Payload.Session = "s-00aa000000000000"
		}
		c, err := Claim(t.Context(), d, o, 0, fine)
		if err != nil {
			t.Fatal(err)
		}
		if id != "newest" {
			become(t, d, c.Folder, func(st *Status) { st.Session, st.Workspace = "s-00aa000000000000", "w-00bb000000000000" })
		}
	}
	for id, want := range map[string]string{"s-00aa000000000000": "newest", "s-00aa": "newest", "w-00bb": "new"} {
		if got, err := Find(d, id); err != nil || got != session.Folder(session.Local, want) {
			t.Errorf("%s: %s, %v; want %s", id, got, err, want)
		}
	}
}

func TestFindConversation(t *testing.T) {
	d := open(t)
	put := func(path string, record any) {
		if err := state.Put(t.Context(), d, path, record); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"s-00aa000000000000", "s-00ab000000000000"} {
		if err := d.Mkdir("sessions", id); err != nil {
			t.Fatal(err)
		}
		put(SessionFile(id), Session{Version: Version, ID: id, Workspace: "w-1", Provider: "codex"})
	}
	if err := d.Mkdir("workspaces"); err != nil {
		t.Fatal(err)
	}
	put(WorkspaceFile("w-1"), Workspace{Version: Version, ID: "w-1", Cwd: "/there"})
	become(t, d, claim(t, d, "k", 0).Folder, func(st *Status) { st.Session = "s-00aa000000000000" })
	become(t, d, claim(t, d, "early", 0).Folder, func(st *Status) { st.Session = "s-00cc000000000000" })
	become(t, d, claim(t, d, "never", 0).Folder, func(st *Status) { st.Phase = string(session.Ended) })
	claim(t, d, "untaken", 0)

	of := func(id string) Conversation { return Conversation{id, "codex", "/there", nil} }
	early := Conversation{"s-00cc000000000000", "command", "/", nil} // its records come in a moment
	for id, want := range map[string]Conversation{
		"s-00aa000000000000": of("s-00aa000000000000"), "s-00ab": of("s-00ab000000000000"), "k": of("s-00aa000000000000"),
		"early": early, "s-00cc": early,
	} {
		if got, err := FindConversation(d, id); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", id, got, err, want)
		}
	}
	for id, want := range map[string]api.Code{
		"s-00a": api.CodeNotFound, "s-00aaff": api.CodeNotFound, "nothing": api.CodeNotFound, "never": api.CodeNotFound, "untaken": api.CodeBusy,
	} {
		_, err := FindConversation(d, id)
		wantCode(t, err, want)
	}
	put(SessionFile("s-00ab000000000000"), Session{Version: Version + 1, ID: "s-00ab000000000000"})
	if _, err := FindConversation(d, "s-00ab"); !errors.Is(err, state.ErrNewer) {
		t.Errorf("of a newer record: %v", err)
	}
}

// view is of a run whose status says running under the runtime x.
func view(t *testing.T, d *state.Dir, boot string, files map[string]any) api.Execution {
	t.Helper()
	folder := claim(t, d, "k", 0).Folder
	become(t, d, folder, func(st *Status) { st.Phase, st.RuntimeID, st.BootID = string(session.Running), "x", boot })
	for path, record := range files {
		if err := d.Mkdir("runtimes", "x"); err != nil {
			t.Fatal(err)
		}
		if err := state.Put(t.Context(), d, path, record); err != nil {
			t.Fatal(err)
		}
	}
	e, err := View(d, folder)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestView_NeverShowsRunningForTheDead(t *testing.T) {
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	agent := shim.Agent{Version: 1, State: shim.Running, Agent: &proc.Identity{PID: 1 << 30}}
	for name, c := range map[string]struct {
		boot  string
		files map[string]any
		want  session.Outcome
	}{
		"another boot":         {"other", nil, session.HostDied},
		"exit 0, not taken in": {boot, map[string]any{shim.AgentFile("x"): agent, shim.ExitFile("x"): shim.Exit{Version: 1}}, session.Completed},
		"exit 3, not taken in": {boot, map[string]any{shim.AgentFile("x"): agent, shim.ExitFile("x"): shim.Exit{Version: 1, Code: 3}}, session.Failed},
		"deadline":             {boot, map[string]any{shim.AgentFile("x"): agent, shim.ExitFile("x"): shim.Exit{Version: 1, Signal: "KILL", Deadline: true}}, session.TimedOut},
		"shim killed":          {boot, map[string]any{shim.AgentFile("x"): agent}, session.AgentDied},
		"killed in its start":  {boot, map[string]any{shim.AgentFile("x"): shim.Agent{Version: 1, State: shim.Starting}}, session.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			e := view(t, open(t), c.boot, c.files)
			if e.Phase != string(session.Ended) || e.Outcome != string(c.want) || e.ExitCode == nil || *e.ExitCode != c.want.Exit() || e.Runtime != nil {
				t.Errorf("%+v, want %s", e, c.want)
			}
		})
	}
}

func TestView_ShowsRunningForTheLiving(t *testing.T) {
	d := open(t)
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Mkdir("runtimes", "x"); err != nil {
		t.Fatal(err)
	}
	unlock, err := shim.Dead(d, "x") // as a shim holds it
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if e := view(t, d, boot, nil); e.Phase != string(session.Running) || e.Outcome != "" {
		t.Errorf("%s %s, want running", e.Phase, e.Outcome)
	}
}

func TestQuote_IsOneShellWord(t *testing.T) {
	for id, want := range map[string]string{"a-b": "a-b", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "-x": "-- '-x'", "$(x)": "'$(x)'", "é": "'é'"} {
		if got := Quote(id); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}

func TestList_OldestFirst(t *testing.T) {
	d := open(t)
	for i := range 10 {
		s := order(fmt.Sprint("k", i))
		s.CreatedAt = time.Unix(int64((i*7)%10), 0).UTC()
		if _, err := Claim(t.Context(), d, s, 0, fine); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := List(d)
	if err != nil || len(rows) != 10 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if r.Err != nil || r.Execution.CreatedAt.Unix() != int64(i) {
			t.Errorf("row %d is of %v, %v", i, r.Execution.CreatedAt, r.Err)
		}
	}
}

// Runs of a session have their turns as they were ordered, whoever of them is taken up first; the one whose turn it is
// stays.
func TestEnqueue(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	var s Session
	for _, turn := range []Turn{{"c", at(3), false}, {"e", at(5), false}, {"d", at(4), false}, {"a", at(1), false}, {"e", at(5), false}, {"n", at(6), true}} {
		s.Enqueue(turn, func(string) bool { return false })
	}
	order := ""
	for _, turn := range s.Queue {
		order += turn.Folder
	}
	if order != "cnade" { // n goes before all that wait
		t.Errorf("the order is %s", order)
	}

	// A place that is over is nobody's turn: the next one's is.
	s = Session{Queue: []Turn{{"over", at(1), false}, {"runs", at(2), false}, {"waits", at(3), false}}}
	over := func(folder string) bool { return folder == "over" }
	s.Enqueue(Turn{"next", at(4), true}, over)
	s.Enqueue(Turn{"early", at(0), false}, over)
	order = ""
	for _, turn := range s.Queue {
		order += turn.Folder + " "
	}
	if order != "over runs next early waits " {
		t.Errorf("the order is %s", order)
	}
	if s.Leave("waits", over); len(s.Queue) != 3 || s.Queue[0].Folder != "runs" {
		t.Errorf("%+v", s.Queue)
	}
	s = Session{Queue: []Turn{{"over", at(1), false}}}
	if s.Enqueue(Turn{"first", at(0), false}, over); len(s.Queue) != 2 {
		t.Errorf("%+v", s.Queue)
	}
}
