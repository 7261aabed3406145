package supervisor

import (
	"cmp"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
)

// ladder ends an agent step by step (K5). Each step is due when the one before had its time.
type ladder struct {
	r        *run
	climbing string    // the action that is being carried out
	over     time.Time // since when the turn has ended
	resting  bool      // it has, and its agent's process is kept
	parted   bool      // or is left to others
	asked    time.Time // since when the agent may have the prompt
	rungs    []rung    // still to be climbed
	due      time.Time
	last     time.Time // the agent's last sign of life
	mute     time.Time // since when its shim does not say that it was started, and is to
	ticking  *time.Timer
}

// rung is one signal and how long it is given.
type rung struct {
	sig   syscall.Signal
	grace time.Duration
}

// killGrace is how long SIGKILL may take until the shim is taken for frozen, and ended too.
const killGrace = 10 * time.Second

func newLadder(r *run) *ladder {
	return &ladder{r: r, last: time.Now(), ticking: time.NewTimer(time.Hour)}
}

// resume goes on where an earlier supervisor, or an earlier step of this one, came with a cancel that is on record:
// what the journal has was begun, and its first step is not repeated but has its time anew. Else nothing was
// signalled yet.
func (l *ladder) resume(c api.Cancel) error {
	m, err := l.r.remember()
	if err != nil || !m.dispatched[c.Action] {
		if err == nil {
			err = l.tell(c)
		}
		return err
	}
	all := l.r.ladderFor(c.Action)
	l.climbing, l.rungs, l.due = c.Action, all[1:], time.Now().Add(all[0].grace)
	return nil
}

func (r *run) ladderFor(action string) []rung {
	d := r.s.o.Config.Deadlines
	end := []rung{{syscall.SIGTERM, time.Duration(d.StopTerm)}, {syscall.SIGKILL, killGrace}, {0, killGrace}}
	habits := r.provider().Habits
	if habits.Deaf {
		end = end[1:]
	}
	spoken := r.spoken()
	switch {
	case action == "close":
		return append([]rung{{endInput, leaving(habits)}}, end...)
	case action != "interrupt" && action != "shutdown" && !r.rt.alone():
		return append([]rung{{askToEnd, time.Duration(d.StopTerm)}}, end...) // the process is others' too, unless that fails
	case action == "interrupt" && spoken:
		return append([]rung{{askToEnd, time.Duration(d.Interrupt)}}, end...)
	case action == "interrupt":
		return append([]rung{{syscall.SIGINT, time.Duration(d.Interrupt)}}, end...)
	}
	return end
}

// Steps that are no signals: an agent that is spoken to is asked to end its turn, and leaves when its input ends.
const (
	askToEnd syscall.Signal = -1
	endInput syscall.Signal = -2
)

// closeGrace is how long an agent may take to leave once its input has ended, if no more is known of it.
const closeGrace = 2 * time.Second

// leaving is how long one with these habits may.
func leaving(h providers.Habits) time.Duration {
	if h.Stays {
		return 0
	}
	return cmp.Or(h.Leaving, closeGrace)
}

func (l *ladder) heard() { l.last = time.Now() }

// timer fires when something may be due.
func (l *ladder) timer() <-chan time.Time {
	next := time.Hour
	if len(l.rungs) > 0 {
		next = time.Until(l.due)
	}
	if d := l.r.spec.Desired.Deadline; d > 0 && l.r.st.Cancel == nil {
		next = min(next, d-proc.BootClock())
	}
	if d := time.Duration(l.r.s.o.Config.Deadlines.Start); l.spoken() && !l.r.rt.about().Ready && d > 0 && l.r.st.Cancel == nil {
		next = min(next, time.Until(l.r.st.StartedAt.Add(d)))
	}
	about := l.r.rt.about()
	if d := l.r.spec.Limits.IdleTimeout; d > 0 && l.r.st.Cancel == nil && about.Open == 0 && len(about.Pending) == 0 {
		next = min(next, time.Until(l.last.Add(d)))
	}
	if d := l.firstEvent(about); d > 0 && l.r.st.Cancel == nil {
		next = min(next, time.Until(l.asked.Add(d)))
	}
	if at := l.r.aloneSince().Add(attendGrace); len(about.Pending) > 0 && time.Until(at) > 0 {
		next = min(next, time.Until(at))
	}
	if !l.over.IsZero() && l.climbing != "close" {
		next = min(next, time.Until(l.over.Add(l.patience())))
	}
	if !l.mute.IsZero() {
		next = min(next, time.Until(l.mute.Add(killGrace)))
	}
	l.ticking.Reset(max(next, time.Millisecond))
	return l.ticking.C
}

// climb dispatches what is newly wanted, and takes the next step of what was dispatched if it is due.
func (l *ladder) climb() error {
	if l.r.st.Runtime == nil {
		return l.unannounced()
	}
	l.mute = time.Time{}
	if want := l.wanted(); want != nil && l.supersedes(want) && l.climbing != "part" {
		if err := l.dispatch(*want); err != nil {
			return err
		}
	}
	if c := l.r.st.Cancel; c != nil && c.DispatchedAt != nil && l.climbing != c.Action && l.climbing != "close" && l.climbing != "part" {
		if err := l.resume(*c); err != nil {
			return err
		}
	}
	if err := l.close(); err != nil {
		return err
	}
	if len(l.rungs) == 0 || time.Now().Before(l.due) {
		return nil
	}
	step := l.rungs[0]
	l.rungs, l.due = l.rungs[1:], time.Now().Add(step.grace)
	return l.r.signal(step.sig)
}

