package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// handClock is a clock that goes when it is told to.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	at time.Time
	f  func()
}

func newHandClock() *handClock { return &handClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) After(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &handTimer{c.now.Add(d), f}
	c.timers = append(c.timers, timer)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(t *handTimer) bool { return t == timer })
		return len(c.timers) < n
	}
}

// advance lets d pass; each timer fires when its time has come.
func (c *handClock) advance(d time.Duration) {
	until := c.Now().Add(d)
	for timer := c.next(until); timer != nil; timer = c.next(until) {
		timer.f()
	}
}

func (c *handClock) next(until time.Time) (first *handTimer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		if !t.at.After(until) && (first == nil || t.at.Before(first.at)) {
			first = t
		}
	}
	c.now = until
	if first != nil {
		c.now = first.at
		c.timers = slices.DeleteFunc(c.timers, func(t *handTimer) bool { return t == first })
	}
	return first
}

// jump lets d pass on a machine that is too busy for its timers.
func (c *handClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// club is a registry with what it told of clients that have ended.
type club struct {
	*registry
	t     fataler
	clock *handClock
	fail  error    // of freeing leases
	freed []string // "id session session"
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newClub(t *testing.T) *club {
	t.Helper()
	d, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	c := clubIn(t, d, newHandClock())
	t.Cleanup(func() { c.registry.close() })
	return c
}

func clubIn(t fataler, d *state.Dir, clock *handClock) *club {
	c := &club{t: t, clock: clock}
	c.registry = newRegistry(context.Background(), d, log.New(io.Discard, "", 0), clock, c.onFreed)
	c.load()
	return c
}

// restart is the next supervisor's registry: whatever the last one had in memory is lost.
func (c *club) restart() *club {
	c.registry.close()
	return clubIn(c.t, c.dir, c.clock)
}

func (c *club) onFreed(_ context.Context, id string, sessions []string) error {
	if c.fail == nil {
		c.freed = append(c.freed, strings.Join(append([]string{id}, sessions...), " "))
	}
	return c.fail
}

// hi is a hello on a new connection, with a token and a grace where they are given.
func (c *club) hi(id, token string, grace ...time.Duration) (*rpc.Peer, api.Welcome, error) {
	h := api.Hello{Client: id, ResumeToken: token}
	for _, g := range grace {
		ms := g.Milliseconds()
		h.GraceMs = &ms
	}
	p := new(rpc.Peer)
	w, err := c.join(context.Background(), p, h)
	if err == nil {
		c.welcomed(p, func() {})
	}
	return p, w, err
}

// must is hi that is accepted.
func (c *club) must(id, token string, grace ...time.Duration) (*rpc.Peer, api.Welcome) {
	c.t.Helper()
	p, w, err := c.hi(id, token, grace...)
	if err != nil {
		c.t.Fatalf("hello of %s: %v", id, err)
	}
	return p, w
}

func (c *club) notes(id string, sessions ...string) {
	c.t.Helper()
	for _, s := range sessions {
		if err := c.note(context.Background(), id, s); err != nil {
			c.t.Fatalf("note %s of %s: %v", s, id, err)
		}
	}
}

func (c *club) isFreed(want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.freed); diff != "" {
		c.t.Fatalf("freed (-want +got):\n%s", diff)
	}
}

// is checks the state of a client: absent, connected or grace.
func (c *club) is(id, want string) {
	c.t.Helper()
	connected, until, live := c.state(id)
	got := map[bool]string{true: "connected", false: "grace"}[connected]
	if !live {
		got = "absent"
	}
	if got != want || until.IsZero() != (want != "grace") {
		c.t.Fatalf("%s is %s until %v, want %s", id, got, until, want)
	}
}

func (c *club) onFile(id string) (record.Client, bool) {
	c.t.Helper()
	rec, err := record.ReadClient(c.dir, record.ClientFile(id))
	if err != nil && !nowhere(err) {
		c.t.Fatalf("%v", err)
	}
	return rec, err == nil
}

func TestC1_GraceEndsOnceAndNotBefore(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "")
	c.notes("a", "s-2", "s-1")
	if w.Resumed || len(w.ResumeToken) != 64 || w.GraceMs != 90_000 {
		t.Errorf("welcome %+v", w)
	}
	c.clock.advance(time.Hour)
	c.is("a", "connected")
	c.lost(p)
	c.clock.advance(90*time.Second - 1)
	c.is("a", "grace")
	c.isFreed()
	c.clock.advance(1)
	c.is("a", "absent")
	c.clock.advance(time.Hour)
	c.lost(p)
	c.isFreed("a s-1 s-2")
	if _, there := c.onFile("a"); there {
		t.Error("its record is still there")
	}
	if _, again := c.must("a", w.ResumeToken); again.Resumed || again.ResumeToken == w.ResumeToken {
		t.Errorf("after its grace it is welcomed as %+v", again)
	}
}

