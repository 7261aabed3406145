package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/state"
)

// checkTrees looks at what has become of the worktrees: as they are, with all archived, and with all restored.
func (r *round) checkTrees(d *state.Dir, c *counts, fault func(string, ...any)) {
	for _, f := range r.faults {
		fault("%s", f)
	}
	r.finishErrands(d, fault)
	r.accounted(d, fault)
	r.consistent(d, fault)
	r.filesOf(d, "", c, fault)
	r.each(d, "archive", fault)
	r.vacated(d, fault)
	r.consistent(d, fault)
	r.each(d, "restore", fault)
	r.accounted(d, fault)
	r.consistent(d, fault)
	r.filesOf(d, "restored", c, fault)
	c.worktrees += len(supervisor.Worktrees(d))
	r.nextDoorLeaves(fault)
	r.swept(d, fault)
}

// nextDoorLeaves: the other state directory archives all that it has, and then nothing of it is left.
func (r *round) nextDoorLeaves(fault func(string, ...any)) {
	d, err := state.OpenExisting(r.second())
	if err != nil {
		fault("the neighbour: %v", err)
		return
	}
	for _, w := range supervisor.Workspaces(d, true) {
		if res := r.verb(r.at(r.second()), false, "workspace", "archive", w.ID); res.code != 0 {
			fault("the neighbour's workspace %s: exit %d: %s", w.ID, res.code, res.err)
		}
	}
	for dir := range r.listed(r.second(), fault) {
		fault("the neighbour has archived everything, and git knows %s", dir)
	}
	for _, e := range supervisor.Errands(d) {
		fault("the neighbour: pending: %+v", e)
	}
	if res := r.verb(r.at(r.second()), false, "supervise", "stop"); res.code != 0 {
		fault("supervise stop of the neighbour: exit %d: %s", res.code, res.err)
	}
}

// finishErrands has what was begun finished: a new supervisor sees to that, and gc to what could not be removed.
func (r *round) finishErrands(d *state.Dir, fault func(string, ...any)) {
	for limit := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		r.pintle(1, false, "supervise", "restart")
		r.pintle(1, false, "gc")
		errands := supervisor.Errands(d)
		if len(errands) == 0 {
			return
		}
		if time.Now().After(limit) {
			fault("pending for ever: %+v", errands)
			return
		}
	}
}

// each archives or restores all workspaces, four at a time.
func (r *round) each(d *state.Dir, verb string, fault func(string, ...any)) {
	slots := make(chan struct{}, 4)
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, w := range supervisor.Workspaces(d, true) {
		if w.Worktree == "" && verb == "restore" {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if res := r.pintle(1, false, "workspace", verb, w.ID); res.code != 0 {
				mu.Lock()
				defer mu.Unlock()
				fault("workspace %s %s at the end: exit %d: %s", verb, w.ID, res.code, res.err)
			}
		})
	}
	all.Wait()
}

// accounted: git knows the worktrees that are on record as being there, and no others.
func (r *round) accounted(d *state.Dir, fault func(string, ...any)) {
	listed := r.listed(r.home, fault)
	for _, t := range supervisor.Worktrees(d) {
		switch t.State {
		case record.TreeReady, record.TreeMade:
			if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() || !listed[t.Dir] {
				fault("worktree %s of %v is %s, and git knows it: %v; %s: %v", t.ID, t.Workspaces, t.State, listed[t.Dir], t.Dir, err)
			}
			if len(t.Workspaces) == 0 {
				fault("worktree %s is %s, and nobody refers to it", t.ID, t.State)
			}
			delete(listed, t.Dir)
		case record.TreeGone:
		default:
			fault("worktree %s of %v is %s, with nothing pending", t.ID, t.Workspaces, t.State)
		}
	}
	for dir := range listed {
		fault("no record accounts for the worktree %s", dir)
	}
}

