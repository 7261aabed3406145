package session

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// held has a lease for each word: a name in capitals holds an exclusive one.
func held(names ...string) Leases {
	var ls Leases
	for i, name := range names {
		mode := Shared
		if name < "a" {
			mode = Exclusive
		}
		ls = append(ls, Lease{Client: name, Mode: mode, Since: noon.Add(time.Duration(i) * time.Second), Operation: "op-" + name})
	}
	return ls
}

func TestL1_Attach(t *testing.T) {
	busy := []Busy{{"r-1", noon}, {"r-2", noon.Add(time.Second)}}
	byA := &Refusal{Client: "A", Mode: Exclusive, Since: noon}
	byB := &Refusal{Client: "b", Mode: Shared, Since: noon}
	byRun := &Refusal{Execution: "r-1", Mode: Shared, Since: noon}
	for name, c := range map[string]struct {
		ls      Leases
		client  string
		mode    Mode
		busy    []Busy
		refusal *Refusal
		changed bool
	}{
		"exclusive of nobody's":           {nil, "c", Exclusive, nil, nil, true},
		"shared of nobody's":              {nil, "c", Shared, nil, nil, true},
		"no mode is exclusive":            {held("b"), "c", "", nil, byB, false},
		"shared beside shared":            {held("b"), "c", Shared, nil, nil, true},
		"shared beside an execution":      {nil, "c", Shared, busy, nil, true},
		"shared against exclusive":        {held("A"), "c", Shared, nil, byA, false},
		"shared against its own":          {held("A"), "A", Shared, nil, byA, false},
		"exclusive against exclusive":     {held("A"), "c", Exclusive, nil, byA, false},
		"exclusive against its own":       {held("A"), "A", Exclusive, nil, byA, false},
		"exclusive against shared":        {held("b"), "c", Exclusive, nil, byB, false},
		"exclusive against its own share": {held("b"), "b", Exclusive, nil, byB, false},
		"exclusive against an execution":  {nil, "c", Exclusive, busy, byRun, false},
		"a client before an execution":    {held("b"), "c", Exclusive, busy, byB, false},
		"shared again":                    {held("b", "c"), "c", Shared, nil, nil, false},
	} {
		before := slices.Clone(c.ls)
		got, refusal := c.ls.Attach(Ask{Client: c.client, Mode: c.mode, At: noon.Add(time.Hour), Operation: "op"}, c.busy)
		if diff := cmp.Diff(c.refusal, refusal) + cmp.Diff(before, c.ls); diff != "" || got.Changed != c.changed || got.Bumps || got.Evicted != nil {
			t.Errorf("%s: %+v\n%s", name, got, diff)
		}
		if refusal != nil {
			if diff := cmp.Diff(Attachment{}, got); diff != "" {
				t.Errorf("%s: refused with an effect\n%s", name, diff)
			}
			continue
		}
		if l, ok := got.Leases.Of(c.client); !ok || l != got.Lease || c.changed != (l.Operation == "op") || len(got.Leases) < len(before) {
			t.Errorf("%s: %+v", name, got.Leases)
		}
	}
}

func TestL1_RefusalSaysWhoSinceWhenAndHow(t *testing.T) {
	for want, r := range map[string]*Refusal{
		"the session is held by client A (exclusive, since 2026-05-04T12:00:00Z)":   {Client: "A", Mode: Exclusive, Since: noon},
		"the session is held by execution r-1 (shared, since 2026-05-04T12:00:00Z)": {Execution: "r-1", Mode: Shared, Since: noon},
	} {
		if r.Error() != want {
			t.Error(r)
		}
	}
}