func TestC1_ReconnectStopsTheTimer(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "")
	c.lost(p)
	c.clock.advance(90*time.Second - 1)
	p, again := c.must("a", w.ResumeToken)
	if !again.Resumed || again.ResumeToken != w.ResumeToken {
		t.Errorf("welcomed as %+v", again)
	}
	c.clock.advance(time.Hour)
	c.is("a", "connected")
	c.lost(p)
	c.clock.advance(90*time.Second - 1) // a whole grace once more
	c.is("a", "grace")
	c.clock.advance(1)
	c.isFreed("a")
}

// The time counts, and not when a busy machine comes to the timer.
func TestC1_HelloAtTheEndOfTheGraceIsTooLate(t *testing.T) {
	for _, tt := range []struct {
		late    time.Duration
		resumed bool
	}{{-1, true}, {0, false}, {time.Hour, false}} {
		c := newClub(t)
		p, w := c.must("a", "")
		c.notes("a", "s-1")
		c.lost(p)
		c.clock.jump(90*time.Second + tt.late)
		if _, again := c.must("a", w.ResumeToken); again.Resumed != tt.resumed {
			t.Errorf("%v late: resumed %v", tt.late, again.Resumed)
		}
		c.clock.advance(0)
		if c.is("a", "connected"); !tt.resumed {
			c.isFreed("a s-1")
		}
	}
}

func TestC1_ClientSurvivesTheSupervisor(t *testing.T) {
	c := newClub(t)
	_, w := c.must("a", "", time.Minute)
	c.notes("a", "s-1")
	c.clock.advance(time.Hour)
	c = c.restart()
	c.is("a", "grace") // from now on, whenever it was lost
	c.clock.advance(time.Minute - 1)
	if _, _, err := c.hi("a", "another"); !errors.Is(err, errToken) {
		t.Errorf("with another token: %v", err)
	}
	if _, again := c.must("a", w.ResumeToken); !again.Resumed {
		t.Errorf("welcomed as %+v", again)
	}
	c = c.restart()
	c.clock.advance(defaultGrace) // which the last hello has said
	c.is("a", "absent")
	c.isFreed("a s-1")
	c = c.restart()
	c.clock.advance(time.Hour)
	c.isFreed()
}

// What cannot be freed is tried again every second, and until then the id is nobody's: a namesake would have its leases.
func TestC1_EndThatFailsIsTriedAgain(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "", time.Second)
	c.notes("a", "s-1")
	c.lost(p)
	c.fail = state.ErrFull
	c.clock.advance(time.Minute)
	c.is("a", "absent")
	if _, _, err := c.hi("a", w.ResumeToken); !errors.Is(err, state.ErrFull) {
		t.Errorf("a namesake: %v", err)
	}
	if rec, there := c.onFile("a"); !there || rec.GoneAt == nil {
		t.Errorf("its record: %v, %+v", there, rec)
	}
	c.fail = nil
	c.clock.advance(time.Second)
	c.isFreed("a s-1")
	c.clock.advance(time.Minute)
	c.isFreed("a s-1")
	if _, again := c.must("a", w.ResumeToken); again.Resumed {
		t.Error("it was given back")
	}
}

