package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// This model test holds the rules of leases, fence, receipts and restarts together, as a supervisor would use
// them: what is in disk survives a crash, the index of receipts does not. A naive model beside it knows what
// each request must get.

var errParked = errors.New("parked")

// disk is what was recorded. It goes through JSON at each crash.
type disk struct {
	Fence   int64
	Leases  Leases
	Runtime bool
	Restart Restart
	Queue   []Busy
	Sent    []string
	Journal []Receipt
}

type request struct {
	client, method, operation string
	mode                      Mode
	takeOver                  bool
	text                      string
	expected                  Expected
}

func (q request) params() json.RawMessage {
	data, _ := json.Marshal(map[string]any{"client": q.client, "mode": q.mode, "takeOver": q.takeOver, "text": q.text, "operationId": q.operation})
	return data
}

func (q request) ask(now time.Time) Ask {
	return Ask{Client: q.client, Mode: q.mode, TakeOver: q.takeOver, At: now, Operation: q.operation}
}

// system is the rules in use.
type system struct {
	disk
	receipts Receipts
	now      time.Time
}

// do carries out a request; it is killed between record and receipt if dies is set, and answers nothing then.
func (s *system) do(q request, dies bool) (string, error) {
	s.receipts.Expire(s.now)
	fingerprint, err := Fingerprint(q.method, "s-1", q.params())
	if err != nil {
		return "", err
	}
	m := Mutation{Operation: q.operation, Fingerprint: fingerprint, Computed: fingerprint, Expected: q.expected}
	receipt, err := Check(m, &s.receipts, s.standing(q), s.now)
	switch {
	case err != nil:
		return "", err
	case receipt != nil:
		return string(receipt.Answer), nil
	}
	if err := s.effect(q); err != nil || dies {
		return "", err
	}
	answer := fmt.Sprintf(`{"fence":%d}`, s.Fence)
	one := Receipt{Operation: q.operation, Method: q.method, Fingerprint: fingerprint, At: s.now, Answer: json.RawMessage(answer)}
	s.Journal = append(s.Journal, one)
	s.receipts.Add(one)
	return answer, nil
}

func (s *system) standing(q request) Standing {
	st := Standing{Exists: true, Fence: s.Fence}
	var refusal *Refusal
	switch q.method {
	case methodAttach:
		_, refusal = s.Leases.Attach(q.ask(s.now), s.Queue)
		st.Begun = s.Leases.Begun(q.ask(s.now))
	case methodSend:
		refusal = s.Leases.MayWrite(q.client)
		st.Begun = slices.Contains(s.Sent, q.operation)
	}
	if refusal != nil {
		st.Lease = refusal
	}
	return st
}

func (s *system) effect(q request) error {
	switch q.method {
	case methodAttach:
		got, refusal := s.Leases.Attach(q.ask(s.now), s.Queue)
		if refusal != nil {
			return refusal
		}
		s.Leases = got.Leases
		if got.Bumps {
			s.Fence++
		}
	case methodDetach:
		s.Leases, _ = detach(s.Leases, q.client)
		if len(s.Leases) == 0 {
			s.Restart = s.Restart.Released()
		}
	case methodSend:
		return s.send(q)
	}
	return nil
}

func (s *system) send(q request) error {
	if slices.Contains(s.Sent, q.operation) {
		return nil
	}
	if ok, why := s.Restart.MayStart(); !ok {
		return fmt.Errorf("%w: %s", errParked, why)
	}
	s.Sent = append(s.Sent, q.operation)
	s.Queue = append(s.Queue, Busy{q.operation, s.now})
	if !s.Runtime {
		s.reserve()
	}
	return nil
}

func (s *system) reserve() {
	s.Fence++
	s.Runtime = true
	s.Restart = s.Restart.Started(s.now)
}

func (s *system) exit(asked bool) {
	s.Fence++
	s.Runtime, s.Queue = false, nil
	s.Restart = s.Restart.Exited(Exit{Policy: OnCrash, Asked: asked, Leased: len(s.Leases) > 0, At: s.now, Delay: RestartDelay, Most: MostRestarts})
}

