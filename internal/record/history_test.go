package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// told is an event of turn t1 of execution k, with data as JSON.
func told(kind, data string) journal.Event {
	return journal.Event{Session: "s-1", Execution: "k", Turn: "t1", Fence: 3, Type: kind, Data: json.RawMessage(data)}
}

func said(kind, text, message string) journal.Event {
	return told(kind, string(session.Said([]byte(text), message)))
}

func of(execution, turn string, e journal.Event) journal.Event {
	e.Execution, e.Turn = execution, turn
	return e
}

// journalled is a state directory whose session s-1 has these events, numbered from 1.
func journalled(t testing.TB, events ...journal.Event) *state.Dir {
	t.Helper()
	d, err := state.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, d, events...)
	return d
}

func appendTo(t testing.TB, d *state.Dir, events ...journal.Event) {
	t.Helper()
	dir := d.Path(JournalDir("s-1"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w, _, err := journal.Open(dir, 0, func() time.Time { return time.Unix(1e9, 0).UTC() })
	for i := range events {
		if err == nil {
			_, err = w.Append(events[i:i+1], journal.Commit{}, false)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func history(t testing.TB, d *state.Dir, p Page) Rows {
	t.Helper()
	rows, err := History(d, "s-1", p)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// lines are rows as short as can be: first, last, type and data.
func lines(rows []Row) (all []string) {
	for _, r := range rows {
		line := fmt.Sprintf("%d-%d %s ", r.Seq, r.Last, r.Type)
		if text, id, err := session.Heard(r.Data); err == nil && strings.HasSuffix(r.Type, "_chunk") {
			line += id + ":" + string(text)
		} else {
			line += string(r.Data)
		}
		if r.Cut {
			line += " cut"
		}
		all = append(all, line)
	}
	return all
}

func TestR10_RowsAreWhatAPersonReads(t *testing.T) {
	d := journalled(t,
		said("user_message_chunk", "do ", "u1"), said("user_message_chunk", "it", "u1"),
		told("turn_started", `{}`),
		said("agent_thought_chunk", "hm", "m1"),
		said("agent_message_chunk", "I ", "m1"), told("usage_update", `{}`), said("agent_message_chunk", "do", "m1"), said("agent_message_chunk", "!", "m2"),
		told("tool_call", `{"toolCallId":"c1","status":"in_progress","title":"ls"}`),
		told("tool_call", `{"toolCallId":"c2","status":"in_progress","title":"cat"}`),
		said("agent_message_chunk", "and ", "m3"),
		told("tool_call_update", `{"toolCallId":"c1","status":"completed","rawOutput":{"exitCode":0}}`),
		said("agent_message_chunk", "on", "m3"),
		told("tool_call_update", `{"toolCallId":"c9","status":"failed"}`),
		told("plan", `{"entries":[]}`),
		told("agent_notice", `{"message":"low"}`),
		told("output_lost", `{"bytes":7}`),
		told("tool_call_update", `{"toolCallId":"c9","late":1}`),
		told("turn_ended", `{"outcome":"completed"}`),
		of("k2", "t1", said("user_message_chunk", "more", "u1")),
		of("k2", "t1", told("turn_started", `{}`)),
		of("k2", "t1", told("tool_call_update", `{"toolCallId":"c2","status":"completed"}`)),
	)
	want := []string{
		`1-2 user_message_chunk u1:do it`,
		`4-4 agent_thought_chunk m1:hm`,
		`5-7 agent_message_chunk m1:I do`,
		`8-8 agent_message_chunk m2:!`,
		`9-12 tool_call {"rawOutput":{"exitCode":0},"status":"completed","title":"ls","toolCallId":"c1"}`,
		`10-10 tool_call {"toolCallId":"c2","status":"in_progress","title":"cat"}`,
		`11-13 agent_message_chunk m3:and on`,
		`14-18 tool_call_update {"late":1,"status":"failed","toolCallId":"c9"}`,
		`15-15 plan {"entries":[]}`,
		`16-16 agent_notice {"message":"low"}`,
		`17-17 output_lost {"bytes":7}`,
		`19-19 turn_ended {"outcome":"completed"}`,
		`20-20 user_message_chunk u1:more`,
		`22-22 tool_call_update {"toolCallId":"c2","status":"completed"}`,
	}
	got := history(t, d, Page{})
	if diff := cmp.Diff(want, lines(got.Rows)); diff != "" {
		t.Error(diff)
	}
	if got.More || got.First != 1 || got.Last != 22 || got.UpTo != 22 {
		t.Errorf("more %v, first %d, last %d, up to %d", got.More, got.First, got.Last, got.UpTo)
	}
	row := Row{
		Seq: 20, Last: 20, Time: time.Unix(1e9, 0).UTC(), Execution: "k2", Turn: "t1", Fence: 3, Type: "user_message_chunk",
		Data: json.RawMessage(`{"content":{"type":"text","text":"more"},"messageId":"u1"}`),
	}
	if diff := cmp.Diff(row, got.Rows[12]); diff != "" {
		t.Error(diff)
	}
}

// Whatever comes and goes around turns, and whatever processes do, is no row.
func TestR3_HistoryHasNoLifecycle(t *testing.T) {
	var events []journal.Event
	for _, kind := range []string{
		"runtime_started", "runtime_reused", "runtime_exited", "runtime_lost", "lease_changed", "session_opening", "session_opened", "message_ended", "session_closed",
		"permission_requested", "permission_resolved", "receipt", "recovery_scheduled", "message_stored", "message_handed_over", "usage_update",
		"turn_started", "cancel_dispatched", "conversation_started", "conversation_replaced", "archived", "stderr", "of a later version",
	} {
		events = append(events, told(kind, `{"messageId":"m","toolCallId":"c","content":{"type":"text","text":"x"}}`))
	}
	d := journalled(t, events...)
	for name, p := range map[string]Page{"tail": {Tail: true}, "before": {Before: new(uint64(99))}, "after": {After: new(uint64(0))}} {
		got := history(t, d, p)
		if len(got.Rows) > 0 || got.More || got.Rows == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	appendTo(t, d, told("turn_ended", `{}`), told("runtime_exited", `{}`), told("lease_changed", `{}`))
	if got := history(t, d, Page{}); len(got.Rows) != 1 || got.Rows[0].Type != "turn_ended" || int(got.UpTo) != len(events)+3 {
		t.Errorf("%+v", got)
	}
}

// A message goes on over what is no row, and over a part of a message that is none.
func TestR3_LifecycleCutsNoMessage(t *testing.T) {
	d := journalled(t, said("agent_message_chunk", "a", ""), told("lease_changed", `{}`), of("", "", told("receipt", `{}`)), said("agent_message_chunk", "b", ""),
		told("agent_message_chunk", `"odd"`), said("agent_message_chunk", "", ""))
	want := []string{"1-4 agent_message_chunk :ab", `5-5 agent_message_chunk "odd"`, "6-6 agent_message_chunk :"}
	if diff := cmp.Diff(want, lines(history(t, d, Page{}).Rows)); diff != "" {
		t.Error(diff)
	}
}

// An agent that is asked once more says it anew, and may give ids again.
func TestR10_ATryOfATurnIsPutTogetherByItself(t *testing.T) {
	try := []journal.Event{told("turn_started", `{}`), said("agent_message_chunk", "a", "m"), told("tool_call", `{"toolCallId":"c"}`), said("agent_message_chunk", "b", "m")}
	late := []journal.Event{told("tool_call_update", `{"toolCallId":"c","status":"failed"}`), told("turn_started", `{}`), told("tool_call_update", `{"toolCallId":"c"}`)}
	d := journalled(t, slices.Concat(try, try, late)...)
	want := []string{
		"2-2 agent_message_chunk m:a", `3-3 tool_call {"toolCallId":"c"}`, "4-4 agent_message_chunk m:b",
		"6-6 agent_message_chunk m:a", `7-9 tool_call {"status":"failed","toolCallId":"c"}`, "8-8 agent_message_chunk m:b",
		`11-11 tool_call_update {"toolCallId":"c"}`,
	}
	if diff := cmp.Diff(want, lines(history(t, d, Page{}).Rows)); diff != "" {
		t.Error(diff)
	}
}

// What a supervisor left in the journal is read by whoever comes, without one: a torn tail is none of it.
func TestR4_HistoryIsReadFromTheFilesAlone(t *testing.T) {
	d := journalled(t, told("turn_started", `{}`), said("agent_message_chunk", "here", "m"), told("turn_ended", `{}`))
	path := d.Path(JournalDir("s-1"), "00000000000000000001.jsonl")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, data[:len(data)/2]...), 0o400)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2-2 agent_message_chunk m:here", "3-3 turn_ended {}"}
	for range 2 {
		if diff := cmp.Diff(want, lines(history(t, d, Page{}).Rows)); diff != "" {
			t.Error(diff)
		}
	}
	if got, err := History(d, "s-none", Page{}); err != nil || len(got.Rows) > 0 || got.More {
		t.Errorf("of no journal: %+v, %v", got, err)
	}
}

func TestR10_CursorsMeet(t *testing.T) {
	d := journalled(t, told("turn_started", `{}`), told("tool_call", `{"toolCallId":"c"}`),
		said("agent_message_chunk", "a", "m"), said("agent_message_chunk", "b", "m"), told("plan", `{}`), told("tool_call_update", `{"toolCallId":"c","status":"failed"}`))
	whole := lines(history(t, d, Page{}).Rows)
	for at := range uint64(9) {
		before, after := history(t, d, Page{Before: new(at + 1)}), history(t, d, Page{After: new(at)})
		if diff := cmp.Diff(whole, append(lines(before.Rows), lines(after.Rows)...)); diff != "" {
			t.Errorf("at %d: %s", at, diff)
		}
		if len(before.Rows) == 0 && before.Last != at || len(after.Rows) == 0 && after.First != at+1 {
			t.Errorf("at %d: go on at %d and %d", at, before.Last, after.First)
		}
	}
}

func TestR10_LimitIs40And200AtMost(t *testing.T) {
	events := []journal.Event{told("turn_started", `{}`)}
	for range 300 {
		events = append(events, told("plan", `{}`))
	}
	d := journalled(t, events...)
	for limit, want := range map[int]int{-1: 40, 0: 40, 1: 1, 200: 200, 201: 200, 1 << 40: 200} {
		tail, after := history(t, d, Page{Limit: limit}), history(t, d, Page{After: new(uint64(0)), Limit: limit})
		if len(tail.Rows) != want || !tail.More || tail.Last != 301 || tail.First != uint64(302-want) {
			t.Errorf("limit %d: %d rows from %d to %d, more %v", limit, len(tail.Rows), tail.First, tail.Last, tail.More)
		}
		if len(after.Rows) != want || !after.More || after.First != 2 || after.Last != uint64(want+1) {
			t.Errorf("limit %d onward: %d rows from %d to %d, more %v", limit, len(after.Rows), after.First, after.Last, after.More)
		}
	}
	if _, err := History(d, "s-1", Page{Tail: true, After: new(uint64(0))}); !errors.Is(err, ErrPage) {
		t.Errorf("two at once: %v", err)
	}
}

func TestR10_ARowThatFitsNoPageIsCut(t *testing.T) {
	long := strings.Repeat("é<\x00", 1<<18)
	object := func(text string) string {
		data, _ := json.Marshal(map[string]string{"toolCallId": "c", "status": "completed", "title": "make", "rawOutput": text})
		return string(data)
	}
	d := journalled(t, said("agent_message_chunk", long, "m"), said("agent_message_chunk", "end", "m"), told("tool_call", object(long)), told("tool_call_update", object(long)),
		told("plan", `[`+strings.Repeat(`"x",`, 1<<20)+`1]`), said("agent_message_chunk", strings.Repeat("\xff", 1<<19), "b"), told("turn_ended", `{}`))
	for bytes, most := range map[int]int{0: 1 << 20, 1: 4 << 10, 1 << 30: 3 << 20} {
		var rows []Row
		for more, after := true, uint64(0); more; {
			page := history(t, d, Page{After: &after, Bytes: bytes})
			if answer, err := json.Marshal(page); err != nil || len(answer) > most+100 || len(page.Rows) == 0 {
				t.Fatalf("%d bytes: an answer of %d with %d rows, %v", bytes, len(answer), len(page.Rows), err)
			}
			rows, after, more = append(rows, page.Rows...), page.Last, page.More
		}
		if len(rows) != 5 {
			t.Fatalf("%d bytes: %d rows", bytes, len(rows))
		}
		for _, row := range rows {
			if row.Cut != (row.Type != "turn_ended") {
				t.Errorf("%d bytes: %s is cut: %v", bytes, row.Type, row.Cut)
			}
		}
		for i, of := range map[int]string{0: long, 3: strings.Repeat("\xff", 1<<19)} {
			if text, id, err := session.Heard(rows[i].Data); err != nil || id == "" || len(text) < most/16 || !strings.HasPrefix(of, string(text)) {
				t.Errorf("%d bytes: %d of message %q, %v", bytes, len(text), id, err)
			}
		}
		if !strings.Contains(string(rows[1].Data), `"title":"make"`) {
			t.Errorf("%d bytes: %.100s", bytes, rows[1].Data)
		}
	}
}

func TestR10_AnyPagingIsTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := journalled(t, rapid.SliceOfN(rapid.Custom(anEvent), 1, 60).Draw(rt, "events")...)
		whole := history(t, d, Page{Limit: 200}).Rows
		page := func() Page {
			return Page{Limit: rapid.IntRange(1, 7).Draw(rt, "limit"), Bytes: rapid.SampledFrom([]int{0, bytesLeast}).Draw(rt, "bytes")}
		}
		var forth, back []Row
		for p := page(); ; {
			p.After = new(uint64(0))
			if len(forth) > 0 {
				p.After = new(forth[len(forth)-1].Seq)
			}
			got := history(t, d, p)
			forth = append(forth, got.Rows...)
			if !got.More {
				break
			}
			p = page()
		}
		for p := page(); ; {
			got := history(t, d, p)
			back = append(slices.Clone(got.Rows), back...)
			if !got.More {
				break
			}
			p = page()
			p.Before = new(got.First)
		}
		// Cut are rows by what a page may have: what stands where is what counts here.
		if diff := cmp.Diff(places(whole), places(forth)); diff != "" {
			rt.Errorf("forth: %s", diff)
		}
		if diff := cmp.Diff(places(whole), places(back)); diff != "" {
			rt.Errorf("back: %s", diff)
		}
		if diff := cmp.Diff(byHand(readJournal(t, d)), lines(whole)); diff != "" {
			rt.Errorf("by hand: %s", diff)
		}
	})
}

// places are rows, as whole as they were not cut.
func places(rows []Row) (all []string) {
	for _, r := range rows {
		data, _ := json.Marshal(r)
		if r.Cut || len(data) > bytesLeast-10 {
			data = fmt.Appendf(nil, "%d-%d %s, long", r.Seq, r.Last, r.Type)
		}
		all = append(all, string(data))
	}
	return all
}

func anEvent(t *rapid.T) journal.Event {
	kind := rapid.SampledFrom([]string{
		"agent_message_chunk", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "tool_call_update", "plan",
		"turn_ended", "turn_started", "usage_update", "receipt",
	}).Draw(t, "kind")
	id := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")
	e := told(kind, `{"toolCallId":"`+id+`","at":`+fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "at"))+`}`)
	if strings.HasSuffix(kind, "_chunk") {
		e = said(kind, rapid.SampledFrom([]string{"a", "bc", "", "\xff", strings.Repeat("long ", 500)}).Draw(t, "text"), id)
	}
	return of(rapid.SampledFrom([]string{"k", "k", "k", "other"}).Draw(t, "execution"), "t1", e)
}