func TestL1_TheSameOperationIsTheSameLease(t *testing.T) {
	for _, ls := range []Leases{held("A"), held("b", "c")} {
		for _, takeOver := range []bool{false, true} {
			ask := Ask{Client: ls[0].Client, Mode: ls[0].Mode, TakeOver: takeOver, At: noon.Add(time.Hour), Operation: ls[0].Operation}
			got, refusal := ls.Attach(ask, []Busy{{"r-1", noon}})
			if diff := cmp.Diff(Attachment{Leases: ls, Lease: ls[0]}, got); diff != "" || refusal != nil {
				t.Errorf("%v: %s", refusal, diff)
			}
		}
	}
	if _, refusal := held("b").Attach(Ask{Client: "b", Mode: Exclusive, At: noon, Operation: "op-b"}, nil); refusal == nil {
		t.Error("a share is what an exclusive attach gets under the same operation id")
	}
	nameless := Leases{{Client: "A", Mode: Exclusive, Since: noon}}
	if _, refusal := nameless.Attach(Ask{Client: "A", Mode: Exclusive, At: noon}, nil); refusal == nil {
		t.Error("two attaches without an operation id are one")
	}
}

func TestL9_TakeOver(t *testing.T) {
	busy := []Busy{{"r-1", noon}}
	for name, c := range map[string]struct {
		ls      Leases
		mode    Mode
		want    Mode
		evicted []Lease
	}{
		"of an exclusive one":     {held("A"), Exclusive, Exclusive, held("A")},
		"of shared ones":          {held("a", "b"), "", Exclusive, held("a", "b")},
		"to share":                {held("A"), Shared, Shared, held("A")},
		"of its own share":        {held("c"), Exclusive, Exclusive, nil},
		"of its own and another":  {held("b", "c"), Exclusive, Exclusive, held("b")},
		"of an execution's alone": {nil, Exclusive, Exclusive, nil},
	} {
		ask := Ask{Client: "c", Mode: c.mode, TakeOver: true, At: noon.Add(time.Hour), Operation: "op"}
		lease := Lease{Client: "c", Mode: c.want, Since: ask.At, Operation: "op"}
		got, refusal := c.ls.Attach(ask, busy)
		want := Attachment{Leases: Leases{lease}, Lease: lease, Evicted: c.evicted, Changed: true, Bumps: true}
		if diff := cmp.Diff(want, got); diff != "" || refusal != nil {
			t.Errorf("%s: %v %s", name, refusal, diff)
		}
		for _, old := range c.evicted {
			if refusal := got.Leases.MayWrite(old.Client); (refusal != nil) != (c.want == Exclusive) {
				t.Errorf("%s: the old holder's write: %v", name, refusal)
			}
		}
	}
}

func TestL6_DetachTakesOwnLeaseOnly(t *testing.T) {
	for _, c := range []struct {
		ls     Leases
		client string
		rest   Leases
		had    bool
	}{
		{held("A"), "A", nil, true}, {held("A"), "b", held("A"), false}, {nil, "a", nil, false},
		{held("a", "b"), "a", held("a", "b")[1:], true}, {held("a", "b"), "b", held("a"), true},
	} {
		rest, had := detach(c.ls, c.client)
		if diff := cmp.Diff(c.rest, rest) + cmp.Diff(c.rest, c.ls.Without(c.client)); diff != "" || had != c.had {
			t.Errorf("%v without %s: %v %s", c.ls, c.client, had, diff)
		}
	}
}

func TestL2_MayWrite(t *testing.T) {
	for _, c := range []struct {
		ls     Leases
		client string
		ok     bool
	}{
		{nil, "a", true}, {held("a"), "a", true}, {held("a"), "b", true}, {held("A"), "A", true}, {held("A"), "b", false}, {held("A"), "", false},
	} {
		if refusal := c.ls.MayWrite(c.client); (refusal == nil) != c.ok {
			t.Errorf("%v, %s writes: %v", c.ls, c.client, refusal)
		}
	}
}

