package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/state"
)

// An opening has the conversation of a session stand without a prompt: when a client creates one, and when its runtime has
// gone and nobody asked for that. It is an execution of pintle's own in the queue of the session, so what holds of those
// holds of it: it is carried out once whoever is killed, its process is adopted, fenced, kept and stopped like any other. It
// is listed nowhere and is no turn.

// opens reports whether the run is one.
func (r *run) opens() bool { return r.spec.Opening != nil }

// needless reports whether it is an opening for nobody: no client holds the session any more, and nothing is behind it that
// needs its process.
func (r *run) needless() bool {
	if !r.opens() || r.held() {
		return false
	}
	sess, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	return err == nil && !slices.ContainsFunc(sess.Queue, func(t record.Turn) bool { return t.Folder != r.folder })
}

// reopens reports whether it is an opening of a session that was open before: not of one that is being made, whose maker comes
// again if he was not answered.
func (r *run) reopens() bool {
	if !r.opens() {
		return false
	}
	sess, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	return err == nil && sess.Conversation+sess.Opened != ""
}

// ours reports whether pintle gave it to itself.
func (r *run) ours() bool { return r.opens() || r.spec.Chore != nil }

// word is the name of an event in the journal: what an opening says is no turn's, and neither is the end of a message that
// was put into another's turn.
func (r *run) word(kind string) string {
	names := map[string]string{}
	switch {
	case r.opens():
		names = map[string]string{"turn_started": "session_opening", "turn_ended": "session_opened"}
	case r.spec.When == whenSteer:
		names = map[string]string{"turn_ended": "message_ended"}
	}
	return cmp.Or(names[kind], kind)
}

// joinOpened gives an opening the session that it is for, whose record was there before.
func (r *run) joinOpened(st *record.Status) error {
	s, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.spec.Opening.Session))
	if err != nil {
		return err
	}
	st.Session, st.Workspace = s.ID, s.Workspace
	return nil
}

// opening is the order of a session's next one.
func (s *Supervisor) opening(sess record.Session, from record.Spec, number int) (record.Spec, error) {
	boot, err := proc.BootID()
	now := time.Now().UTC()
	spec := from
	spec.ID, spec.Controller, spec.CreatedAt = openingKey(sess.ID, number), record.Chores, now
	spec.Payload.Prompt, spec.Payload.Session = "", ""
	spec.Desired = record.Desired{At: now, BootID: boot}
	spec.Opening, spec.Tree, spec.Client, spec.When = &record.Opening{Session: sess.ID, Number: number}, nil, "", ""
	spec.Limits = record.Limits{Warm: from.Limits.Warm, Share: from.Limits.Share}
	spec.Environment.Inherit = true
	return spec, err
}

// openingKey is the key of a session's opening.
func openingKey(session string, number int) string { return fmt.Sprintf("open %s %d", session, number) }

// openSession has a session's conversation stand, and returns the run that sees to that.
func (s *Supervisor) openSession(ctx context.Context, sess record.Session, number int) (*run, error) {
	from, err := s.templateOf(sess)
	if err != nil {
		return nil, err
	}
	spec, err := s.opening(sess, from, number)
	if err != nil {
		return nil, err
	}
	claimed, err := record.Claim(ctx, s.dir, spec, 0, func(*record.Spec) error { return nil })
	if err != nil {
		return nil, err
	}
	return s.ensure(claimed.Folder), nil
}

// templateOf is what the messages of a session are made from: what it was created with, or the newest of its runs.
func (s *Supervisor) templateOf(sess record.Session) (record.Spec, error) {
	if sess.Template != nil {
		return *sess.Template, nil
	}
	for _, folder := range slices.Backward(sess.Runs) {
		spec, err := record.SpecOf(s.dir, folder)
		if err == nil && spec.Opening == nil {
			return spec, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return spec, err
		}
	}
	return record.Spec{}, fmt.Errorf("session %s: no order is left that says how its agent is started: %w", sess.ID, fs.ErrNotExist)
}

// fit reports whether an agent's process may go on after a turn that ended so: its conversation stands.
func fit(about providers.About) bool {
	return about.Ready && !slices.Contains([]string{"transport", "busy", "protocol", "config"}, about.End.Code)
}

// stopped reports whether somebody wants the run's process gone, and not just its turn.
func (r *run) stopped() bool {
	c := r.st.Cancel
	if c == nil {
		c = r.cancelled()
	}
	return r.s.isStopping() || c != nil && c.Action != "interrupt"
}

// settleIn remembers the environment that a session's agent has, for messages that bring none.
func (s *Supervisor) settleIn(session string, env environ.Environment, spoken bool) {
	if !spoken || len(env.Vars) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.homes[session] = env
}

// leaveHome forgets it, unless the session is held, also by a message in its queue, or its agent's process is kept.
func (s *Supervisor) leaveHome(id string) {
	s.mu.Lock()
	_, ok := s.homes[id]
	s.mu.Unlock()
	if !ok || s.awaited(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases[id]) == 0 && s.kept[id] == nil {
		delete(s.homes, id)
	}
}

// awaited reports whether an execution of a session has not ended; the last one that does forgets the environment.
func (s *Supervisor) awaited(id string) bool {
	folder, err := s.running(id)
	return err == nil && folder != ""
}
