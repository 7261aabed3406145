package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Workspaces lists the records of all workspaces, the oldest first; with all those that are archived too. What cannot be
// read is left out: doctor names it.
func Workspaces(d *state.Dir, all bool) []record.Workspace {
	list := []record.Workspace{}
	for _, id := range record.IDs(d, "workspaces") {
		w, err := state.Read[record.Workspace](d, record.WorkspaceFile(id))
		if err == nil && (all || w.ArchivedAt == nil) {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b record.Workspace) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list
}

func (s *Supervisor) listWorkspaces(_ context.Context, l api.List) (any, error) {
	list := []api.Workspace{}
	for _, w := range Workspaces(s.dir, l.All) {
		list = append(list, WorkspaceOf(w))
	}
	return list, nil
}

func (s *Supervisor) getWorkspace(_ context.Context, t api.Target) (any, error) {
	w, err := s.workspace(t.ID)
	v := WorkspaceOf(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.errands[t.ID]; e != nil {
		v.Progress = e.progress
	}
	return v, err
}

// workspace reads the workspace that is called id, in full.
func (s *Supervisor) workspace(id string) (record.Workspace, error) {
	if !session.Generated(id) || !strings.HasPrefix(id, "w-") {
		return record.Workspace{}, notThere(id)
	}
	w, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(id))
	if nowhere(err) {
		return w, notThere(id)
	}
	return w, err
}

// notThere says in the protocol's words that there is no such workspace.
func notThere(id string) error {
	return api.E(api.CodeNotFound, "no workspace is called %s", record.Quote(id)).WithNext("pintle workspace ls -a")
}

// archiveWorkspace archives a workspace, with the session whose it is.
func (s *Supervisor) archiveWorkspace(ctx context.Context, c api.Archive) (any, error) {
	w, err := s.workspace(c.ID)
	folder := ""
	if api.CodeOf(err) == api.CodeNotFound { // of a run that never had it, and whose archive was begun
		if e, is, _ := s.errandOf(c.ID); is {
			w, folder, err = record.Workspace{ID: e.Workspace, Session: e.Session}, e.Folder, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.stopSetUp(w); err != nil {
		return nil, err
	}
	report, err := s.send(ctx, record.Errand{
		Workspace: w.ID, Session: w.Session, Action: "archive", Folder: folder, Cwd: w.Cwd, Refuse: c.RefuseDirty, Reason: c.Reason, At: time.Now().UTC(),
	})
	if err != nil {
		return nil, err
	}
	return api.Archived{Controlled: api.Controlled{ExecutionID: c.ID, Action: "archive", Success: true}, Report: report.(api.Report)}, nil
}

func (s *Supervisor) restoreWorkspace(ctx context.Context, t api.Target) (any, error) {
	w, err := s.workspace(t.ID)
	if err != nil {
		return nil, err
	}
	return s.send(ctx, record.Errand{Workspace: w.ID, Session: w.Session, Action: "restore", At: time.Now().UTC()})
}

// createWorkspace makes a workspace without a session. The caller chose its id, so that a repeat makes no second one.
func (s *Supervisor) createWorkspace(ctx context.Context, c api.CreateWorkspace) (any, error) {
	if !session.Generated(c.ID) || len(c.ID) != len("w-")+16 || c.ID[0] != 'w' {
		return nil, api.E(api.CodeParams, "%q is no id of a workspace: w- and 16 hex digits", c.ID)
	}
	if !filepath.IsAbs(c.Cwd) {
		return nil, api.E(api.CodeParams, "cwd %q is not absolute", c.Cwd)
	}
	e := record.Errand{Workspace: c.ID, Action: "create", Cwd: c.Cwd, At: time.Now().UTC()}
	if len(c.Tree) > 0 {
		if err := json.Unmarshal(c.Tree, &e.Tree); err != nil {
			return nil, api.E(api.CodeParams, "tree: %w", err)
		}
	}
	if e.Tree != nil {
		if err := e.Tree.Check(); err != nil {
			return nil, api.E(api.CodeParams, "tree: %w", err)
		}
	}
	return s.send(ctx, e)
}

// settleDown makes a workspace. Who asked for it may be gone; whoever supervises next finishes it all the same, so that
// nothing is left half made. That it failed is on record before what there is of it is taken back.
func (s *Supervisor) settleDown(ctx context.Context, e record.Errand) (w api.Workspace, err error) {
	if e.Failed == nil {
		if err := s.beginErrand(e); err != nil {
			return w, err
		}
		err = s.establish(ctx, e)
		var none *treeless
		if errors.As(err, &none) {
			e.Failed, err = cause(none.code, none.Error()), s.beginErrand(e)
		}
		if err != nil {
			return w, err
		}
	}
	if e.Failed != nil {
		if err := s.tearDown(e.Workspace); err != nil {
			return w, err
		}
		return w, errors.Join(api.E(api.CodeFailed, "%s: %s", e.Failed.Code, e.Failed.Message), s.endErrand(e.Workspace))
	}
	made, err := s.workspace(e.Workspace)
	return WorkspaceOf(made), errors.Join(err, s.endErrand(e.Workspace))
}

func (s *Supervisor) establish(ctx context.Context, e record.Errand) error {
	w := record.Workspace{Version: record.Version, ID: e.Workspace, Cwd: e.Cwd, CreatedAt: e.At}
	if e.Tree == nil {
		return s.checkIn(ctx, w)
	}
	return s.build(ctx, w, *e.Tree)
}

// checkIn records a workspace in a directory of the user's.
func (s *Supervisor) checkIn(ctx context.Context, w record.Workspace) error {
	if _, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(w.ID)); !nowhere(err) {
		return err
	}
	if err := s.dir.Mkdir("workspaces"); err != nil {
		return err
	}
	if repo, err := s.probe(ctx, w.Cwd); err == nil {
		w.Repository, w.Branch, w.Base, w.Head = repo.CommonDir, repo.Branch, repo.Head, repo.Head
	}
	if err := s.lodge(&w); err != nil {
		return err
	}
	return state.Put(s.ctx, s.dir, record.WorkspaceFile(w.ID), w)
}

// build makes a workspace's worktree and has it set up. The set-up gets the supervisor's environment: nobody's is at hand.
func (s *Supervisor) build(ctx context.Context, w record.Workspace, tree record.TreeOrder) error {
	w, err := s.nameTree(w, tree)
	if err != nil {
		return err
	}
	t, err := s.makeTree(ctx, w.Worktree, treePlan{TreeOrder: tree, workspace: w.ID, name: w.ID, environment: s.ownEnvironment()})
	if err != nil {
		return err
	}
	if _, err := s.moveIn(w.ID, t, tree.Sub); err != nil || t.State != record.TreeMade {
		return err
	}
	crash.At("supervisor.moved_in")
	if err := supply(ctx, tree, t); err != nil {
		return err
	}
	if err := s.setUpNow(ctx, t, w); err != nil {
		return err
	}
	crash.At("supervisor.set_up")
	return s.setTree(t.ID, record.TreeReady)
}

// ownEnvironment is the supervisor's own, which is a part of the published list.
func (s *Supervisor) ownEnvironment() record.Environment {
	e := record.Environment{Values: map[string]string{}, Umask: 0o022}
	for _, entry := range s.o.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && !strings.HasPrefix(name, "PINTLE_") {
			e.Values[name], e.Names = value, append(e.Names, name)
		}
	}
	return e
}

// setUpNow has a worktree set up that no run waits for.
func (s *Supervisor) setUpNow(ctx context.Context, t record.Worktree, w record.Workspace) error {
	if len(t.Recipe.Setup) == 0 {
		return nil
	}
	c := chore{kind: "setup", tree: t, owner: w.ID, commands: t.Recipe.Setup, timeout: t.Recipe.SetupTimeout, stored: t.Environment}
	e, err := s.complete(ctx, c)
	if err == nil && e.Outcome != string(session.Completed) {
		return &treeless{"setup_failed", errors.New(s.complaint("set-up", e))}
	}
	return err
}

// tearDown takes a workspace back whose worktree could not be had: nothing of it is left.
func (s *Supervisor) tearDown(id string) error {
	w, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(id))
	if err != nil {
		return ignoreAbsent(err)
	}
	if gone, err := s.undoTree(w, true); err != nil || !gone {
		return err
	}
	crash.At("supervisor.torn_down")
	return s.forgetWorkspace(id)
}

// TreeOf is the worktree that a workspace refers to; without one, the zero value.
func TreeOf(d *state.Dir, workspace string) (record.Worktree, error) {
	w, err := state.Read[record.Workspace](d, record.WorkspaceFile(workspace))
	if err != nil || w.Worktree == "" {
		return record.Worktree{}, ignoreAbsent(err)
	}
	t, err := state.Read[record.Worktree](d, record.WorktreeFile(w.Worktree))
	return t, ignoreAbsent(err)
}

// stopSetUp stops the set-up of a workspace that is being created (X24): it fails by that, and is taken back.
func (s *Supervisor) stopSetUp(w record.Workspace) error {
	pending, is, err := s.errandOf(w.ID)
	if err != nil || !is || pending.Action != "create" || w.Worktree == "" {
		return err
	}
	folder := chore{kind: "setup", tree: record.Worktree{ID: w.Worktree}}.folder()
	if open, err := s.unended(folder); err != nil || !open {
		return ignoreAbsent(err)
	}
	return s.stopNow(folder, "its workspace is archived")
}