// Over any calls there is one exclusive lease or any number of shared ones, one a client, and what was
// there before a call is as it was.
func TestL1_AnExclusiveLeaseIsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ls Leases
		client := rapid.SampledFrom([]string{"a", "b", "c"})
		for i := range rapid.IntRange(1, 30).Draw(t, "calls") {
			before, same := ls, slices.Clone(ls)
			if rapid.Bool().Draw(t, "attach") {
				ask := Ask{client.Draw(t, "client"), rapid.SampledFrom([]Mode{Shared, Exclusive}).Draw(t, "mode"), rapid.Bool().Draw(t, "take over"), noon, operation(noon, i)}
				if got, refusal := ls.Attach(ask, nil); refusal == nil {
					ls = got.Leases
				}
			} else {
				ls, _ = detach(ls, client.Draw(t, "client"))
			}
			if !slices.Equal(before, same) {
				t.Fatalf("%v was written over: %v", same, before)
			}
			if _, ok := ls.exclusive(); ok && len(ls) > 1 {
				t.Fatalf("%v", ls)
			}
			for _, l := range ls {
				if len(ls.Without(l.Client)) != len(ls)-1 {
					t.Fatalf("%s has two: %v", l.Client, ls)
				}
			}
		}
	})
}

func TestL11_Meets(t *testing.T) {
	for _, c := range []struct {
		first, next Pending
		want        Meeting
	}{
		{Pending{"a", methodSend, "1"}, Pending{"b", methodSend, "2"}, Passes},
		{Pending{"a", methodSend, "1"}, Pending{"a", methodInterrupt, "2"}, Passes},
		{Pending{"a", methodSend, "1"}, Pending{"a", methodSend, "2"}, Blocked},
		{Pending{"a", methodSend, "1"}, Pending{"a", methodSend, "1"}, Joins},
		{Pending{"a", methodSend, ""}, Pending{"a", methodSend, ""}, Blocked},
		{Pending{"a", methodSend, "1"}, Pending{"a", methodAttach, "1"}, Blocked},
		{Pending{"a", methodSend, "1"}, Pending{"a", methodDetach, "2"}, Blocked},
		{Pending{"a", methodSend, "1"}, Pending{"a", Gone, ""}, Follows},
		{Pending{"a", methodInterrupt, "1"}, Pending{"a", methodSend, "2"}, Blocked},
		{Pending{"a", methodInterrupt, "1"}, Pending{"a", methodInterrupt, "2"}, Blocked},
		{Pending{"a", methodAttach, "1"}, Pending{"a", methodInterrupt, "2"}, Blocked},
		{Pending{"a", methodAttach, "1"}, Pending{"a", methodAttach, "2"}, Blocked},
		{Pending{"a", methodAttach, "1"}, Pending{"a", methodDetach, "2"}, Cancels},
		{Pending{"a", methodAttach, "1"}, Pending{"a", Gone, ""}, Cancels},
		{Pending{"a", methodAttach, "1"}, Pending{"b", Gone, ""}, Passes},
		{Pending{"a", methodDetach, "1"}, Pending{"a", methodDetach, "2"}, Joins},
		{Pending{"a", methodDetach, ""}, Pending{"a", Gone, ""}, Joins},
		{Pending{"a", methodDetach, "1"}, Pending{"a", methodAttach, "2"}, Blocked},
	} {
		if got := c.first.Meets(c.next); got != c.want {
			t.Errorf("%v while %v: %s, want %s", c.next, c.first, got, c.want)
		}
	}
}

func TestL11_OnlyAnInterruptOvertakesASend(t *testing.T) {
	methods := []string{methodSend, methodInterrupt, methodAttach, methodDetach, Gone, "session/answer"}
	for _, first := range methods {
		for _, second := range methods {
			if Overtakes(first, second) != (first == methodSend && second == methodInterrupt) {
				t.Errorf("%s overtakes %s", second, first)
			}
		}
	}
}

// What an attach returns may lie in a record while another is tried on the same leases.
func TestL1_TwoAttachesFromTheSameLeasesShareNothing(t *testing.T) {
	base := slices.Grow(held("a"), 4)
	first, _ := base.Attach(Ask{Client: "b", Mode: Shared, At: noon}, nil)
	_, _ = base.Attach(Ask{Client: "c", Mode: Shared, At: noon}, nil)
	if l, ok := first.Leases.Of("b"); !ok || l.Client != "b" || len(first.Leases) != 2 {
		t.Errorf("%v", first.Leases)
	}
}

// detach is what a client's detach leaves.
func detach(ls Leases, client string) (rest Leases, had bool) {
	_, had = ls.Of(client)
	return ls.Without(client), had
}
