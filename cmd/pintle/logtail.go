package main

import (
	"bytes"

	"github.com/pintle/pintle/state/journal"
)

// place is where in a journal a line begins, or, with JSON, an event.
type place struct {
	seq  uint64
	at   int    // in the event's output
	torn string // the type of events that were within a line then, which began before: its rest is not told
	talk talk   // what was heard before the event
}

// lines finds the places of the last n lines. A journal is read twice rather than kept: it may be long, and a line
// too. The lines of both streams count, in the order in which they began.
type lines struct {
	n      int
	places []place
	within map[string]bool // the types of events whose last line has no end yet
	talk   talk
}

func (t *lines) add(p place) {
	t.places = append(t.places, p)
	if len(t.places)/2 > t.n { // so that each is moved but once
		t.places = append(t.places[:0], t.places[len(t.places)-t.n:]...)
	}
}

// output counts the lines that begin in an event.
func (t *lines) output(e journal.Event, b []byte) {
	before := t.talk
	if t.talk.turns(e) {
		t.within[e.Type] = false
	}
	for at := 0; at < len(b); {
		if !t.within[e.Type] {
			t.add(place{e.Seq, at, t.torn(e.Type), before})
		}
		end := bytes.IndexByte(b[at:], '\n')
		if t.within[e.Type] = end < 0; end < 0 {
			return
		}
		at += end + 1
	}
}

// torn is the other type of events, if its last line has no end yet.
func (t *lines) torn(kind string) string {
	for other, within := range t.within {
		if within && other != kind {
			return other
		}
	}
	return ""
}

// first is the place of the first of the last n lines, if there is any.
func (t *lines) first() (place, bool) {
	if n := min(t.n, len(t.places)); n > 0 {
		return t.places[len(t.places)-n], true
	}
	return place{}, false
}

// seek finds where the last n lines of what is there by now begin, or events with JSON, so that only they are told
// and, with -f, what comes.
func (l *logger) seek(n int) error {
	t, seen := &lines{n: n, within: map[string]bool{}, talk: l.talk}, l.since
	for {
		more, err := l.read(func(e journal.Event) error {
			seen = e.Seq
			if l.v.JSON {
				t.add(place{seq: e.Seq})
				return nil
			}
			b, _, err := spoken(e)
			t.output(e, b)
			return err
		})
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if l.reader != nil {
		l.reader.Close()
		l.reader = nil
	}
	first, found := t.first()
	switch {
	case found:
		l.from, l.since, l.talk = first, first.seq-1, first.talk
	case n == 0:
		l.since = seen
	}
	return nil
}

// ended is that a line of these events has ended without a newline.
func (p *place) ended(kind string) {
	if p.torn == kind {
		p.torn = ""
	}
}

// cut leaves out of an event's output what is in front of the place. Events come in order.
func (p *place) cut(e journal.Event, b []byte) []byte {
	switch {
	case e.Seq == p.seq:
		return b[p.at:]
	case e.Type == p.torn:
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return nil
		}
		p.torn = ""
		return b[end+1:]
	}
	return b
}
