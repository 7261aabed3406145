package session

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func receipt(made, at time.Time, n int) Receipt {
	return Receipt{Operation: operation(made, n), Method: "session/send", Fingerprint: "f", At: at, Answer: json.RawMessage(`{}`)}
}

func TestF4_ReceiptIsFoundFor24HoursAnd5Minutes(t *testing.T) {
	var r Receipts
	first := receipt(noon, noon, 1)
	r.Add(first)
	second := first
	second.Answer = json.RawMessage(`{"other":1}`)
	r.Add(second)
	r.Expire(noon.Add(ReceiptAge))
	if got, ok := r.Find(first.Operation); !ok || string(got.Answer) != `{}` || r.Len() != 1 {
		t.Fatalf("%v %+v: not the first answer", ok, got)
	}
	r.Expire(noon.Add(ReceiptAge + 1))
	if _, ok := r.Find(first.Operation); ok || r.Len() != 0 {
		t.Error("it is kept for ever")
	}
	if err := CheckOperation(first.Operation, noon, r.Mark()); !errors.Is(err, ErrOperationExpired) {
		t.Errorf("with the clock set back a dropped id is new: %v", err)
	}
}

func TestF4_EvictionRaisesTheMark(t *testing.T) {
	var r Receipts
	for i := range MaxReceipts {
		r.Add(receipt(noon.Add(time.Duration(i)*time.Millisecond), noon, i))
	}
	if r.Len() != MaxReceipts || !r.Mark().IsZero() {
		t.Fatalf("%d, mark %s", r.Len(), r.Mark())
	}
	r.Add(receipt(noon.Add(time.Minute), noon, 0))
	if _, ok := r.Find(operation(noon, 0)); ok || r.Len() != MaxReceipts || !r.Mark().Equal(noon) {
		t.Errorf("%d, mark %s", r.Len(), r.Mark())
	}
	r.Add(receipt(noon.Add(-time.Minute), noon, 0))
	if _, ok := r.Find(operation(noon.Add(-time.Minute), 0)); ok || r.Len() != MaxReceipts || !r.Mark().Equal(noon) {
		t.Errorf("the oldest id is not the one that goes: %d, mark %s", r.Len(), r.Mark())
	}
}

func TestF4_ReceiptsAreBoundedInBytes(t *testing.T) {
	var r Receipts
	big := json.RawMessage(`"` + strings.Repeat("a", MaxReceiptBytes/4) + `"`)
	for i := range 10 {
		one := receipt(noon.Add(time.Duration(i)*time.Second), noon, i)
		one.Answer = big
		r.Add(one)
	}
	if r.Len() != 3 || !r.Mark().Equal(noon.Add(6*time.Second)) {
		t.Errorf("%d are kept, mark %s", r.Len(), r.Mark())
	}
	huge := receipt(noon.Add(time.Minute), noon, 1)
	huge.Message = strings.Repeat("a", MaxReceiptBytes+1)
	r.Add(huge)
	if r.Len() != 3 || !r.Mark().Equal(noon.Add(time.Minute)) {
		t.Errorf("a receipt that is too big: %d are kept, mark %s", r.Len(), r.Mark())
	}
}

// A restart adds the journal's receipts in their order: the same are found and the mark is the same.
func TestF4_RebuiltReceiptsAreTheSame(t *testing.T) {
	digits := json.RawMessage(strings.Repeat("1", MaxReceiptBytes+1))
	rapid.Check(t, func(t *rapid.T) {
		var live Receipts
		var journal []Receipt
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "receipts") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(6*time.Hour)).Draw(t, "later")))
			live.Expire(now)
			one := receipt(now.Add(-time.Duration(rapid.Int64Range(-int64(OperationAhead), int64(OperationAge)).Draw(t, "age"))), now, len(journal))
			one.Answer = digits[:rapid.SampledFrom([]int{1, MaxReceiptBytes / 5, MaxReceiptBytes + 1}).Draw(t, "size")]
			journal = append(journal, one)
			live.Add(one)
		}
		var again Receipts
		for _, one := range journal {
			again.Add(one)
		}
		if !live.Mark().Equal(again.Mark()) || live.bytes != again.bytes {
			t.Fatalf("marks %s and %s, bytes %d and %d", live.Mark(), again.Mark(), live.bytes, again.bytes)
		}
		if diff := cmp.Diff(live.order, again.order) + cmp.Diff(live.added, again.added); diff != "" {
			t.Fatal(diff)
		}
		for _, one := range journal {
			if _, ok := live.Find(one.Operation); !ok && CheckOperation(one.Operation, now, live.Mark()) == nil {
				t.Fatalf("%s is forgotten and taken for new", one.Operation)
			}
		}
	})
}

