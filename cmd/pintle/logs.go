package main

import (
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
	l := &logger{a: a, d: d, v: v, folder: folder, id: e.ID, since: v.Since}
	if v.Tail >= 0 {
		if err := l.seek(v.Tail); err != nil {
			return err
		}
	}
	return l.run()
}

// logger prints the journal of one run.
type logger struct {
	a      *app
	d      *state.Dir
	v      *logsVerb
	folder string
	id     string
	since  uint64 // only events behind this one
	from   place  // with --tail: where to begin
	reader *journal.Reader
	alone  time.Time // since when nobody supervises a run that has ended
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
			return true, nil
		}
	}
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
	return l.read(l.show)
}

// read has each event of the run that is there and was not read yet, and reports whether there was anything.
func (l *logger) read(each func(journal.Event) error) (bool, error) {
	if l.reader == nil {
		e, err := record.View(l.d, l.folder)
		if err != nil || e.Session == "" {
			return false, err
		}
		l.reader = journal.NewReader(l.d.Path(record.JournalDir(e.Session)), l.since)
	}
	events, err := l.reader.Next()
	for _, e := range events {
		if e.Execution != l.id {
			continue
		}
		if err := each(e); err != nil {
			return false, err
		}
	}
	return len(events) > 0, err
}

func (l *logger) show(e journal.Event) error {
	if l.v.JSON {
		l.a.event(e)
		return nil
	}
	b, err := spoken(e)
	if err != nil {
		return err
	}
	return l.a.write(e.Type, l.from.cut(e, b), l.a.stdout)
}
