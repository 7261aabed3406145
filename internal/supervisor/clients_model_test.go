package supervisor

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/state"
)

// guest is a client as the model has it.
type guest struct {
	Token    string
	Grace    time.Duration
	Sessions []string
	Until    time.Time // zero while it is connected
	Ended    bool      // its leases are not free yet
	peers    []*rpc.Peer
	retry    time.Time
}

// house is the model of the clients, with what it knows of connections.
type house struct {
	*club
	guests map[string]*guest
	told   []string // what is freed
	old    []string // tokens that were ever given
}

// free is a try to free what a client that has ended holds.
func (h *house) free(id string) {
	g := h.guests[id]
	if h.fail != nil {
		g.retry = h.clock.Now().Add(freeDelay)
		return
	}
	h.told = append(h.told, strings.Join(append([]string{id}, g.Sessions...), " "))
	delete(h.guests, id)
}

// end ends a client.
func (h *house) end(id string) {
	h.guests[id].Ended, h.guests[id].Until = true, time.Time{}
	h.free(id)
}

// pass lets the model's time pass up to now, in the order of what falls due.
func (h *house) pass(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(h.guests)) {
		g := h.guests[id]
		if !g.Until.IsZero() && !now.Before(g.Until) {
			g.Ended, g.retry, g.Until = true, g.Until, time.Time{}
		}
		switch {
		case !g.Ended || g.retry.After(now):
		case h.fail == nil:
			h.free(id)
		default:
			g.retry = g.retry.Add((now.Sub(g.retry)/freeDelay + 1) * freeDelay)
		}
	}
}

// hello says hello with one of the tokens that there ever were, or none.
func (h *house) hello(rt *rapid.T, id string) {
	tokens := append([]string{"", "wrong"}, h.old...)
	if g := h.guests[id]; g != nil {
		tokens = append(tokens, g.Token, g.Token, g.Token)
	}
	token := rapid.SampledFrom(tokens).Draw(rt, "token")
	grace := rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 90 * time.Second}).Draw(rt, "grace")
	p, w, err := h.hi(id, token, grace)
	if g := h.guests[id]; g != nil && g.Ended {
		h.free(id)
	}
	g := h.guests[id]
	switch {
	case g != nil && g.Ended:
		if !errors.Is(err, state.ErrFull) {
			rt.Fatalf("a namesake of %s: %v", id, err)
		}
	case g != nil && token != g.Token:
		if !errors.Is(err, errToken) {
			rt.Fatalf("%s with a wrong token: %v", id, err)
		}
	case err != nil || w.Resumed != (g != nil):
		rt.Fatalf("%s is welcomed %+v, %v", id, w, err)
	case g == nil:
		h.guests[id] = &guest{Token: w.ResumeToken, Grace: grace, peers: []*rpc.Peer{p}}
		h.old = append(h.old, w.ResumeToken)
	default:
		g.Grace, g.Until, g.peers = grace, time.Time{}, append(g.peers, p)
	}
}

// lose takes a connection of a client.
func (h *house) lose(rt *rapid.T, id string) {
	g := h.guests[id]
	if g == nil || len(g.peers) == 0 {
		return
	}
	i := rapid.IntRange(0, len(g.peers)-1).Draw(rt, "peer")
	h.lost(g.peers[i])
	g.peers = slices.Delete(g.peers, i, i+1)
	switch {
	case len(g.peers) > 0 || g.Ended:
	case g.Grace == 0:
		h.end(id)
	default:
		g.Until = h.clock.Now().Add(g.Grace)
	}
}

func (h *house) goodbyes(rt *rapid.T, id string) {
	g := h.guests[id]
	if g == nil || len(g.peers) == 0 {
		return
	}
	_, finish := h.goodbye(rapid.SampledFrom(g.peers).Draw(rt, "peer"))
	finish()
	h.end(id)
}

