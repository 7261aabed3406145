package testscripts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// page is a page of a session's history.
func (d *driver) page(h api.History) record.Rows {
	d.s.t.Helper()
	return call[record.Rows](d, api.MethodSessHistory, h)
}

// A history of some hundred rows is read in pages from either end: each row once, in order, in pages of 40 or of as many as
// are asked for, 200 at most, and no more than so many bytes.
func TestR10_Pages(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	for turn := range 4 {
		steps := make([]string, 60)
		for i := range steps {
			steps[i] = fmt.Sprintf("tool %d-%d", turn, i)
		}
		a.send(sess.ID, strings.Join(steps, "; ")+"; say "+strings.Repeat("x", 3000))
	}
	const rows = 4 * (1 + 60 + 1 + 1)
	for _, c := range []struct{ limit, want int }{{0, 40}, {7, 7}, {200, 200}, {1000, 200}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			forward, backward := a.pages(sess.ID, c.limit, c.want, rows)
			if len(forward) != rows || !slices.EqualFunc(forward, backward, sameRow) {
				t.Errorf("%d rows forward, %d backward, want %d", len(forward), len(backward), rows)
			}
			for i := range forward[1:] {
				if forward[i].Seq >= forward[i+1].Seq {
					t.Errorf("row %d at %d is behind that at %d", i, forward[i].Seq, forward[i+1].Seq)
				}
			}
		})
	}
	tail := a.page(api.History{Session: sess.ID, Tail: true})
	if len(tail.Rows) != 40 || !tail.More || tail.Rows[39].Type != "turn_ended" {
		t.Errorf("the tail has %d rows, %v", len(tail.Rows), tail.More)
	}
	small := a.page(api.History{Session: sess.ID, Limit: 200, Bytes: 4 << 10})
	if size := len(must(json.Marshal(small.Rows))); len(small.Rows) == 0 || size > 4<<10 || !small.More {
		t.Errorf("%d rows of %d bytes", len(small.Rows), size)
	}
	one := uint64(1)
	a.refused(api.CodeParams, api.MethodSessHistory, api.History{Session: sess.ID, Before: &one, After: &one})
	a.refused(api.CodeParams, api.MethodSessHistory, api.History{Session: sess.ID, Tail: true, After: &one})
	a.detach(sess.ID)
	s.quiet()
}

func sameRow(a, b record.Row) bool {
	return a.Seq == b.Seq && a.Last == b.Last && a.Type == b.Type && string(a.Data) == string(b.Data)
}

// pages reads a history from its beginning and from its end.
func (d *driver) pages(id string, limit, want, most int) (forward, backward []record.Row) {
	d.s.t.Helper()
	zero := uint64(0)
	for p := d.page(api.History{Session: id, After: &zero, Limit: limit}); ; p = d.page(api.History{Session: id, After: &p.Last, Limit: limit}) {
		if forward = append(forward, p.Rows...); p.More && len(p.Rows) != want {
			d.s.t.Errorf("a page of %d rows with more behind it, want %d", len(p.Rows), want)
		}
		if !p.More || len(forward) > most {
			break
		}
	}
	for p := d.page(api.History{Session: id, Limit: limit}); ; p = d.page(api.History{Session: id, Before: &p.First, Limit: limit}) {
		if backward = append(slices.Clone(p.Rows), backward...); p.More && len(p.Rows) != want {
			d.s.t.Errorf("a page of %d rows with more before it, want %d", len(p.Rows), want)
		}
		if !p.More || len(backward) > most {
			break
		}
	}
	return forward, backward
}

// A history is there without anything being started for it, whoever has died: the session's supervisor, its agent, or all.
func TestR4_HistoryStartsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.openAs("on-demand")
	a.send(sess.ID, "say one")
	before := a.rows(sess.ID)
	s.slay(a.pid(sess.ID))
	a.owned(sess.ID, "free")
	for _, ends := range []func(){a.again, func() { s.verb("supervise", "stop"); a.back() }} {
		ends()
		if after := a.rows(sess.ID); !slices.EqualFunc(before, after, sameRow) || len(after) != 3 {
			t.Errorf("it was %+v and is %+v", before, after)
		}
		a.get(sess.ID)
		call[[]api.Session](a, api.MethodSessList, api.List{})
		call[api.Subscribed](a, api.MethodSessSubscribe, api.Subscribe{Session: sess.ID, After: new(uint64)})
		s.ticks()
		if now := a.get(sess.ID); s.lines("launches") != 1 || now.Ownership.State != "free" {
			t.Errorf("%d processes; it is %+v", s.lines("launches"), now)
		}
	}
	a.detach(sess.ID)
	s.quiet()
}