// The end of a client goes on with the next supervisor, and is no grace once more.
func TestC1_EndGoesOnAfterTheSupervisor(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "")
	c.notes("a", "s-1")
	c.fail = state.ErrFull
	_, finish := c.goodbye(p)
	finish()
	c = c.restart()
	c.is("a", "absent")
	c.clock.advance(0)
	c.isFreed("a s-1")
	if _, again := c.must("a", w.ResumeToken); again.Resumed {
		t.Error("it was given back")
	}
}

// A client without grace ends with its last connection. It is on file only while it may hold leases, since those outlive
// the supervisor.
func TestC1_ClientWithoutGrace(t *testing.T) {
	c := newClub(t)
	p, _ := c.must("a", "", 0)
	if _, there := c.onFile("a"); there {
		t.Error("it has a record")
	}
	c.lost(p)
	c.is("a", "absent")
	c.isFreed("a")

	c.must("b", "", 0)
	c.notes("b", "s-1", "s-2")
	if err := c.forget(t.Context(), "b", "s-1"); err != nil {
		t.Fatal(err)
	}
	c = c.restart()
	c.clock.advance(0)
	c.isFreed("b s-2")

	c.must("b", "", 0)
	c.notes("b", "s-1")
	if err := c.forget(t.Context(), "b", "s-1"); err != nil {
		t.Fatal(err)
	}
	if _, there := c.onFile("b"); there {
		t.Error("its record is still there")
	}
}

// The last hello says how long the grace is.
func TestC1_GraceIsTheLastHellos(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "", time.Hour)
	c.lost(p)
	p, _ = c.must("a", w.ResumeToken, time.Minute)
	c.lost(p)
	c.clock.advance(time.Minute - 1)
	c.is("a", "grace")
	if rec, _ := c.onFile("a"); rec.GraceMs != 60_000 {
		t.Errorf("on file: %d ms", rec.GraceMs)
	}
	p, _ = c.must("a", w.ResumeToken, 0)
	if _, there := c.onFile("a"); there {
		t.Error("without grace it has a record")
	}
	c.lost(p)
	c.isFreed("a")
}

func TestC1_GraceOf(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		ms   *int64
		want time.Duration
		code api.Code
	}{
		{nil, 90 * time.Second, ""},
		{ms(0), 0, ""},
		{ms(1), time.Millisecond, ""},
		{ms(86_400_000), 24 * time.Hour, ""},
		{ms(86_400_001), 24 * time.Hour, ""},
		{ms(1 << 62), 24 * time.Hour, ""},
		{ms(-1), 0, api.CodeParams},
	} {
		if got, err := graceOf(api.Hello{GraceMs: tt.ms}); got != tt.want || api.CodeOf(err) != tt.code {
			t.Errorf("%v: %v, %v", tt.ms, got, err)
		}
	}
}

func TestC2_TwoConnectionsAreOneClient(t *testing.T) {
	c := newClub(t)
	first, w := c.must("a", "")
	second, again := c.must("a", w.ResumeToken)
	if !again.Resumed || c.of(first) != c.of(second) || len(c.peersOf("a")) != 2 {
		t.Errorf("the second is welcomed as %+v; peers %v", again, c.peersOf("a"))
	}
	c.lost(first)
	c.clock.advance(time.Hour)
	c.is("a", "connected")
	if peers := c.peersOf("a"); len(peers) != 1 || peers[0] != second {
		t.Errorf("peers %v", peers)
	}
	c.lost(second)
	c.is("a", "grace")
	c.clock.advance(90 * time.Second)
	c.isFreed("a")
}

// Who has not had its hello's answer is told nothing yet, and counts all the same.
func TestC2_NotWelcomedYet(t *testing.T) {
	c := newClub(t)
	p := new(rpc.Peer)
	if _, err := c.join(t.Context(), p, api.Hello{Client: "a"}); err != nil {
		t.Fatal(err)
	}
	if c.is("a", "connected"); len(c.peersOf("a")) != 0 {
		t.Error("it is told something")
	}
}

