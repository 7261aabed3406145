package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// prepare writes the records that a runtime needs before it is started: workspace, session with its journal, and
// the runtime's own, which is the intent. They are written side by side, since their syncs then share the disk's
// flushes; nothing is started before all of them are there, and whatever is missing after a death is made again.
func (r *run) prepare(ctx context.Context, env environ.Environment) (*runtime, error) {
	var w, s, x error
	var rt *runtime
	var all sync.WaitGroup
	all.Go(func() { w = r.prepareWorkspace(ctx) })
	all.Go(func() {
		if s = r.prepareSession(); s == nil {
			rt, s = r.openRuntime(env)
		}
	})
	all.Go(func() { x = r.prepareRuntime(ctx) })
	all.Wait()
	err := errors.Join(w, s, x)
	if err != nil && rt != nil {
		rt.release()
	}
	return rt, err
}

func (r *run) prepareRuntime(ctx context.Context) error {
	r.vanished.Store(false) // it may be another try's
	if err := r.s.dir.Mkdir("runtimes", r.st.RuntimeID); err != nil {
		return err
	}
	rec := record.Runtime{
		Version: record.Version, ID: r.st.RuntimeID, Token: r.token(), Folder: r.folder, Session: r.st.Session,
		Attempt: r.st.Attempt, Fence: r.st.Fence, BootID: r.st.BootID, Socket: r.socket(), CreatedAt: time.Now().UTC(),
		Spool: int64(r.s.o.Config.Limits.Spool), Shared: r.founds != nil,
	}
	if rec.Shared {
		rec.Cwd = r.dir()
	}
	return state.Put(ctx, r.s.dir, record.RuntimeFile(rec.ID), rec)
}

func (r *run) prepareWorkspace(ctx context.Context) error {
	if r.spec.Chore != nil || r.ordersTree() {
		return nil // it was there before
	}
	if err := r.s.dir.Mkdir("workspaces"); err != nil {
		return err
	}
	w := record.Workspace{Version: record.Version, ID: r.st.Workspace, Cwd: r.st.Cwd, Session: r.st.Session, CreatedAt: time.Now().UTC()}
	was, err := state.Read[record.Workspace](r.s.dir, record.WorkspaceFile(w.ID))
	if err == nil && (r.opens() || r.spec.Client != "") { // a message tells no changes of its own
		r.st.Worktree = was.Root
		return nil
	}
	repo, probeErr := r.s.probe(ctx, r.st.Cwd)
	if probeErr == nil {
		w.Repository, w.Branch, w.Base, w.Head = repo.CommonDir, repo.Branch, repo.Head, repo.Head
		r.st.Branch, r.st.Base, r.st.Head = repo.Branch, repo.Head, repo.Head
	}
	if err == nil && within(r.st.Cwd, was.Root) {
		r.st.Worktree = was.Root
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err // it is the session's, where that began
	}
	if err := r.s.lodge(&w); err != nil {
		return err
	}
	r.st.Worktree = w.Root
	return state.Put(ctx, r.s.dir, record.WorkspaceFile(w.ID), w)
}

// lodge has a workspace refer to the worktree of ours in which it is, if it is in one (X18).
func (s *Supervisor) lodge(w *record.Workspace) error {
	managed, linkErr := filepath.EvalSymlinks(s.dir.Path("worktrees"))
	inside := linkErr == nil && within(w.Cwd, managed)
	if w.Repository == "" && !inside {
		return nil
	}
	home, id, err := worktree.Owner(w.Cwd)
	switch ours := err == nil && home == s.dir.HomeID(); {
	case !ours && inside: // who works in it now would be in the way of who makes it, or lose what he writes
		return &treeless{"worktree_failed", fmt.Errorf("%s is no worktree of pintle's, or is being made or removed", w.Cwd)}
	case !ours:
		return nil
	}
	t, err := state.Read[record.Worktree](s.dir, record.WorktreeFile(id))
	if err != nil {
		return ignoreAbsent(err)
	}
	w.Worktree, w.Root = t.ID, t.Dir
	err = s.refer(t.ID, w.ID)
	crash.At("supervisor.lodged")
	return err
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	return root != "" && (dir == root || strings.HasPrefix(dir, root+string(filepath.Separator)))
}

// probe runs git, which must not be taken for an orphan meanwhile.
func (s *Supervisor) probe(ctx context.Context, dir string) (worktree.Repository, error) {
	s.forks.RLock()
	defer s.forks.RUnlock()
	return worktree.Probe(ctx, dir)
}

func (r *run) prepareSession() error {
	if err := r.s.dir.Mkdir("sessions", r.st.Session); err != nil {
		return err
	}
	// Durable with the record beside it.
	if err := os.Mkdir(r.s.dir.Path(record.JournalDir(r.st.Session)), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", state.Full(err))
	}
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if s.Version == 0 {
			*s = record.Session{
				Version: record.Version, ID: r.st.Session, Execution: r.folder, Workspace: r.st.Workspace,
				Provider: r.st.Provider, Kind: r.st.Kind, BootID: r.st.BootID, CreatedAt: time.Now().UTC(),
			}
			if r.spoken() {
				s.Enqueue(r.place(), r.s.vacant)
			}
		}
		if err := r.admit(s); err != nil {
			return err
		}
		s.Fence = max(s.Fence, r.st.Fence)
		return nil
	})
}

// errArchived is for a run that would go on in a session that is archived (case 28).
var errArchived = errors.New("the session is archived")

// admit has an execution among those of a session. Into one that is archived, or about to be, nobody comes any more; who
// is in it is stopped by the archiving. What came in at the session's desk was admitted there, and is found by the journal and
// by its number: a conversation has thousands of messages.
func (r *run) admit(s *record.Session) error {
	switch {
	case r.spec.Client != "" || r.opens():
	case s.ArchivedAt != nil && !slices.Contains(s.Runs, r.folder):
		return errArchived
	default:
		s.Join(r.folder)
	}
	return nil
}
