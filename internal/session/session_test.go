package session

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	outcomes = []Outcome{Completed, Failed, Cancelled, TimedOut, Budget, AgentDied, HostDied, Denied, Unknown}
	phases   = []Phase{Queued, Claimed, Workspace, Started, Prompted, Running, Waiting, Ended}
)

func TestOutcome_EachHasItsExitCode(t *testing.T) {
	want := map[Outcome]int{
		Completed: 0, Failed: 1, TimedOut: 3, Denied: 5, Unknown: 8, Budget: 9, Cancelled: 13, AgentDied: 14, HostDied: 14,
	}
	if diff := cmp.Diff(want, exits); diff != "" || len(outcomes) != len(exits) {
		t.Error(diff)
	}
	for o, code := range want {
		if o.Exit() != code || (o.Exit() == 0) != (o == Completed) {
			t.Errorf("%s exits %d, want %d", o, o.Exit(), code)
		}
	}
	if Outcome("other").Exit() != 1 {
		t.Error("an outcome that nobody knows is a success")
	}
}

func TestX8_PhasesOnlyGoOn(t *testing.T) {
	order := map[Phase]int{"": -1}
	for i, p := range phases {
		order[p] = i
	}
	for from := range order {
		for _, to := range phases {
			got, err := Transition(from, to)
			switch {
			case err != nil && (got != from || !strings.Contains(err.Error(), string(to)) || !strings.Contains(err.Error(), string(from))):
				t.Errorf("refused %q to %q: stays at %q, %v", from, to, got, err)
			case err == nil && got != to:
				t.Errorf("%q to %q led to %q", from, to, got)
			case err == nil && order[to] < order[from] && from != Waiting && (from != Claimed || to != Queued) && (from != Ended || (to != Queued && to != Claimed)):
				t.Errorf("%q goes back to %q", from, to)
			case from == to && err != nil:
				t.Errorf("staying at %q: %v", from, err)
			}
		}
	}
	for _, p := range phases[:len(phases)-1] {
		if _, err := Transition(p, Ended); err != nil {
			t.Errorf("%q cannot end: %v", p, err)
		}
	}
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		current int
		ended   Outcome
		wanted  int
		want    Verdict
	}{
		{1, "", 0, Join}, {1, "", 1, Join}, {1, "", 2, Join}, {2, "", 1, Join},
		{1, Completed, 0, Replay}, {1, Completed, 2, Replay}, {1, Completed, 1, Replay},
		{1, Failed, 0, Replay}, {1, Failed, 1, Replay}, {1, Failed, 2, Begin}, {2, Failed, 1, Replay}, {1, Failed, 5, Begin},
		{1, Cancelled, 2, Begin}, {1, HostDied, 2, Begin}, {1, AgentDied, 2, Begin},
		{1, Unknown, 0, Replay}, {1, Unknown, 1, Replay}, {1, Unknown, 2, Refuse},
	} {
		if got := Decide(c.current, c.ended, c.wanted); got != c.want {
			t.Errorf("attempt %d %q, wanted %d: %v, want %v", c.current, c.ended, c.wanted, got, c.want)
		}
	}
}

