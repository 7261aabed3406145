package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// logsVerb is `pintle logs`.
type logsVerb struct {
	output
	Follow bool   `short:"f" help:"Go on until the run has ended."`
	Since  uint64 `help:"Only events behind this sequence." placeholder:"SEQ"`
	Tail   int    `default:"-1" help:"Only the last lines, or with --json events." placeholder:"N"`
	ID     string `arg:"" help:"The run."`
}

// Run prints what the agent said, from the journal: it needs no supervisor and starts none.
func (v *logsVerb) Run(a *app) error {
	if v.Tail < -1 {
		return usage("--tail cannot be negative")
	}
	e, d, folder, err := a.look(v.ID)
	if err != nil {
		return err
	}
	l := &logger{a: a, d: d, v: v, folder: folder, id: e.ID, out: a.stdout, err: a.stderr}
	if v.Tail >= 0 && !v.JSON {
		l.out, l.err = &lastLines{n: v.Tail, w: a.stdout}, io.Discard
	}
	if err := l.run(); err != nil {
		return err
	}
	if t, ok := l.out.(*lastLines); ok {
		return t.flush()
	}
	return nil
}

// logger prints the journal of one run.
type logger struct {
	a        *app
	d        *state.Dir
	v        *logsVerb
	folder   string
	id       string
	out, err io.Writer
	reader   *journal.Reader
	last     []journal.Event
	alone    time.Time // since when nobody supervises a run that has ended
}

// followEvery is how often a follower that found nothing looks again, at most.
const followEvery = 25 * time.Millisecond

func (l *logger) run() error {
	wait := time.Millisecond
	for {
		more, err := l.pump()
		if err != nil {
			return err
		}
		if more {
			wait = time.Millisecond
			continue
		}
		if done, err := l.done(); err != nil || done {
			return err
		}
		pause(l.a.ctx, wait)
		wait = min(2*wait, followEvery)
	}
}

// done reports whether nothing more will come. What came between the last look at the journal and the
// record's end is looked for once more.
func (l *logger) done() (bool, error) {
	if l.v.Follow {
		e, err := record.View(l.d, l.folder)
		if err != nil || session.Phase(e.Phase) != session.Ended || !l.settled(e) {
			return false, err
		}
	}
	for {
		more, err := l.pump()
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
	}
	for _, e := range l.last {
		l.a.event(e)
	}
	return true, nil
}

// settled reports whether an ended run's output is in the journal: it is once the end is on record, or when
// for long nobody was there to take it in.
func (l *logger) settled(e api.Execution) bool {
	switch {
	case e.EndedAt != nil:
		return true
	case l.alone.IsZero() || serving(l.a.ctx, l.d):
		l.alone = time.Now()
	}
	return time.Since(l.alone) > reachLimit
}

func (l *logger) pump() (bool, error) {
	if l.reader == nil {
		e, err := record.View(l.d, l.folder)
		if err != nil || e.Session == "" {
			return false, err
		}
		l.reader = journal.NewReader(l.d.Path(record.JournalDir(e.Session)), l.v.Since)
	}
	events, err := l.reader.Next()
	for _, e := range events {
		if e.Execution != l.id {
			continue
		}
		if err := l.show(e); err != nil {
			return false, err
		}
	}
	return len(events) > 0, err
}

func (l *logger) show(e journal.Event) error {
	switch {
	case l.v.JSON && l.v.Tail >= 0:
		l.last = append(l.last, e)
		l.last = l.last[max(0, len(l.last)-l.v.Tail):]
	case l.v.JSON:
		l.a.event(e)
	default:
		return l.a.said(e, l.out, true)
	}
	return nil
}

// lastLines keeps the last n lines of what is written.
type lastLines struct {
	n    int
	w    io.Writer
	data []byte
}

func (t *lastLines) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if len(t.data) > 1<<20 {
		t.trim()
	}
	return len(p), nil
}

// trim forgets what lies in front of the last n lines.
func (t *lastLines) trim() {
	at := len(bytes.TrimSuffix(t.data, []byte{'\n'}))
	for range t.n {
		if at = bytes.LastIndexByte(t.data[:at], '\n'); at < 0 {
			return
		}
	}
	if t.n == 0 {
		at = len(t.data) - 1
	}
	t.data = append(t.data[:0], t.data[at+1:]...)
}

func (t *lastLines) flush() error {
	t.trim()
	if _, err := t.w.Write(t.data); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