func readJournal(t *testing.T, d *state.Dir) []journal.Event {
	events, err := journal.ReadAll(d.Path(JournalDir("s-1")), 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// byHand makes rows in the plainest way: each event looks at those before it.
func byHand(events []journal.Event) []string {
	var rows []Row
	begin := 0 // of the try
	for _, e := range events {
		id := struct{ ToolCallID, MessageID string }{}
		_ = json.Unmarshal(e.Data, &id)
		row := Row{Seq: e.Seq, Last: e.Seq, Execution: e.Execution, Type: e.Type, Data: e.Data}
		same := func(r Row) bool { return r.Execution == e.Execution }
		switch e.Type {
		case "turn_started":
			begin = len(rows)
		case "tool_call_update":
			at := -1
			for i := begin; i < len(rows); i++ {
				if strings.HasPrefix(rows[i].Type, "tool") && same(rows[i]) && strings.Contains(string(rows[i].Data), `"toolCallId":"`+id.ToolCallID+`"`) {
					at = i
				}
			}
			if at < 0 {
				rows = append(rows, row)
				break
			}
			merged := map[string]json.RawMessage{}
			_ = json.Unmarshal(rows[at].Data, &merged)
			_ = json.Unmarshal(e.Data, &merged)
			rows[at].Data, _ = json.Marshal(merged)
			rows[at].Last = e.Seq
		case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
			if n := len(rows) - 1; n >= begin && rows[n].Type == e.Type && same(rows[n]) {
				was, of, _ := session.Heard(rows[n].Data)
				if text, message, _ := session.Heard(e.Data); message == of {
					rows[n].Data, rows[n].Last = session.Said(append(was, text...), of), e.Seq
					break
				}
			}
			rows = append(rows, row)
		case "tool_call", "plan", "turn_ended":
			rows = append(rows, row)
		}
	}
	return lines(rows)
}
