package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func crash(after time.Duration) Exit {
	return Exit{Policy: OnCrash, Leased: true, Cause: "signal KILL", At: noon.Add(after), Delay: RestartDelay, Most: MostRestarts}
}

func at(after time.Duration) *time.Time {
	t := noon.Add(after)
	return &t
}

func TestR2_FirstAtOnceOthersLaterThenParked(t *testing.T) {
	var r Restart
	for i, want := range []Restart{
		{Count: 1, FailedAt: at(0), NextAt: at(0)},
		{Count: 2, FailedAt: at(time.Minute), NextAt: at(90 * time.Second)},
		{Count: 3, FailedAt: at(2 * time.Minute), NextAt: at(150 * time.Second)},
		{Count: 3, FailedAt: at(3 * time.Minute), Parked: &Parked{CrashLooping, "signal KILL"}},
		{Count: 3, FailedAt: at(4 * time.Minute), Parked: &Parked{CrashLooping, "signal KILL"}},
	} {
		r = r.Exited(crash(time.Duration(i) * time.Minute))
		if diff := cmp.Diff(want, r); diff != "" {
			t.Fatalf("exit %d: %s", i+1, diff)
		}
		if ok, why := r.MayStart(); ok != (want.Parked == nil) || !ok && why != "crash_looping: signal KILL" {
			t.Errorf("exit %d: %v %s", i+1, ok, why)
		}
		if want.NextAt != nil {
			if r.Due(want.NextAt.Add(-1)) || !r.Due(*want.NextAt) {
				t.Errorf("exit %d: not due at %s alone", i+1, want.NextAt)
			}
			r = r.Started(*want.NextAt)
		}
		if r.Due(noon.Add(time.Hour)) {
			t.Errorf("exit %d: another is due", i+1)
		}
	}
	if diff := cmp.Diff(Restart{}, r.Recovered()); diff != "" {
		t.Error(diff)
	}
}

func TestR2_Exited(t *testing.T) {
	twice := Restart{Count: 2, FailedAt: at(-time.Hour), RunsFrom: at(0)}
	parked := Restart{Count: 3, FailedAt: at(0), Parked: &Parked{CrashLooping, "a"}}
	for name, c := range map[string]struct {
		r      Restart
		after  time.Duration
		change func(*Exit)
		want   Restart
	}{
		"soon":                    {twice, StableFor - 1, nil, Restart{Count: 3, FailedAt: at(StableFor - 1), NextAt: at(StableFor - 1 + RestartDelay)}},
		"stable":                  {twice, StableFor, nil, Restart{Count: 1, FailedAt: at(StableFor), NextAt: at(StableFor)}},
		"no policy":               {Restart{}, 0, func(e *Exit) { e.Policy = "" }, Restart{Count: 1, FailedAt: at(0), NextAt: at(0)}},
		"nobody's":                {twice, 1, func(e *Exit) { e.Leased = false }, Restart{Count: 2, FailedAt: at(1)}},
		"nobody's, stable":        {twice, StableFor, func(e *Exit) { e.Leased = false }, Restart{FailedAt: at(StableFor)}},
		"on demand":               {Restart{}, 0, func(e *Exit) { e.Policy = OnDemand }, Restart{FailedAt: at(0)}},
		"never":                   {Restart{}, 0, func(e *Exit) { e.Policy = Never }, Restart{FailedAt: at(0), Parked: &Parked{NotRestarted, "signal KILL"}}},
		"never, nobody's":         {Restart{}, 0, func(e *Exit) { e.Policy, e.Leased = Never, false }, Restart{FailedAt: at(0), Parked: &Parked{NotRestarted, "signal KILL"}}},
		"none at most":            {Restart{}, 0, func(e *Exit) { e.Most = 0 }, Restart{FailedAt: at(0), Parked: &Parked{CrashLooping, "signal KILL"}}},
		"parked stays, as it was": {parked, time.Hour, func(e *Exit) { e.Cause = "b" }, Restart{Count: 3, FailedAt: at(time.Hour), Parked: &Parked{CrashLooping, "a"}}},
	} {
		e := crash(c.after)
		if c.change != nil {
			c.change(&e)
		}
		if diff := cmp.Diff(c.want, c.r.Exited(e)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestR2_NothingIsStartedForNobody(t *testing.T) {
	r := Restart{}.Exited(crash(0)).Released()
	if ok, _ := r.MayStart(); !ok || r.Due(noon.Add(time.Hour)) || r.Count != 1 {
		t.Errorf("%+v", r)
	}
}

func TestR3_AnExitThatWasAskedForStartsNothing(t *testing.T) {
	for _, policy := range []Policy{Never, OnDemand, OnCrash, ""} {
		for _, before := range []Restart{{}, Restart{}.Exited(crash(0)), {Count: 3, Parked: &Parked{Code: CrashLooping}}} {
			e := crash(time.Minute)
			e.Policy, e.Asked = policy, true
			got := before.Exited(e)
			if diff := cmp.Diff(Restart{}, got); diff != "" || got.Due(noon.Add(24*time.Hour)) {
				t.Errorf("%s: %s", policy, diff)
			}
		}
	}
}

// Over any exits, at any distance, with any restart in between: never more in a row than MostRestarts, never
// sooner than it should be, and the record survives being written.
func TestR2_NeverMoreInARowThanAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Restart
		now, row := noon, 0
		for range rapid.IntRange(1, 40).Draw(t, "exits") {
			ran := time.Duration(rapid.Int64Range(0, int64(2*StableFor)).Draw(t, "ran"))
			if ran >= StableFor && r.RunsFrom != nil {
				row = 0
			}
			now = now.Add(ran)
			r = r.Exited(Exit{Policy: OnCrash, Leased: true, At: now, Delay: RestartDelay, Most: MostRestarts})
			if ok, _ := r.MayStart(); !ok {
				if row != MostRestarts || r.NextAt != nil {
					t.Fatalf("parked after %d: %+v", row, r)
				}
				r, row = r.Recovered(), 0
				continue
			}
			if row++; row > MostRestarts || (row == 1) != r.Due(now) || !r.Due(now.Add(RestartDelay)) {
				t.Fatalf("restart %d: %+v", row, r)
			}
			now = now.Add(RestartDelay)
			r = r.Started(now)
			data, _ := json.Marshal(r)
			var read Restart
			if err := json.Unmarshal(data, &read); err != nil || !cmp.Equal(r, read) {
				t.Fatalf("%s: %v", data, err)
			}
		}
	})
}

