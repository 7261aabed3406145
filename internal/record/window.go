package record

import "slices"

// window are the rows of a page: the oldest behind a cursor (onward), or the newest before it, if there is one (bounded).
type window struct {
	limit, bytes    int
	onward, bounded bool
	cursor          uint64
	rows            []*entry
	over            bool // there are rows that are in the direction of the page and not in it
}

// past reports whether nothing that begins with seq or later belongs to the page.
func (w *window) past(seq uint64) bool {
	if w.onward {
		return w.over
	}
	return w.bounded && seq >= w.cursor
}

// keep takes a row that begins, if it is of the page. Both ways no more is held than a page, a row and what its rows grow by.
func (w *window) keep(row *entry) {
	switch {
	case w.onward && row.Seq <= w.cursor, w.past(row.Seq):
		return
	case w.onward && (len(w.rows) == w.limit || weight(w.rows) > w.bytes):
		w.over = true
		return
	}
	row.kept = true
	w.rows = append(w.rows, row)
	for !w.onward && (len(w.rows) > w.limit || weight(w.rows[1:]) > w.bytes) {
		w.rows[0].drop()
		w.rows[0], w.rows, w.over = nil, w.rows[1:], true
	}
}

func weight(rows []*entry) (sum int) {
	for _, row := range rows {
		sum += row.weight
	}
	return sum
}

// page renders as many rows as fit, and one at least.
func (w *window) page(upTo uint64) Rows {
	p := Rows{Rows: []Row{}, First: w.cursor, Last: w.cursor, UpTo: upTo, More: w.over}
	switch {
	case w.onward:
		p.First++
	case w.bounded && w.cursor > 0:
		p.Last--
	}
	if !w.onward {
		slices.Reverse(w.rows)
	}
	left := w.bytes
	for _, e := range w.rows {
		row, size := e.render(w.bytes)
		if left -= size; left < 0 && len(p.Rows) > 0 {
			p.More = true
			break
		}
		p.Rows = append(p.Rows, row)
	}
	if !w.onward {
		slices.Reverse(p.Rows)
	}
	if n := len(p.Rows); n > 0 {
		p.First, p.Last = p.Rows[0].Seq, p.Rows[n-1].Seq
	}
	return p
}