// unannounced is for an agent that is being started: there is nothing to signal yet. A shim that does not say within the time of
// a kill what it has started, when that is to end, is taken for frozen, and ended.
func (l *ladder) unannounced() error {
	switch {
	case l.wanted() == nil:
		l.mute = time.Time{}
	case l.mute.IsZero():
		l.mute = time.Now()
	case time.Since(l.mute) >= killGrace:
		l.mute = time.Now()
		return l.r.signal(0)
	}
	return nil
}

// close has an agent leave whose turn has ended, once it has read what it is still told, or will not.
func (l *ladder) close() error {
	if l.climbing == "close" || l.r.rt.about().End == nil {
		return nil
	}
	if l.over.IsZero() {
		l.over = time.Now()
	}
	if len(l.r.rt.outbox) == 0 && (l.climbing == "" || l.climbing == "interrupt") && l.r.warms() {
		l.resting = true
		return nil
	}
	if parts, err := l.parts(); parts || err != nil {
		return err
	}
	if len(l.r.rt.outbox) == 0 || time.Since(l.over) >= closeGrace {
		l.climbing, l.rungs, l.due = "close", l.r.ladderFor("close"), time.Now()
	}
	return nil
}

// wanted is what should end the agent, in the order of precedence.
func (l *ladder) wanted() *api.Cancel {
	now := time.Now().UTC()
	if want := l.r.unwanted(); want != nil {
		return want
	}
	if d := l.r.spec.Desired.Deadline; d > 0 && proc.BootClock() >= d {
		return &api.Cancel{Action: "deadline", Reason: "run deadline: " + l.r.spec.Limits.Timeout.String(), RequestedAt: now}
	}
	about := l.r.rt.about()
	if rt := l.r.rt; rt != nil && rt.broken != nil {
		return &api.Cancel{Action: "frame", Reason: rt.broken.Error(), RequestedAt: now}
	}
	if d := time.Duration(l.r.s.o.Config.Deadlines.Start); l.spoken() && !about.Ready && d > 0 && time.Since(*l.r.st.StartedAt) >= d {
		return &api.Cancel{Action: "start", Reason: "start deadline: " + d.String(), RequestedAt: now}
	}
	if d := l.firstEvent(about); d > 0 && time.Since(l.asked) >= d {
		return &api.Cancel{Action: "first_event", Reason: "first-event deadline: " + d.String() + troubled(about), RequestedAt: now}
	}
	if d := l.r.spec.Limits.IdleTimeout; d > 0 && about.Open == 0 && len(about.Pending) == 0 && time.Since(l.last) >= d {
		return &api.Cancel{Action: "idle", Reason: "idle deadline: " + d.String() + troubled(about), RequestedAt: now}
	}
	return nil
}

// firstEvent is how long an agent may take to say or do something once it may have the prompt, 0 if it has, or has not
// got it yet (D1).
func (l *ladder) firstEvent(about providers.About) time.Duration {
	if !l.spoken() || about.Prompt == "" || about.Begun || about.End != nil || len(about.Pending) > 0 {
		return 0
	}
	if l.asked.IsZero() {
		l.asked = time.Now()
	}
	return time.Duration(l.r.s.o.Config.Deadlines.FirstEvent)
}

// troubled is what the agent itself has trouble with.
func troubled(about providers.About) string {
	if about.Trouble == "" {
		return ""
	}
	return "; the agent: " + about.Trouble
}

// unwanted is the cancel of somebody who wants the run to end, nil for none.
func (r *run) unwanted() *api.Cancel {
	if c := r.cancelled(); c != nil {
		return c
	}
	if r.needless() {
		return &api.Cancel{Action: "stop", Reason: "nobody holds the session any more", RequestedAt: time.Now().UTC()}
	}
	if r.s.isStopping() {
		return &api.Cancel{Action: "shutdown", Reason: "supervise stop", RequestedAt: time.Now().UTC()}
	}
	return nil
}

// spoken reports whether the agent is one that is spoken to.
func (l *ladder) spoken() bool {
	return l.r.spoken() && l.r.st.StartedAt != nil
}

// supersedes reports whether a wish changes anything: the first stands, but a stop goes over an interrupt.
func (l *ladder) supersedes(want *api.Cancel) bool {
	was := l.r.st.Cancel
	return was == nil || was.DispatchedAt == nil || (was.Action == "interrupt" && want.Action != "interrupt")
}

// dispatch records the cancel, and then begins to climb. What cannot be recorded is not dispatched (K4).
func (l *ladder) dispatch(c api.Cancel) error {
	was := l.r.st.Cancel
	now := time.Now().UTC()
	c.DispatchedAt = &now
	l.r.st.Cancel = &c
	if err := l.r.save(session.Phase(l.r.st.Phase)); err != nil {
		l.r.st.Cancel = was
		return err
	}
	crash.At("supervisor.cancel")
	return l.tell(c)
}

// tell puts the dispatch into the journal, and then the first step is due.
func (l *ladder) tell(c api.Cancel) error {
	err := l.r.rt.note(true, event("cancel_dispatched", map[string]any{"action": c.Action, "reason": c.Reason}))
	if err != nil {
		return err
	}
	l.climbing, l.rungs, l.due = c.Action, l.r.ladderFor(c.Action), time.Now()
	return nil
}