func TestR8_Own(t *testing.T) {
	for name, c := range map[string]struct {
		f      Facts
		want   Ownership
		reason string
	}{
		"nothing":                      {Facts{}, Free, ""},
		"after a clean stop":           {Facts{Closing: true, Exited: true, Shim: ShimDead}, Free, ""},
		"before the spawn":             {Facts{Intent: true}, Reserved, ""},
		"opening":                      {Facts{Intent: true, Runtimes: 1, Shim: ShimAlive}, Reserved, ""},
		"running":                      {Facts{Intent: true, Runtimes: 1, Shim: ShimAlive, Started: true}, Live, ""},
		"told to end":                  {Facts{Intent: true, Runtimes: 1, Shim: ShimAlive, Started: true, Closing: true}, Draining, ""},
		"told to end before":           {Facts{Intent: true, Closing: true}, Draining, ""},
		"exited":                       {Facts{Intent: true, Runtimes: 1, Shim: ShimDead, Started: true, Exited: true}, Draining, ""},
		"exited, shim still there":     {Facts{Intent: true, Runtimes: 1, Shim: ShimAlive, Started: true, Exited: true}, Draining, ""},
		"exited beats silent":          {Facts{Intent: true, Runtimes: 1, Shim: ShimSilent, Started: true, Exited: true}, Draining, ""},
		"shim killed":                  {Facts{Intent: true, Runtimes: 1, Shim: ShimDead, Started: true}, Draining, ""},
		"shim killed while opening":    {Facts{Intent: true, Runtimes: 1, Shim: ShimDead}, Draining, ""},
		"frozen":                       {Facts{Intent: true, Runtimes: 1, Shim: ShimSilent, Started: true}, Uncertain, ReasonSilent},
		"frozen while opening":         {Facts{Intent: true, Runtimes: 1, Shim: ShimSilent}, Uncertain, ReasonSilent},
		"a close that is not proven":   {Facts{Intent: true, Runtimes: 1, Shim: ShimSilent, Started: true, Closing: true}, Uncertain, ReasonSilent},
		"unreadable":                   {Facts{Intent: true, Runtimes: 1, Shim: ShimUnreadable, Started: true}, Uncertain, ReasonUnreadable},
		"directory gone":               {Facts{Intent: true, Started: true}, Uncertain, ReasonMissing},
		"nobody claimed it":            {Facts{Runtimes: 1, Shim: ShimAlive, Started: true}, Uncertain, ReasonUnclaimed},
		"two":                          {Facts{Intent: true, Runtimes: 2, Shim: ShimAlive, Started: true}, Conflicted, ReasonSeveral},
		"another writer":               {Facts{Intent: true, Runtimes: 1, Shim: ShimAlive, Started: true, OtherWriter: "pid 4"}, Conflicted, ReasonOtherWriter},
		"another writer of a free one": {Facts{OtherWriter: "pid 4"}, Conflicted, ReasonOtherWriter},
	} {
		if o, reason := Own(c.f); o != c.want || reason != c.reason {
			t.Errorf("%s: %s %s, want %s %s", name, o, reason, c.want, c.reason)
		}
	}
}

// Free and live are promises: a message may reserve, a frame may be handed over.
func TestR8_NothingUnprovenIsFreeOrLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{
			Intent: rapid.Bool().Draw(t, "intent"), Started: rapid.Bool().Draw(t, "started"), Closing: rapid.Bool().Draw(t, "closing"), Exited: rapid.Bool().Draw(t, "exited"),
			Shim:        rapid.SampledFrom([]Shim{ShimNone, ShimAlive, ShimDead, ShimSilent, ShimUnreadable}).Draw(t, "shim"),
			OtherWriter: rapid.SampledFrom([]string{"", "pid 4"}).Draw(t, "writer"), Runtimes: rapid.IntRange(0, 2).Draw(t, "runtimes"),
		}
		o, reason := Own(f)
		if (reason != "") != (o == Uncertain || o == Conflicted) {
			t.Fatalf("%+v: %s for %q", f, o, reason)
		}
		if o == Free && (f.Intent || f.Runtimes > 0 || f.OtherWriter != "") {
			t.Fatalf("%+v is free", f)
		}
		if o == Live && (!f.Started || f.Closing || f.Exited || f.Shim != ShimAlive) {
			t.Fatalf("%+v is live", f)
		}
	})
}

func TestR8_EachOwnershipHasAWay(t *testing.T) {
	for o, want := range map[Ownership]string{
		Free: "pintle send s-1 PROMPT", Reserved: "pintle attach s-1", Live: "pintle attach s-1", Draining: "pintle stop s-1",
		Uncertain: "pintle recover s-1 --probe", Conflicted: "pintle recover s-1 --probe",
	} {
		if got := Way(o, "", "s-1"); got != want {
			t.Errorf("%s: %s", o, got)
		}
	}
	if got := Way(Conflicted, ReasonSeveral, "s-1"); !strings.HasPrefix(got, "pintle stop") {
		t.Error(got)
	}
}
