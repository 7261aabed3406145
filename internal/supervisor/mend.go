package supervisor

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
)

// What becomes of a session whose runtime has exited is decided once, in the write that notes the exit: whether we asked for
// that, whether a client holds the session, and what its policy says (R1, R2, R3). The mender then has it opened again when
// that is due, and only from what the record says, so that a death in between changes nothing.

// ending is how a runtime came to its end.
type ending struct {
	runtime string
	asked   bool
	why     string
	delay   time.Duration // from a failure to the next opening, but for the first
	most    int           // openings in a row
}

// note notes the end of a runtime in its session's record, once.
func (e ending) note(sess *record.Session, leased bool, now time.Time) {
	if sess.Exited == e.runtime {
		return
	}
	sess.Exited = e.runtime
	sess.Fence++
	sess.Restart = sess.Restart.Exited(session.Exit{
		Policy: sess.Policy, Asked: e.asked, Leased: leased, Cause: e.why, At: now, Delay: e.delay, Most: e.most,
	})
}

// ended is how a runtime of a session came to its end.
func (s *Supervisor) endingOf(runtime string, asked bool, why string) ending {
	r := s.o.Config.Recovery
	return ending{runtime: runtime, asked: asked, why: why, delay: time.Duration(r.Delay), most: r.Tries}
}

// ending is how the run's process ended. What had its word on the turn, and would not have been kept, was closed by us.
func (r *run) ending() ending {
	about, c := r.rt.about(), r.st.Cancel
	told := c != nil && (c.DispatchedAt != nil || !r.parted) && (!r.opens() || c.Action != "start") || r.s.isStopping()
	closed := about.End != nil && !r.opens() && !r.warms()
	if r.said != nil && r.said.Cause != nil && r.said.Cause.Code == needsEnv {
		told = true // nothing starts it but a message that brings it
	}
	why := "its agent left"
	if r.said != nil && r.said.Cause != nil {
		why = r.said.Cause.Message
	}
	return r.s.endingOf(r.st.RuntimeID, told || closed, why)
}

// tellRestart tells what follows from an exit. It is on record already: what cannot be told is not told.
func (r *run) tellRestart(why string) {
	e := event("recovery_scheduled", map[string]any{"at": r.dueAt, "cause": map[string]string{"message": why}})
	switch {
	case r.park != nil:
		e = event("session_parked", map[string]any{"code": r.park.Code, "message": r.park.Cause, "next": "pintle recover " + r.st.Session})
	case r.dueAt == nil:
		return
	}
	if err := r.rt.note(true, e); err != nil {
		r.s.log.Printf("session %s: %v", r.st.Session, err)
	}
}

// over reports whether the session's record is to note an end of the run's: a process of it has exited, or could not be had
// for an opening.
func (r *run) over() bool {
	return r.parted || r.opens() && r.said != nil && r.said.Outcome != session.Completed
}

// mend sees to it that a session whose runtime is due is opened, by one goroutine a session.
func (s *Supervisor) mend(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mending[id] || s.stopping {
		return
	}
	s.mending[id] = true
	s.menders.Add(1)
	s.work.Go(func() {
		defer s.menders.Done()
		s.mendWhenDue(id)
		s.mu.Lock()
		delete(s.mending, id)
		s.mu.Unlock()
	})
}

// mendWhenDue waits for the time of the next opening, and gives the order for it.
func (s *Supervisor) mendWhenDue(id string) {
	for s.ctx.Err() == nil && !s.isStopping() && s.leased(id) {
		sess, err := state.Read[record.Session](s.dir, record.SessionFile(id))
		if err != nil || sess.ArchivedAt != nil || sess.Restart.NextAt == nil {
			return
		}
		if now := time.Now(); !sess.Restart.Due(now) {
			s.pause(min(sess.Restart.NextAt.Sub(now), period))
			continue
		}
		done, err := s.reopen(s.ctx, sess)
		if err == nil && done {
			return
		}
		if err != nil {
			s.log.Printf("session %s: open it again: %v", id, err)
		}
		s.pause(retryDelay)
	}
}

// reopen orders the next opening, unless an execution is there that starts the process itself.
func (s *Supervisor) reopen(ctx context.Context, sess record.Session) (done bool, err error) {
	d, release := s.desk(sess.ID)
	defer release()
	goesOn, err := s.running(sess.ID)
	if err != nil || goesOn != "" {
		return err == nil, err
	}
	number := 0
	err = d.change(ctx, func(r *record.Session) error {
		if len(r.Queue) > len(sess.Queue) || r.Restart.NextAt == nil {
			return nil // somebody came since we looked, and starts it
		}
		r.Openings++
		number = r.Openings
		r.Enqueue(record.Turn{Folder: session.Folder(record.Chores, openingKey(sess.ID, number)), At: time.Now().UTC()}, s.vacant)
		return nil
	})
	if err != nil || number == 0 {
		return err == nil, err
	}
	crash.At("supervisor.reopening")
	_, err = s.openSession(ctx, sess, number)
	return err == nil, err
}
