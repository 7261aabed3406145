package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// A chore is a repository's set-up or clean-up. It is an execution like any other, under a key of pintle's own: it is
// carried out once whoever is killed, ends at its deadline or when it is stopped, with all that it started, and what it
// says is kept. It is listed nowhere: it belongs to the run, or the archive, that waits for it.

// chore is what one is made from.
type chore struct {
	kind     string // setup or cleanup
	tree     record.Worktree
	owner    string // the workspace in which it runs
	waits    string // folder of the run that waits for it
	commands []string
	timeout  time.Duration
	stored   record.Environment
	values   *environ.Environment // nil: what is stored is all
}

// key names the chore. A worktree is set up once, and cleaned up each time that it goes.
func (c chore) key() string {
	if c.kind == "cleanup" && c.tree.Kepts > 0 {
		return fmt.Sprintf("%s %s %d", c.kind, c.tree.ID, c.tree.Kepts+1)
	}
	return c.kind + " " + c.tree.ID
}

func (c chore) folder() string { return session.Folder(record.Chores, c.key()) }

// each runs the commands one after the other; the first that fails ends it.
const each = `for c do sh -c "$c" || { s=$?; printf 'failed: %s\n' "$c" >&2; exit $s; }; done`

func (c chore) spec() (record.Spec, error) {
	boot, err := proc.BootID()
	now := time.Now().UTC()
	return record.Spec{
		ID: c.key(), Controller: record.Chores, CreatedAt: now, Program: record.Program{Path: "/bin/sh"}, Environment: c.stored,
		Payload: session.Payload{
			Provider: command.Name, Argv: append([]string{"sh", "-c", each, "pintle-" + c.kind}, c.commands...), Cwd: c.tree.Dir,
		},
		Limits:  record.Limits{Timeout: c.timeout},
		Desired: record.Desired{At: now, BootID: boot, Deadline: proc.BootClock() + c.timeout},
		Chore:   &record.Chore{Kind: c.kind, Workspace: c.owner, For: c.waits},
	}, err
}

// assign has a chore carried out, once, and returns how it is. It is driven until it has ended.
func (s *Supervisor) assign(ctx context.Context, c chore) (api.Execution, *run, error) {
	spec, err := c.spec()
	if err != nil {
		return api.Execution{}, nil, err
	}
	claimed, err := record.Claim(ctx, s.dir, spec, 0, func(*record.Spec) error { return nil })
	if api.CodeOf(err) == api.CodeConflict { // it was ordered with other commands before: what was done counts
		claimed.Folder, err = record.Locate(s.dir, c.folder())
	}
	if err != nil {
		return api.Execution{}, nil, err
	}
	open, err := s.unended(claimed.Folder)
	if err != nil || !open {
		e, viewErr := record.View(s.dir, claimed.Folder)
		return e, nil, errors.Join(err, viewErr)
	}
	s.equip(claimed.Folder, c)
	e, err := record.View(s.dir, claimed.Folder)
	return e, s.ensure(claimed.Folder), err
}

// equip gives a chore the environment of who waits for it, also one that was found on record and taken up before that one was.
func (s *Supervisor) equip(folder string, c chore) {
	if c.values == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.envs[folder]; ok && len(was.Lacks(c.stored.Names)) == 0 {
		return // it may have begun with that one
	}
	s.envs[folder] = brought{*c.values, 1}
	if r := s.runs[folder]; r != nil {
		r.wake()
	}
}

// complete has a chore carried out and waits for its end.
func (s *Supervisor) complete(ctx context.Context, c chore) (api.Execution, error) {
	for {
		e, going, err := s.assign(ctx, c)
		if err != nil {
			return e, err
		}
		if going == nil {
			return e, s.putAway(c, e)
		}
		select {
		case <-going.done:
		case <-ctx.Done():
			return e, ctx.Err()
		}
		if s.ctx.Err() != nil {
			return e, s.ctx.Err()
		}
	}
}

// setUp has the run's worktree set up; done once it is. Who shares the worktree shares its set-up.
func (r *run) setUp(ctx context.Context, t record.Worktree, env environ.Environment) (done bool, err error) {
	if len(t.Recipe.Setup) == 0 {
		return true, nil
	}
	c := r.setUpOf(t)
	c.values = &env
	e, going, err := r.s.assign(ctx, c)
	if err != nil {
		return false, err
	}
	if going != nil {
		until := time.Now().Add(c.timeout).UTC()
		if e.StartedAt != nil {
			until = e.StartedAt.Add(c.timeout)
		}
		w := &api.WaitingFor{Kind: "setup", Names: t.Recipe.Setup, Until: &until}
		if r.st.WaitingFor == nil { // ps tells it too
			r.st.WaitingFor = w
			if err := r.save(session.Workspace); err != nil {
				return false, err
			}
		}
		r.wait(w)
		r.pause(ctx, min(time.Minute, r.left()))
		r.wait(nil)
		return false, nil
	}
	if err := r.s.putAway(c, e); err != nil {
		return false, err
	}
	if e.Outcome != string(session.Completed) {
		return false, &treeless{"setup_failed", errors.New(r.s.complaint("set-up", e))}
	}
	return true, nil
}