func TestC3_CapabilitiesAreTheLastHellos(t *testing.T) {
	c := newClub(t)
	token := ""
	for _, want := range []string{`{"big":12345678901234567890,"a":[1, {"b":null}],"<":"\u00e9"}`, `{}`, ``} {
		p := new(rpc.Peer)
		w, err := c.join(t.Context(), p, api.Hello{Client: "a", ResumeToken: token, Capabilities: json.RawMessage(want)})
		if err != nil {
			t.Fatal(err)
		}
		token = w.ResumeToken
		if got := c.of(p).capabilities; string(got) != want {
			t.Errorf("capabilities %s, want %s", got, want)
		}
	}
}

func TestC5_WrongTokenDisturbsNobody(t *testing.T) {
	c := newClub(t)
	p, w := c.must("a", "")
	before, err := os.ReadFile(c.dir.Path(record.ClientFile("a")))
	if err != nil {
		t.Fatal(err)
	}
	wrong := []string{"", "x", w.ResumeToken[:63], w.ResumeToken + "0", strings.ToUpper(w.ResumeToken), hashToken(w.ResumeToken)}
	for _, token := range wrong {
		if other, _, err := c.hi("a", token, 0); !errors.Is(err, errToken) || c.of(other) != nil {
			t.Errorf("token %q: %v", token, err)
		}
	}
	c.is("a", "connected")
	c.lost(p)
	c.clock.advance(89 * time.Second)
	for _, token := range wrong {
		if _, _, err := c.hi("a", token); !errors.Is(err, errToken) {
			t.Errorf("in grace, token %q: %v", token, err)
		}
	}
	after, _ := os.ReadFile(c.dir.Path(record.ClientFile("a")))
	if c.is("a", "grace"); !bytes.Equal(before, after) || bytes.Contains(after, []byte(w.ResumeToken)) {
		t.Errorf("on file: %s, before %s", after, before)
	}
	c.clock.advance(time.Second)
	c.is("a", "absent") // they have not stopped its timer
}