// Over any calls an attempt begins at most once, none goes past an unknown outcome, and none begins after
// a completed one.
func TestX1_AnAttemptBeginsAtMostOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current, ended := 1, Outcome("")
		begun := map[int]bool{1: true}
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			if ended == "" && rapid.Bool().Draw(t, "ends") {
				ended = rapid.SampledFrom(outcomes).Draw(t, "outcome")
			}
			wanted := rapid.IntRange(0, 6).Draw(t, "wanted")
			if Decide(current, ended, wanted) != Begin {
				continue
			}
			if begun[wanted] || ended == "" || ended == Completed || ended == Unknown {
				t.Fatalf("attempt %d begins after %d %q", wanted, current, ended)
			}
			begun[wanted] = true
			current, ended = wanted, ""
		}
	})
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		e    Ending
		want Outcome
	}{
		"exit 0":                        {Ending{Began: true, Identified: true, Proven: true}, Completed},
		"exit 1":                        {Ending{Began: true, Identified: true, Proven: true, Exit: 1}, Failed},
		"a signal":                      {Ending{Began: true, Identified: true, Proven: true, Signal: "KILL"}, Failed},
		"could not start":               {Ending{Refused: true, Proven: true, Exit: -1}, Failed},
		"never began":                   {Ending{}, Failed},
		"cancelled before it began":     {Ending{Cancelled: true}, Cancelled},
		"told to end, exits 0":          {Ending{Began: true, Proven: true, Cancelled: true}, Cancelled},
		"deadline, exits 0":             {Ending{Began: true, Proven: true, Deadline: true}, TimedOut},
		"cancelled and deadline":        {Ending{Began: true, Proven: true, Deadline: true, Cancelled: true}, Cancelled},
		"shim killed":                   {Ending{Began: true, Identified: true}, AgentDied},
		"shim killed while starting":    {Ending{Began: true}, Unknown},
		"reboot":                        {Ending{Began: true, Identified: true, HostDied: true}, HostDied},
		"supervise stop":                {Ending{Began: true, Identified: true, Proven: true, HostDied: true, Signal: "TERM"}, HostDied},
		"reboot after a cancel":         {Ending{Began: true, Identified: true, HostDied: true, Cancelled: true}, HostDied},
		"cancelled, then host, proven":  {Ending{Began: true, Proven: true, HostDied: true, Cancelled: true}, Cancelled},
		"cancelled, end was not proven": {Ending{Began: true, Identified: true, Cancelled: true}, Cancelled},
	} {
		if got := Judge(c.e); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestJudge_CompletedIsProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Make[Ending]().Draw(t, "ending")
		got := Judge(e)
		if _, ok := exits[got]; !ok {
			t.Fatalf("%+v: %q is no outcome", e, got)
		}
		if got == Completed && (!e.Proven || e.Exit != 0 || e.Signal != "" || e.Cancelled || e.Deadline || e.Refused || e.HostDied) {
			t.Fatalf("%+v is completed", e)
		}
	})
}

func TestX4_DifferingNamesTheFields(t *testing.T) {
	base := Payload{Prompt: "p", Argv: []string{"a", "b"}, Provider: "command", Cwd: "/"}
	for name, c := range map[string]struct {
		change func(*Payload)
		want   []string
	}{
		"nothing":       {func(*Payload) {}, nil},
		"empty is none": {func(p *Payload) { p.Env, p.Options = []string{}, map[string]string{} }, nil},
		"prompt":        {func(p *Payload) { p.Prompt = "q" }, []string{"prompt"}},
		"absent":        {func(p *Payload) { p.Prompt = "" }, []string{"prompt"}},
		"argv split":    {func(p *Payload) { p.Argv = []string{"a b"} }, []string{"argv"}},
		"two, sorted":   {func(p *Payload) { p.Model, p.Cwd = "m", "/x" }, []string{"cwd", "model"}},
		"option":        {func(p *Payload) { p.Options = map[string]string{"k": "v"} }, []string{"options"}},
	} {
		q := base
		c.change(&q)
		if diff := cmp.Diff(c.want, base.Differing(q)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestX4_DifferingIsSymmetricAndEmptyForEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := rapid.Make[Payload]().Draw(t, "p"), rapid.Make[Payload]().Draw(t, "q")
		if d := p.Differing(p); len(d) > 0 {
			t.Fatalf("differs from itself in %v", d)
		}
		if diff := cmp.Diff(p.Differing(q), q.Differing(p)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestX6_CheckKey(t *testing.T) {
	for key, ok := range map[string]bool{
		"a": true, "fix 1": true, "Ünï/..\\\"'": true, "日本": true, "-x": true, "..": true, " a ": true,
		strings.Repeat("ü", 200): true, "r-": true, "r-123": true, "r-xyz1": true, "R-1234": true, "a\u2028b": true,
		"": false, " ": false, "\u00a0": false, "\t": false, "a\nb": false, "a\x00": false, "a\x7f": false, "a\u0085b": false,
		strings.Repeat("a", 201): false, "\xff": false, "r-1234": false, "s-0123456789abcdef": false, "w-abcd": false,
	} {
		if err := CheckKey(key); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestX6_FolderIsASafeNameOfItsOwn(t *testing.T) {
	safe := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string][2]string{}
	rapid.Check(t, func(t *rapid.T) {
		pair := [2]string{rapid.SampledFrom([]string{Local, "g", "loca"}).Draw(t, "controller"), rapid.String().Draw(t, "key")}
		folder := Folder(pair[0], pair[1])
		if other, ok := seen[folder]; ok && other != pair {
			t.Fatalf("%q and %q share %s", pair, other, folder)
		}
		seen[folder] = pair
		if !safe.MatchString(folder) {
			t.Fatalf("%q", folder)
		}
	})
}
