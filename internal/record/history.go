package record

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A session's history is its journal as a person would read it: what was said, what tools did, plans, how turns ended,
// and what went wrong. How processes came and went, and what a runtime's owner did, is in the journal alone (R3).
//
// A row is made of one event or of several, and stands where the first of them does. A page has rows that begin before,
// or behind, a sequence, each whole and as it is now, wherever its other events stand. So any sequence is a cursor: a message
// in the midst of which it lies belongs to what is before it, and two pages that meet have every row once. What a row that was
// read has become since is for whoever subscribes behind UpTo.

// Limits of a page. With an envelope around it an answer stays under the 4 MiB of a line.
const (
	rowsDefault, rowsMost               = 40, 200
	bytesDefault, bytesLeast, bytesMost = 1 << 20, 4 << 10, 3 << 20
)

// ErrPage is returned by History for a page that is none: ask for one of Tail, Before and After.
var ErrPage = errors.New("a page is the tail, or before or after a sequence")

// Page is what of a history is asked for: without Before and After the newest rows.
type Page struct {
	Tail   bool    `json:"tail,omitempty"`
	Before *uint64 `json:"before,omitempty"` // rows that begin before it, the newest of them
	After  *uint64 `json:"after,omitempty"`  // rows that begin behind it, the oldest of them
	Limit  int     `json:"limit,omitempty"`  // of rows: 40, if it is 0, and 200 at most
	Bytes  int     `json:"bytes,omitempty"`  // of rows as JSON: 1 MiB, if it is 0; from 4 KiB to 3 MiB
}

// Row is an entry of a history.
type Row struct {
	Seq       uint64          `json:"seq"`  // of its first event
	Last      uint64          `json:"last"` // of its last event
	Time      time.Time       `json:"time"` // of its first event
	Execution string          `json:"execution,omitempty"`
	Turn      string          `json:"turn,omitempty"`
	Fence     int64           `json:"fence,omitempty"`
	Type      string          `json:"type"` // of its first event
	Data      json.RawMessage `json:"data,omitempty"`
	// Cut says that it would not fit a page: a text ends early, or fields of the data are left out. The events have it.
	Cut bool `json:"cut,omitempty"`
}

// Rows is a page, in order.
type Rows struct {
	Rows []Row `json:"rows"`
	// First and Last are where to go on: before First, after Last; also without rows.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// UpTo: the rows are made of the events up to that sequence; of the tail, it is the last event.
	UpTo uint64 `json:"upTo"`
	// More says that there are rows beyond the page, in its direction.
	More bool `json:"more"`
}

// History reads a page of a session's history. It needs no lock, and starts nothing (R4). A session without a journal has
// no rows.
func History(d *state.Dir, session string, p Page) (Rows, error) {
	if given(p.Tail)+given(p.Before != nil)+given(p.After != nil) > 1 {
		return Rows{}, ErrPage
	}
	dir := d.Path(JournalDir(session))
	w := p.window()
	since, err := w.since(dir)
	if err != nil {
		return Rows{}, err
	}
	upTo, err := w.read(journal.NewReader(dir, since))
	return w.page(upTo), err
}

func given(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (p Page) window() *window {
	w := &window{limit: min(p.Limit, rowsMost), bytes: min(p.Bytes, bytesMost)}
	if w.limit <= 0 {
		w.limit = rowsDefault
	}
	if w.bytes <= 0 {
		w.bytes = bytesDefault
	}
	w.bytes = max(w.bytes, bytesLeast)
	if p.After != nil {
		w.onward, w.cursor = true, *p.After
	} else if p.Before != nil {
		w.bounded, w.cursor = true, *p.Before
	}
	return w
}

// since is behind which sequence reading begins: the beginning of a turn, since what rows are is known from there. For
// what is before a cursor, there are more rows than asked for between the two, if there are so many.
func (w *window) since(dir string) (uint64, error) {
	if w.bounded && w.cursor == 0 {
		return 0, nil
	}
	kinds, before, rows := append([]string{turnStarted}, single...), w.cursor, 0
	if w.onward {
		kinds, before, rows = kinds[:1], w.cursor+1, w.limit+1
	}
	for e, err := range journal.Back(dir, before, kinds...) {
		switch {
		case err != nil:
			return 0, err
		case e.Type != turnStarted:
			rows++
		case rows > w.limit:
			return e.Seq - 1, nil
		}
	}
	return 0, nil
}

// read takes in what there is, until no row of the page can change any more.
func (w *window) read(r *journal.Reader) (upTo uint64, err error) {
	defer r.Close()
	g := gathering{window: w}
	for {
		events, err := r.Next()
		if err != nil || len(events) == 0 {
			return upTo, err
		}
		for _, e := range events {
			g.take(e)
			upTo = e.Seq
			if w.past(e.Seq) && g.settled() {
				return upTo, nil
			}
		}
	}
}