func TestC5_IDs(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "über/../x y": true, strings.Repeat("é", 200): true, " a": true,
		"": false, " \u00a0": false, strings.Repeat("é", 201): false, "a\nb": false, "a\x00": false, "\x1b[2J": false, "\u0085a": false,
	} {
		if got := clientNamed(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

// Of many first hellos at once one makes the client.
func TestC5_FirstHellosAtOnce(t *testing.T) {
	c := newClub(t)
	var all sync.WaitGroup
	results := make(chan error, 20)
	for range cap(results) {
		all.Go(func() { _, _, err := c.hi("a", ""); results <- err })
	}
	all.Wait()
	made := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			made++
		case !errors.Is(err, errToken):
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d were made", made)
	}
}

// What cannot be read is never taken for absent: the id is refused, and its leases hold.
func TestC5_UnreadableRecord(t *testing.T) {
	for name, data := range map[string]string{
		"torn": `{"version":1,"id":"a`, "of another": `{"version":1,"id":"b","tokenHash":"` + hashToken("x") + `","graceMs":1}`,
		"without a token": `{"version":1,"id":"a","graceMs":90000}`,
	} {
		c := newClub(t)
		p, w := c.must("a", "")
		path := c.dir.Path(record.ClientFile("a"))
		good, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.lost(p)
		c = c.restart()
		c.clock.advance(time.Hour)
		if _, _, err := c.hi("a", w.ResumeToken); api.CodeOf(coded(err)) != api.CodeCorrupt {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, live := c.state("a"); !live {
			t.Errorf("%s: it is taken for absent", name)
		}
		c.must("other", "")
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, again := c.must("a", w.ResumeToken); !again.Resumed {
			t.Errorf("%s: mended, it is welcomed as %+v", name, again)
		}
	}
}

// A hello whose client cannot be put on file makes none, and a client goes on as it was.
func TestC5_ClientThatCannotBePutOnFile(t *testing.T) {
	c := newClub(t)
	cannot, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.join(cannot, new(rpc.Peer), api.Hello{Client: "a"}); err == nil {
		t.Fatal("welcomed")
	}
	c.is("a", "absent")
	p, w := c.must("a", "", time.Hour)
	c.lost(p)
	q := new(rpc.Peer)
	if _, err := c.join(cannot, q, api.Hello{Client: "a", ResumeToken: w.ResumeToken}); err == nil || c.of(q) != nil {
		t.Fatal("welcomed")
	}
	if err := c.note(cannot, "a", "s-1"); err == nil {
		t.Error("noted")
	}
	c.clock.advance(time.Hour - 1)
	c.is("a", "grace")
	c.clock.advance(1)
	c.isFreed("a")
}

func TestC15_GoodbyeEndsAtOnce(t *testing.T) {
	c := newClub(t)
	first, w := c.must("a", "")
	second, _ := c.must("a", w.ResumeToken)
	c.notes("a", "s-1")
	peers, finish := c.goodbye(second)
	c.is("a", "absent")
	if len(peers) != 2 || !slices.Contains(peers, first) || !slices.Contains(peers, second) {
		t.Errorf("peers %v", peers)
	}
	finish()
	c.isFreed("a s-1")
	third, again := c.must("a", w.ResumeToken)
	c.lost(first) // they hear of it later
	c.lost(second)
	if c.is("a", "connected"); again.Resumed || c.of(third) == c.of(first) {
		t.Errorf("after goodbye it is welcomed as %+v", again)
	}
	_, finish = c.goodbye(new(rpc.Peer)) // of nobody
	finish()
	c.isFreed("a s-1")
}

// Nothing can be noted of a client that has ended, so no lease is recorded that nobody would free (L11).
func TestL11_NoteOfAClientThatHasEnded(t *testing.T) {
	c := newClub(t)
	p, _ := c.must("a", "")
	c.fail = state.ErrFull
	_, finish := c.goodbye(p)
	for range 2 {
		if err := c.note(t.Context(), "a", "s-1"); api.CodeOf(err) != api.CodeClientGone {
			t.Errorf("note: %v", err)
		}
		if err := c.forget(t.Context(), "a", "s-1"); err != nil {
			t.Errorf("forget: %v", err)
		}
		finish()
	}
	if err := c.note(t.Context(), "nobody", "s-1"); api.CodeOf(err) != api.CodeClientGone {
		t.Errorf("note: %v", err)
	}
}

// Notes are on file when they are made.
func TestL6_NotesAreOnFile(t *testing.T) {
	c := newClub(t)
	c.must("a", "")
	c.notes("a", "s-3", "s-1", "s-2", "s-1")
	if err := c.forget(t.Context(), "a", "s-2"); err != nil {
		t.Fatal(err)
	}
	rec, _ := c.onFile("a")
	if !cmp.Equal(rec.Sessions, []string{"s-1", "s-3"}) {
		t.Errorf("on file: %v", rec.Sessions)
	}
}

// A supervisor is not idle while a client may come back or holds something.
func TestC1_IdleWaitsForClients(t *testing.T) {
	c := newClub(t)
	check := func(what string, want bool) {
		t.Helper()
		if got := c.busy(); got != want {
			t.Errorf("%s: busy %v", what, got)
		}
	}
	check("nobody", false)
	p, _ := c.must("a", "")
	check("connected, which counts elsewhere", false)
	c.lost(p)
	check("in grace", true)
	c.clock.advance(90 * time.Second)
	check("gone", false)
	p, _ = c.must("b", "", 0)
	c.notes("b", "s-1")
	check("with a lease", true)
	c.fail = fmt.Errorf("not now")
	c.lost(p)
	check("not freed", true)
	c.fail = nil
	c.clock.advance(time.Second)
	check("freed", false)
}

// A supervisor that leaves ends nobody: its clients are the next one's (C16).
func TestC16_NoTimerFiresAfterwards(t *testing.T) {
	c := newClub(t)
	p, _ := c.must("a", "")
	q, _ := c.must("b", "", 0)
	c.notes("b", "s-1")
	c.lost(p)
	c.registry.close()
	c.lost(q)
	if n := len(c.clock.timers); n != 0 {
		t.Errorf("%d timers are armed", n)
	}
	c.clock.advance(time.Hour)
	c.isFreed()
	next := c.restart()
	next.is("a", "grace")
	next.clock.advance(0)
	next.isFreed("b s-1")
}