func TestF2_CheckKeepsTheOrder(t *testing.T) {
	var receipts Receipts
	done := receipt(noon, noon, 1)
	receipts.Add(done)
	lease := errors.New("owned")
	fresh, old := operation(noon, 2), operation(noon.Add(-OperationAge-time.Hour), 3)
	at := func(fence int64) Expected { return Expected{Given: true, Fence: fence} }
	there, owned := Standing{Exists: true, Fence: 3}, Standing{Exists: true, Fence: 3, Lease: lease}
	for name, c := range map[string]struct {
		m      Mutation
		s      Standing
		replay bool
		want   error
	}{
		"goes on":                            {Mutation{fresh, "f", "f", at(3)}, there, false, nil},
		"says nothing":                       {Mutation{}, there, false, nil},
		"fingerprint before receipt":         {Mutation{done.Operation, "g", "f", at(3)}, there, false, ErrOperation},
		"fingerprint without operation":      {Mutation{"", "g", "f", Expected{}}, there, false, ErrOperation},
		"receipt":                            {Mutation{done.Operation, "f", "f", at(3)}, there, true, nil},
		"receipt before lease and fence":     {Mutation{done.Operation, "", "f", at(2)}, owned, true, nil},
		"receipt of a session that is gone":  {Mutation{done.Operation, "", "f", at(2)}, Standing{}, true, nil},
		"conflict before lease":              {Mutation{done.Operation, "", "g", at(2)}, owned, false, ErrOperationConflict},
		"bad id before lease":                {Mutation{"x", "", "f", at(2)}, owned, false, ErrOperation},
		"old id before lease":                {Mutation{old, "", "f", at(2)}, owned, false, ErrOperationExpired},
		"old id before no session":           {Mutation{old, "", "f", at(2)}, Standing{}, false, ErrOperationExpired},
		"lease before fence":                 {Mutation{fresh, "", "f", at(2)}, owned, false, lease},
		"lease without operation":            {Mutation{"", "", "f", Expected{}}, owned, false, lease},
		"older fence":                        {Mutation{fresh, "", "f", at(2)}, there, false, ErrStaleFence},
		"newer fence":                        {Mutation{fresh, "", "f", at(4)}, there, false, ErrStaleFence},
		"must not exist and does":            {Mutation{fresh, "", "f", Expected{Given: true, None: true}}, there, false, ErrStaleFence},
		"must not exist and does not":        {Mutation{fresh, "", "f", Expected{Given: true, None: true}}, Standing{}, false, nil},
		"no session":                         {Mutation{fresh, "", "f", Expected{}}, Standing{}, false, ErrNoSession},
		"no session at any fence":            {Mutation{fresh, "", "f", at(0)}, Standing{}, false, ErrNoSession},
		"begun, then killed":                 {Mutation{old, "f", "f", at(2)}, Standing{Exists: true, Fence: 3, Lease: lease, Begun: true}, false, nil},
		"begun, another fingerprint":         {Mutation{fresh, "g", "f", at(3)}, Standing{Exists: true, Fence: 3, Begun: true}, false, ErrOperation},
		"begun and answered":                 {Mutation{done.Operation, "f", "f", at(2)}, Standing{Exists: true, Fence: 3, Begun: true}, true, nil},
		"no session is nobody's, not leased": {Mutation{fresh, "", "f", Expected{}}, Standing{Lease: lease}, false, ErrNoSession},
	} {
		got, err := Check(c.m, &receipts, c.s, noon)
		if (got != nil) != c.replay || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestF2_ParseExpected(t *testing.T) {
	for raw, want := range map[string]Expected{
		"": {}, "null": {Given: true, None: true}, "0": {Given: true}, " 7 ": {Given: true, Fence: 7},
	} {
		if got, err := ParseExpected(json.RawMessage(raw)); got != want || err != nil {
			t.Errorf("%q: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{"-1", "1.5", `"3"`, "true", "{}", "99999999999999999999"} {
		if _, err := ParseExpected(json.RawMessage(raw)); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
