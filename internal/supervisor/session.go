package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// viewSession is a session as it is now. It starts nothing.
func (s *Supervisor) viewSession(id string) (api.Session, error) {
	sess, err := state.Read[record.Session](s.dir, record.SessionFile(id))
	if err != nil {
		return api.Session{}, err
	}
	sess.Leases = s.valid(sess)
	v := SessionOf(s.dir, sess)
	v.LastSeq = max(v.LastSeq, s.lastSequence(id))
	for i, l := range sess.Leases {
		v.Leases[i] = s.leaseOf(l)
	}
	v.Ownership = s.ownership(sess)
	s.tellQueue(&v)
	return v, nil
}

// tellQueue says for what the first in the queue waits, and what helps: the others wait for him.
func (s *Supervisor) tellQueue(v *api.Session) {
	if v.Restart != nil && v.Restart.Parked != "" {
		v.Ownership.Next = v.Next
	}
	for i := range v.Queue {
		e, err := s.look(record.FolderOf(v.Queue[i].Execution))
		if err != nil {
			continue
		}
		v.Queue[i].Phase, v.Queue[i].WaitingFor = e.Phase, e.WaitingFor
		if i == 0 && e.WaitingFor != nil && v.Next == "" {
			v.Next = e.Next
		}
	}
}

// stateOf is whether a message can be given to a session.
func stateOf(sess record.Session) string {
	switch ok, _ := sess.Restart.MayStart(); {
	case sess.ArchivedAt != nil:
		return "archived"
	case !ok:
		return "parked"
	}
	return "ready"
}

// SessionOf is a session as its records tell it, without what only its supervisor knows.
func SessionOf(d *state.Dir, sess record.Session) api.Session {
	v := api.Session{
		ID: sess.ID, State: stateOf(sess), Provider: sess.Provider, Workspace: sess.Workspace, Conversation: sess.Conversation, Fence: sess.Fence,
		Leases: []api.Lease{}, Queue: []api.Queued{}, CreatedAt: sess.CreatedAt, ArchivedAt: sess.ArchivedAt,
	}
	for e, err := range journal.Back(d.Path(record.JournalDir(sess.ID)), 0) {
		if err == nil {
			v.LastSeq = e.Seq
		}
		break
	}
	if w, err := state.Read[record.Workspace](d, record.WorkspaceFile(sess.Workspace)); err == nil {
		v.Cwd = w.Cwd
	} else if sess.Template != nil {
		v.Cwd = sess.Template.Payload.Cwd
	}
	for _, l := range sess.Leases {
		v.Leases = append(v.Leases, api.Lease{Client: l.Client, Mode: string(l.Mode), Since: l.Since})
	}
	for _, t := range sess.Queue {
		if e, err := record.View(d, t.Folder); err == nil && session.Phase(e.Phase) != session.Ended && e.Controller != record.Chores {
			v.Queue = append(v.Queue, api.Queued{Execution: e.ID, Phase: e.Phase, At: t.At})
		}
	}
	if r := sess.Restart; r.FailedAt != nil || r.Parked != nil {
		v.Restart = &api.Restarting{Policy: string(sess.Policy), Count: r.Count, FailedAt: r.FailedAt, NextAt: r.NextAt}
		if _, why := r.MayStart(); why != "" {
			v.Restart.Parked, v.Next = why, "pintle recover "+sess.ID
		}
		if sess.Policy == "" {
			v.Restart.Policy = string(session.OnCrash)
		}
	}
	o, reason := session.Own(FactsOf(d, sess))
	v.Ownership = api.Ownership{State: string(o), Reason: reason, Next: session.Way(o, reason, sess.ID)}
	return v
}

// FactsOf are what the records say of a session's runtime.
func FactsOf(d *state.Dir, sess record.Session) session.Facts {
	var f session.Facts
	for _, rec := range (&Supervisor{dir: d}).runtimesOf(sess.ID) {
		f.Runtimes++
		f.Intent = true
		f.Shim, f.Started = shimOf(d, rec.ID)
		_, err := state.Read[shim.Exit](d, shim.ExitFile(rec.ID))
		f.Exited = f.Exited || err == nil
		t, err := (&Supervisor{dir: d}).tenureOf(rec.ID, sess.ID)
		f.Closing = f.Closing || err == nil && t.Closing != ""
		if errors.Is(err, errUnsure) && f.Shim == session.ShimAlive {
			f.Shim = session.ShimUnreadable // nobody can go on with it
		}
	}
	f.Started = f.Started && !opening(d, sess)
	return f
}

// opening reports whether a session's conversation is being opened, so that its runtime is not there for messages yet.
func opening(d *state.Dir, sess record.Session) bool {
	return slices.ContainsFunc(sess.Queue, func(t record.Turn) bool {
		spec, err := record.SpecOf(d, t.Folder)
		if err != nil || spec.Opening == nil {
			return false
		}
		st, err := record.StatusOf(d, t.Folder)
		return err == nil && session.Phase(st.Phase) != session.Ended
	})
}