func (r *run) setUpOf(t record.Worktree) chore {
	return chore{
		kind: "setup", tree: t, owner: r.st.Workspace, waits: r.folder, commands: t.Recipe.Setup, timeout: t.Recipe.SetupTimeout,
		stored: r.spec.Environment,
	}
}

// putAway moves a chore's records to archived/: nobody lists it, and ps should not pay for it.
func (s *Supervisor) putAway(c chore, e api.Execution) error {
	if e.ArchivedAt == nil {
		if err := s.stamp(c.folder(), time.Now().UTC()); err != nil {
			return err
		}
		crash.At("supervisor.put_away")
	}
	return record.Archive(s.ctx, s.dir, c.folder())
}

// stamp notes in an execution's status when it was archived.
func (s *Supervisor) stamp(hash string, at time.Time) error {
	return state.Update(s.ctx, s.dir, record.StatusFile(hash), func(st *record.Status) error {
		if st.Version == 0 {
			return errGone
		}
		st.ArchivedAt, st.Leaving = &at, false
		return nil
	})
}

// errGone is for a record that was moved since somebody looked.
var errGone = fmt.Errorf("it is not there any more: %w", fs.ErrNotExist)

// stopChore stops the set-up that the run waits for, if there is one, and returns once nothing of it is left (X24).
func (r *run) stopChore() error {
	w, err := state.Read[record.Workspace](r.s.dir, record.WorkspaceFile(r.st.Workspace))
	if err != nil || w.Worktree == "" {
		return ignoreAbsent(err)
	}
	t, err := state.Read[record.Worktree](r.s.dir, record.WorktreeFile(w.Worktree))
	if err != nil || t.State != record.TreeMade || len(t.Workspaces) > 1 { // others wait for it too
		return ignoreAbsent(err)
	}
	c := r.setUpOf(t)
	open, err := r.s.unended(c.folder())
	if err != nil {
		return ignoreAbsent(err)
	}
	if open {
		if err := r.s.stopNow(c.folder(), "its run is stopped"); err != nil {
			return err
		}
	}
	e, err := record.View(r.s.dir, c.folder())
	if err != nil {
		return ignoreAbsent(err)
	}
	return r.s.putAway(c, e)
}

// stopNow stops an execution, and returns once nothing of it is left.
func (s *Supervisor) stopNow(folder, reason string) error {
	_, err := record.Cancel(s.ctx, s.dir, folder, api.Cancel{Action: "stop", Reason: reason, RequestedAt: time.Now().UTC()})
	if err != nil {
		return err
	}
	return s.ended(s.ctx, folder)
}

// complaint says how a chore failed, with the end of what it said: whoever reads it has nothing else.
func (s *Supervisor) complaint(what string, e api.Execution) string {
	why := e.Outcome
	switch {
	case e.Outcome == string(session.TimedOut):
		why = "it took too long (" + strings.ReplaceAll(what, "-", "") + "_timeout of .pintle.toml)"
	case e.Cause != nil && e.Cause.Message != "":
		why = e.Cause.Message
	}
	if said := strings.Join(strings.Split(s.lastWords(e.Session), "\n"), "; "); said != "" {
		return fmt.Sprintf("%s failed: %s: %s", what, why, said)
	}
	return fmt.Sprintf("%s failed: %s", what, why)
}

// lastWords are the end of what a session's command said, both streams.
func (s *Supervisor) lastWords(id string) string {
	const most = 1500
	r := journal.NewReader(s.dir.Path(record.JournalDir(id)), 0)
	defer r.Close()
	var said []byte
	for {
		events, err := r.Next()
		if err != nil || len(events) == 0 {
			return strings.ToValidUTF8(strings.TrimSpace(string(said[max(0, len(said)-most):])), "")
		}
		for _, e := range events {
			if e.Type == "agent_message_chunk" || e.Type == "stderr" {
				b, _ := command.Bytes(e.Data)
				said = append(said, b...)
				said = said[max(0, len(said)-2*most):]
			}
		}
	}
}

// wakeFor wakes the run that waits for this one, a chore.
func (r *run) wakeFor() {
	if r.spec.Chore == nil {
		return
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if waits := r.s.runs[r.spec.Chore.For]; waits != nil {
		waits.wake()
	}
}
