package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
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
	ID     string `arg:"" help:"The run, or a session: all its runs."`
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
	l := &logger{a: a, d: d, v: v, folder: folder, id: e.ID, session: e.Session, since: v.Since}
	l.talk.spoken = e.Provider != command.Name
	l.all = strings.HasPrefix(v.ID, "s-") && session.Generated(v.ID)
	if v.Tail >= 0 {
		if err := l.seek(v.Tail); err != nil {
			return err
		}
	}
	defer l.breakLine()
	return l.run()
}

// logger prints the journal of one run, or of a session.
type logger struct {
	a       *app
	d       *state.Dir
	v       *logsVerb
	folder  string // of the run; of a session, of its newest
	id      string
	session string
	all     bool   // of the session's runs, and not of this one alone
	since   uint64 // only events behind this one
	from    place  // with --tail: where to begin
	talk    talk
	midline bool // what an agent said has not ended its line
	reader  *journal.Reader
	alone   time.Time // since when nobody supervises a run that has ended
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
	var why error
	if l.v.Follow {
		e, err := l.newest()
		if err != nil || session.Phase(e.Phase) != session.Ended {
			return false, err
		}
		if !settled(e) {
			if !l.forsaken() {
				return false, nil
			}
			why = untaken(e)
		}
	}
	for {
		more, err := l.pump()
		if err != nil {
			return false, err
		}
		if !more {
			return true, why
		}
	}
}

// newest is the run whose end is the end of what is followed.
func (l *logger) newest() (api.Execution, error) {
	e, err := record.View(l.d, l.folder)
	if err != nil || !l.all || session.Phase(e.Phase) != session.Ended {
		return e, err
	}
	if l.folder, err = record.Find(l.d, l.session); err != nil {
		return e, err
	}
	return record.View(l.d, l.folder)
}

// forsaken reports whether for long nobody was there to take in the end of a run that is over. Until it is taken in,
// output may be missing in the journal.
func (l *logger) forsaken() bool {
	if l.alone.IsZero() || serving(l.a.ctx, l.d) {
		l.alone = time.Now()
	}
	if time.Since(l.alone) <= reachLimit {
		return false
	}
	l.a.say("nobody supervises %s: what it said last may be missing", l.id)
	return true
}

func (l *logger) pump() (bool, error) {
	return l.read(l.show)
}

// read has each event of the run that is there and was not read yet, and reports whether there was anything.
func (l *logger) read(each func(journal.Event) error) (bool, error) {
	if l.reader == nil {
		if err := l.open(); l.reader == nil {
			return false, err
		}
	}
	events, err := l.reader.Next()
	for _, e := range events {
		if e.Execution != l.id && !l.all {
			continue
		}
		if err := each(e); err != nil {
			return false, err
		}
	}
	return len(events) > 0, err
}

// open opens the journal, behind what is of no interest, once there is one.
func (l *logger) open() error {
	if l.all {
		l.reader = journal.NewReader(l.d.Path(record.JournalDir(l.session)), l.since)
		return nil
	}
	st, err := record.StatusOf(l.d, l.folder)
	if err != nil || st.Session == "" {
		return ignoreAbsent(err)
	}
	since := l.since
	if len(st.Attempts) == 0 {
		since = max(since, st.Since)
	}
	l.reader = journal.NewReader(l.d.Path(record.JournalDir(st.Session)), since)
	return nil
}

func (l *logger) show(e journal.Event) error {
	if l.v.JSON {
		l.a.event(e)
		return nil
	}
	b, _, err := spoken(e)
	if err != nil {
		return err
	}
	if l.talk.turns(e) {
		l.breakLine()
		l.from.ended(e.Type)
	}
	b = l.from.cut(e, b)
	if l.talk.spoken && e.Type == "agent_message_chunk" && len(b) > 0 {
		l.midline = b[len(b)-1] != '\n'
	}
	return l.a.write(e.Type, b, l.a.stdout)
}

// breakLine ends the line of what an agent said, before it says something else. A command's bytes stay as they are.
func (l *logger) breakLine() {
	if l.midline {
		l.midline = false
		fmt.Fprintln(l.a.stdout)
	}
}

// talk tells the messages of an agent apart.
type talk struct {
	spoken  bool   // to the agent: what a command writes is no message
	message string // the last one that was heard, of which run and attempt
}

// turns reports whether an event begins another message than the one before.
func (t *talk) turns(e journal.Event) bool {
	var c struct{ MessageID string }
	if !t.spoken || e.Type != "agent_message_chunk" || json.Unmarshal(e.Data, &c) != nil {
		return false
	}
	was := t.message
	t.message = strings.Join([]string{e.Execution, e.Turn, c.MessageID}, "\n")
	return was != t.message
}