// crash forgets all that is not on disk.
func (s *system) crash(t *rapid.T) {
	data, err := json.Marshal(s.disk)
	if err != nil {
		t.Fatal(err)
	}
	before := s.receipts
	*s = system{now: s.now}
	if err := json.Unmarshal(data, &s.disk); err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Journal {
		s.receipts.Add(one)
	}
	before.Expire(s.now)
	s.receipts.Expire(s.now)
	if !before.Mark().Equal(s.receipts.Mark()) || before.Len() != s.receipts.Len() {
		t.Fatalf("after a crash %d receipts with mark %s are %d with %s", before.Len(), before.Mark(), s.receipts.Len(), s.receipts.Mark())
	}
}

// model is what everybody must see, in the simplest words.
type model struct {
	holds    map[string]Mode
	answered map[string]answered // by operation
	begun    map[string]bool     // its effect is on record, whether it was answered or not
	sent     map[string]bool
	turns    int
}

type answered struct {
	text, answer string // text is all that it asked for
	at           time.Time
}

func (q request) what() string { return q.method + string(q.params()) }

// expects is the error that a request must get, and the answer if it is a recorded one.
func (m *model) expects(q request, s *system) (answer string, err error) {
	made, _ := OperationTime(q.operation)
	old, ok := m.answered[q.operation]
	switch {
	case ok && s.now.Sub(old.at) <= ReceiptAge && old.text != q.what():
		return "", ErrOperationConflict
	case ok && s.now.Sub(old.at) <= ReceiptAge:
		return old.answer, nil
	case m.begun[q.operation]:
		return "", nil
	case s.now.Sub(made) > OperationAge:
		return "", ErrOperationExpired
	case m.owned(q):
		return "", new(Refusal)
	case q.expected.Given && q.expected.Fence != s.Fence:
		return "", ErrStaleFence
	case q.method == methodSend && s.Restart.Parked != nil:
		return "", errParked
	}
	return "", nil
}

func (m *model) owned(q request) bool {
	exclusive := slices.ContainsFunc(clients, func(c string) bool { return m.holds[c] == Exclusive })
	switch {
	case q.method == methodSend:
		return exclusive && m.holds[q.client] != Exclusive
	case q.method != methodAttach || q.takeOver:
		return false
	case q.mode == Shared:
		return exclusive
	}
	return len(m.holds) > 0 || m.turns > 0
}

// takes records what a request that was carried out does.
func (m *model) takes(q request) {
	switch q.method {
	case methodAttach:
		if q.takeOver {
			m.holds = map[string]Mode{}
		}
		m.holds[q.client] = q.mode
	case methodDetach:
		delete(m.holds, q.client)
	case methodSend:
		m.sent[q.operation] = true
		m.turns++
	}
}

var clients = []string{"a", "b", "c"}

func draw(t *rapid.T, s *system) request {
	q := request{
		client: rapid.SampledFrom(clients).Draw(t, "client"), method: rapid.SampledFrom([]string{methodAttach, methodAttach, methodDetach, methodSend}).Draw(t, "method"),
		operation: NewOperation(s.now, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random"))), text: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text"),
	}
	if q.method == methodAttach {
		q.mode = rapid.SampledFrom([]Mode{Shared, Exclusive}).Draw(t, "mode")
		q.takeOver = rapid.IntRange(0, 3).Draw(t, "take over") == 0
	}
	if back := rapid.Int64Range(-1, 1).Draw(t, "fence"); back >= 0 && back <= s.Fence {
		q.expected = Expected{Given: true, Fence: s.Fence - back}
	}
	return q
}

// run is one random life of a session.
type run struct {
	system
	model
	past []request
}

// ask puts a request to both and compares.
func (r *run) ask(t *rapid.T, q request, dies bool) {
	before, _ := json.Marshal(r.disk)
	answer, want := r.expects(q, &r.system)
	begun, fence := r.begun[q.operation], r.Fence
	got, err := r.do(q, dies)
	after, _ := json.Marshal(r.disk)
	if !same(err, want) || answer != "" && got != answer {
		t.Fatalf("%+v: %s %v, want %s %v", q, got, err, answer, want)
	}
	switch {
	case err != nil || answer != "":
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Fatalf("%+v (%v) had an effect: %s", q, err, diff)
		}
		return
	case !begun:
		r.takes(q)
	case r.Fence != fence: // what else it must not change check sees
		t.Fatalf("%+v, carried out once more, raised the fence", q)
	}
	// A detach leaves no trace of its operation: its repeat is a detach once more.
	r.begun[q.operation] = begun || q.method == methodSend || q.method == methodAttach && r.Leases.Begun(q.ask(r.now))
	if dies {
		r.crash(t)
		return
	}
	r.answered[q.operation] = answered{q.what(), got, r.now}
}