// listed are the worktrees of a state directory that git knows.
func (r *round) listed(home string, fault func(string, ...any)) map[string]bool {
	out, err := r.git("worktree", "list", "--porcelain")
	if err != nil {
		fault("%v", err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(out) {
		dir, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree ")
		if ok && strings.HasPrefix(dir, home+"/") {
			found[dir] = true
		}
	}
	return found
}

// consistent: an order is in archived/ if and only if its workspace is.
func (r *round) consistent(d *state.Dir, fault func(string, ...any)) {
	for _, o := range r.orders {
		folder, err := folderOf(d, o)
		if err != nil {
			continue // never given
		}
		e, err := record.View(d, folder)
		if err != nil {
			fault("key %s: %v", o.key, err)
			continue
		}
		w, err := state.Read[record.Workspace](d, record.WorkspaceFile(e.Workspace))
		if err == nil && (record.IsArchived(folder) != (w.ArchivedAt != nil) || record.IsArchived(folder) != (e.ArchivedAt != nil)) {
			fault("key %s is in %s, archived at %v, and its workspace at %v", o.key, folder, e.ArchivedAt, w.ArchivedAt)
		}
	}
}

// filesOf looks for what the runs wrote: it is in place, unless its worktree is archived.
func (r *round) filesOf(d *state.Dir, when string, c *counts, fault func(string, ...any)) {
	data, _ := os.ReadFile(filepath.Join(r.dir, "wrote"))
	for line := range strings.Lines(string(data)) {
		key, where, _ := strings.Cut(strings.TrimSpace(line), " ")
		t, err := r.treeOf(d, key)
		switch {
		case r.byKey[key].place.guest && errors.Is(err, fs.ErrNotExist):
			continue // it came when the worktree had gone, into what was reserved for the next one
		case err != nil:
			c.lostFiles++
			fault("key %s wrote into %s, of which there is no record: %v", key, where, err)
			continue
		case t.State == record.TreeGone && when == "":
			continue
		}
		r.filesIn(t, key, c, fault)
	}
}

func (r *round) treeOf(d *state.Dir, key string) (record.Worktree, error) {
	folder, err := folderOf(d, r.byKey[key])
	if err != nil {
		return record.Worktree{}, err
	}
	e, err := record.View(d, folder)
	if err != nil {
		return record.Worktree{}, err
	}
	t, err := supervisor.TreeOf(d, e.Workspace)
	if err == nil && t.ID == "" {
		err = fs.ErrNotExist
	}
	return t, err
}

func (r *round) filesIn(t record.Worktree, key string, c *counts, fault func(string, ...any)) {
	lost := func(name string, got []byte, err error) {
		c.lostFiles++
		fault("lost: %q of key %s in %s (%s, %s): %q, %v", name, key, t.Dir, t.ID, t.State, got, err)
	}
	for name, want := range left(key) {
		if got, err := os.ReadFile(filepath.Join(t.Dir, name)); err != nil || string(got) != want {
			lost(name, got, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(t.Dir, "tracked")); err != nil || !strings.Contains(string(got), "by "+key+"\n") {
		lost("tracked", got, err)
	}
}

// vacated: with all archived no directory is left of a worktree.
func (r *round) vacated(d *state.Dir, fault func(string, ...any)) {
	r.finishErrands(d, fault)
	for dir := range r.listed(r.home, fault) {
		fault("with all archived, git knows %s", dir)
	}
	dirs, _ := filepath.Glob(filepath.Join(r.home, "worktrees", "*", "*"))
	for _, dir := range dirs {
		fault("with all archived, %s is left", dir)
	}
}

// swept: nothing lies about that was only needed in between.
func (r *round) swept(d *state.Dir, fault func(string, ...any)) {
	if refs, err := r.git("for-each-ref", "refs/pintle/tmp"); err != nil || refs != "" {
		fault("temporary references: %s %v", refs, err)
	}
	for _, e := range supervisor.Errands(d) {
		fault("pending: %+v", e)
	}
	_ = filepath.WalkDir(filepath.Join(r.repo, ".git"), func(path string, e fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && e.IsDir() && name == "objects" {
			return fs.SkipDir // what a killed git left there its own gc removes
		}
		if err == nil && (strings.HasSuffix(name, ".lock") && name != "pintle.lock" || strings.HasPrefix(name, "pintle-removed-")) {
			fault("%s is left", path)
		}
		return nil
	})
	for _, pattern := range []string{"worktrees/*/.*", "pending/w-*"} {
		found, _ := filepath.Glob(filepath.Join(r.home, pattern))
		for _, path := range found {
			fault("%s is left", path)
		}
	}
}