func (h *house) noting(rt *rapid.T, id, session string, there bool) {
	change := h.note
	if !there {
		change = h.forget
	}
	err := change(rt.Context(), id, session)
	g := h.guests[id]
	if lives := g != nil && !g.Ended; !lives {
		if there != (err != nil) {
			rt.Fatalf("%s has ended: %v", id, err)
		}
		return
	}
	g.Sessions = slices.DeleteFunc(g.Sessions, func(s string) bool { return s == session })
	if there {
		g.Sessions = append(g.Sessions, session)
		slices.Sort(g.Sessions)
	}
	if err != nil {
		rt.Fatalf("%s: %v", id, err)
	}
}

// again restarts the registry: all that it had in memory is lost.
func (h *house) again() {
	freed, fail := h.freed, h.fail
	h.club = h.restart()
	h.freed, h.fail = freed, fail
	for id, g := range h.guests {
		g.peers = nil
		switch {
		case g.Ended && len(g.Sessions) == 0, g.Grace == 0 && len(g.Sessions) == 0:
			delete(h.guests, id) // nothing of it was on file
		case g.Ended || g.Grace == 0:
			g.Ended, g.retry = true, h.clock.Now()
		default:
			g.Until = h.clock.Now().Add(g.Grace)
		}
	}
	h.clock.advance(0)
	h.pass(h.clock.Now())
}

// agrees compares what can be seen, and what is on file.
func (h *house) agrees(rt *rapid.T, ids []string) {
	for _, id := range ids {
		g := h.guests[id]
		connected, until, live := h.state(id)
		want := g != nil && !g.Ended
		if live != want || want && (!until.Equal(g.Until) || connected != (len(g.peers) > 0) || len(h.peersOf(id)) != len(g.peers)) {
			rt.Fatalf("%s: connected %v, until %v, live %v; want %+v", id, connected, until, live, g)
		}
		rec, there := h.onFile(id)
		if there != (g != nil && (g.Grace > 0 && !g.Ended || len(g.Sessions) > 0)) {
			rt.Fatalf("%s is on file: %v; want %+v", id, there, g)
		}
		if there && (!slices.Equal(rec.Sessions, g.Sessions) || rec.TokenHash != hashToken(g.Token) || (rec.GoneAt != nil) != g.Ended) {
			rt.Fatalf("%s is on file as %+v; want %+v", id, rec, g)
		}
	}
	slices.Sort(h.freed) // what falls due at once comes in any order
	slices.Sort(h.told)
	if diff := cmp.Diff(h.told, h.freed); diff != "" {
		rt.Fatalf("freed (-want +got):\n%s", diff)
	}
}

// Random hellos, losses, goodbyes, times, notes, full disks and restarts give what the model says.
func TestC1_ClientsModel(t *testing.T) {
	root, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		d, err := state.Open(rt.Context(), filepath.Join(root, fmt.Sprint(n)))
		if err != nil {
			rt.Fatal(err)
		}
		h := &house{club: clubIn(rt, d, newHandClock()), guests: map[string]*guest{}}
		defer func() { h.registry.close(); _ = os.RemoveAll(d.Path()) }()
		ids := []string{"a", "b"}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "id")
			session := rapid.SampledFrom([]string{"s-1", "s-2"}).Draw(rt, "session")
			switch rapid.SampledFrom([]string{"hello", "hello", "hello", "lose", "lose", "goodbye", "pass", "pass", "note", "note", "forget", "full", "restart"}).Draw(rt, "op") {
			case "hello":
				h.hello(rt, id)
			case "lose":
				h.lose(rt, id)
			case "goodbye":
				h.goodbyes(rt, id)
			case "pass":
				step := rapid.SampledFrom([]time.Duration{1, time.Second - 1, time.Second, 2 * time.Second, 88 * time.Second, 90*time.Second - 1}).Draw(rt, "time")
				h.clock.advance(step)
				h.pass(h.clock.Now())
			case "note":
				h.noting(rt, id, session, true)
			case "forget":
				h.noting(rt, id, session, false)
			case "full":
				h.fail = map[bool]error{true: nil, false: state.ErrFull}[h.fail != nil]
			case "restart":
				h.again()
			}
			h.agrees(rt, ids)
		}
	})
}