func same(err, want error) bool {
	var refusal *Refusal
	if errors.As(want, &refusal) {
		return errors.As(err, &refusal)
	}
	return errors.Is(err, want) && (err == nil) == (want == nil)
}

func (r *run) check(t *rapid.T, fence *int64) {
	if r.Fence < *fence {
		t.Fatalf("the fence fell from %d to %d", *fence, r.Fence)
	}
	*fence = r.Fence
	holds := map[string]Mode{}
	for _, l := range r.Leases {
		holds[l.Client] = l.Mode
	}
	if diff := cmp.Diff(r.holds, holds); diff != "" || len(holds) != len(r.Leases) {
		t.Fatalf("%v: %s", r.Leases, diff)
	}
	if _, ok := r.Leases.exclusive(); ok && len(r.Leases) > 1 {
		t.Fatalf("not alone: %v", r.Leases)
	}
	if len(r.sent) != len(r.Sent) || len(r.Queue) != r.turns {
		t.Fatalf("%d were sent, %d times", len(r.sent), len(r.Sent))
	}
	if r.Restart.Count > MostRestarts || r.Restart.NextAt != nil && (r.Runtime || len(r.Leases) == 0) {
		t.Fatalf("%+v with runtime %v, leases %v", r.Restart, r.Runtime, r.Leases)
	}
}

// repeat asks for what was asked before, or for something else under its operation id.
func (r *run) repeat(t *rapid.T) {
	if len(r.past) == 0 {
		t.Skip("nothing was asked")
	}
	q := rapid.SampledFrom(r.past).Draw(t, "past")
	if r.begun[q.operation] && q.method == methodAttach && !r.Leases.Begun(q.ask(r.now)) {
		r.begun[q.operation] = false // taken over, or given back: only a lease that is held is known again
	}
	if a, ok := r.answered[q.operation]; ok && r.now.Sub(a.at) <= ReceiptAge && rapid.Bool().Draw(t, "other") {
		q.text += "!"
	}
	r.ask(t, q, rapid.Bool().Draw(t, "dies"))
}

func (r *run) exits(t *rapid.T) {
	if !r.Runtime {
		t.Skip("nothing runs")
	}
	asked := rapid.IntRange(0, 3).Draw(t, "asked") == 0
	r.exit(asked)
	r.turns = 0
	if asked && r.Restart != (Restart{}) {
		t.Fatalf("asked for, and yet %+v", r.Restart)
	}
}

func (r *run) passes(t *rapid.T) {
	r.now = r.now.Add(time.Duration(rapid.SampledFrom([]int64{1, int64(RestartDelay), int64(StableFor), int64(13 * time.Hour)}).Draw(t, "later")))
	if r.Restart.Due(r.now) {
		r.reserve()
	}
}

func TestF2_L1_R2_OneLifeOfASession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &run{system: system{now: noon}, model: model{holds: map[string]Mode{}, answered: map[string]answered{}, begun: map[string]bool{}, sent: map[string]bool{}}}
		var fence int64
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { r.check(t, &fence) },
			"ask": func(t *rapid.T) {
				q := draw(t, &r.system)
				r.past = append(r.past, q)
				r.ask(t, q, rapid.IntRange(0, 4).Draw(t, "dies") == 0)
			},
			"repeat": r.repeat,
			"exit":   r.exits,
			"time":   r.passes,
			"crash":  func(t *rapid.T) { r.crash(t) },
			"turn": func(*rapid.T) {
				r.Queue, r.turns = nil, 0
			},
			"recover": func(*rapid.T) { r.Restart = r.Restart.Recovered() },
		})
	})
}