// shimOf is what is found of a runtime's shim. Whether it answers is not asked.
func shimOf(d *state.Dir, runtime string) (s session.Shim, started bool) {
	agent, err := state.Read[shim.Agent](d, shim.AgentFile(runtime))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return session.ShimUnreadable, false
	}
	started = agent.Agent != nil
	unlock, lockErr := shim.SeenDead(d, runtime)
	switch {
	case errors.Is(lockErr, state.ErrLocked):
		return session.ShimAlive, started
	case lockErr != nil:
		return session.ShimNone, started
	}
	unlock() // a shim that is coming waits for it
	if errors.Is(err, fs.ErrNotExist) {
		return session.ShimNone, started
	}
	return session.ShimDead, started
}

// ownership is who has the session's runtime, with what only its supervisor knows: that a shim does not answer, and that a
// process which is not ours has the conversation.
func (s *Supervisor) ownership(sess record.Session) api.Ownership {
	f := FactsOf(s.dir, sess)
	o := api.Ownership{}
	for _, t := range sess.Queue {
		s.mu.Lock()
		r := s.runs[t.Folder]
		s.mu.Unlock()
		if r == nil {
			continue
		}
		e, err := r.view()
		if err != nil {
			continue
		}
		o.Runtime = e.Runtime
		if e.WaitingFor != nil && e.WaitingFor.Kind == "uncertain" {
			f.Shim = session.ShimSilent
		}
		f.Exited = f.Exited || f.Runtimes > 0 && r.vanished.Load()
	}
	if k := s.keeperOf(sess.ID); k != nil {
		o.Runtime = k.r.st.Runtime
		f.Exited = f.Exited || f.Runtimes > 0 && k.r.vanished.Load()
		if k.silent.Load() {
			f.Shim = session.ShimSilent
		}
	}
	f.OtherWriter = s.otherWriter(sess)
	state, reason := session.Own(f)
	o.State, o.Reason, o.Next = string(state), reason, session.Way(state, reason, sess.ID)
	if state == session.Free {
		o.Runtime = nil // it has gone since we looked
	}
	if f.OtherWriter != "" {
		o.Reason = f.OtherWriter
	}
	return o
}

// otherWriter names a process that has the session's conversation and is not its own, "" if there is none, or the agent does
// not tell.
func (s *Supervisor) otherWriter(sess record.Session) string {
	p, _ := s.provider(sess.Provider, sess.Kind)
	env, ok := s.homeOf(sess)
	if sess.Conversation == "" || p.Writer == nil || !ok {
		return ""
	}
	found, err := proc.LockHolders(p.Writer(env.Vars, sess.Conversation))
	if err != nil {
		return ""
	}
	for _, holder := range found {
		token, _ := proc.TokenOf(holder, shim.TokenVariable)
		runtime, here := strings.CutPrefix(token, s.dir.HomeID()+".")
		mine := slices.ContainsFunc(s.runtimesOf(sess.ID), func(r record.Runtime) bool { return r.ID == runtime })
		if !here || !mine {
			return writerName(holder)
		}
	}
	return ""
}

// homeOf is the environment of a session's agent, as far as it is known.
func (s *Supervisor) homeOf(sess record.Session) (env environ.Environment, ok bool) {
	s.mu.Lock()
	env, ok = s.homes[sess.ID]
	s.mu.Unlock()
	if !ok && sess.Template != nil {
		env.Vars = sess.Template.Environment.Values
		ok = len(env.Lacks(sess.Template.Environment.Names)) == 0
	}
	return env, ok
}

func writerName(p proc.Identity) string { return fmt.Sprintf("process %d has its conversation", p.PID) }

// getSession answers session/get.
func (s *Supervisor) getSession(_ context.Context, t api.SessionTarget) (any, error) {
	id, err := s.sessionNamed(t.Session)
	if err != nil {
		return nil, err
	}
	return s.viewSession(id)
}

// listSessions answers session/list, the oldest first.
func (s *Supervisor) listSessions(_ context.Context, l api.List) (any, error) {
	list := []api.Session{}
	for _, sess := range Sessions(s.dir, l.All) {
		v, err := s.viewSession(sess.ID)
		if err == nil {
			list = append(list, v)
		}
	}
	return list, nil
}

// Sessions are the records of those that have a conversation, or may have one, the oldest first; archived ones too with all.
// What cannot be read is left out: doctor names it.
func Sessions(d *state.Dir, all bool) (list []record.Session) {
	entries, _ := os.ReadDir(d.Path("sessions"))
	for _, entry := range entries {
		sess, err := state.Read[record.Session](d, record.SessionFile(entry.Name()))
		if err == nil && sess.Provider != "command" && (all || sess.ArchivedAt == nil) {
			list = append(list, sess)
		}
	}
	slices.SortStableFunc(list, func(a, b record.Session) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list
}

// history answers session/history. It starts nothing (R4).
func (s *Supervisor) history(_ context.Context, h api.History) (any, error) {
	id, err := s.sessionNamed(h.Session)
	if err != nil {
		return nil, err
	}
	rows, err := record.History(s.dir, id, record.Page{Tail: h.Tail, Before: h.Before, After: h.After, Limit: h.Limit, Bytes: h.Bytes})
	if errors.Is(err, record.ErrPage) {
		return nil, api.E(api.CodeParams, "%w", err)
	}
	return rows, err
}
