package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// gcVerb is `pintle gc`.
type gcVerb struct {
	output
	DryRun    bool `name:"dry-run" help:"Only say what would go."`
	OlderThan days `name:"older-than" default:"90d" help:"What was archived, or set aside, so long ago; what is left over goes at any age." placeholder:"D"`
}

// Help is more of `pintle gc --help`.
func (v *gcVerb) Help() string {
	return "Tries again to remove directories that could not be, and removes what runtimes left over, copies of damaged records, " +
		"results and logs of archived runs, and the work that was kept of archived worktrees. No key is forgotten: a repeat " +
		"is still answered. Only pintle rm frees a key."
}

// waste is something that gc removes.
type waste struct {
	Kind    string     `json:"kind"` // cleanup, spool, quarantine, result, archive
	Name    string     `json:"name"`
	Bytes   int64      `json:"bytes"`
	At      *time.Time `json:"at,omitempty"`
	Removed bool       `json:"removed"`
	Detail  string     `json:"detail,omitempty"`

	drop func(*waste) error
}

// Run removes what is not needed any more, or says what that is.
func (v *gcVerb) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	all := []waste{}
	if d != nil {
		all = append(all, v.find(a, d, time.Now().Add(-time.Duration(v.OlderThan)))...)
	}
	var worst error
	for i := range all {
		if w := &all[i]; !v.DryRun {
			if err := w.drop(w); err != nil {
				a.tell(err)
				worst, w.Detail = exit(typed(err).Code.Exit()), cmp.Or(w.Detail, err.Error())
				continue
			}
			w.Removed = w.Detail == "" || w.Kind != "cleanup"
		}
	}
	v.show(a, all)
	return worst
}

// find looks for all kinds of waste.
func (v *gcVerb) find(a *app, d *state.Dir, before time.Time) []waste {
	return slices.Concat([]waste{}, a.cleanups(d), spools(d), quarantined(d, before), a.results(d, before), a.keptWork(d, before))
}

func (v *gcVerb) show(a *app, all []waste) {
	if v.JSON {
		a.print(all)
		return
	}
	out := bufio.NewWriter(a.stdout)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	var sum int64
	for _, one := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", one.Kind, printable(one.Name), size(one.Bytes), printable(orDash(one.Detail)))
		if one.Removed || v.DryRun {
			sum += one.Bytes
		}
	}
	_ = w.Flush()
	_ = out.Flush()
	word := "freed"
	if v.DryRun {
		word = "would free"
	}
	a.say("%s %s", word, size(sum))
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// cleanups are directories of archived workspaces that could not be removed. Each is tried again by the supervisor.
func (a *app) cleanups(d *state.Dir) (found []waste) {
	for _, e := range supervisor.Errands(d) {
		w := waste{Kind: "cleanup", Name: e.Workspace, At: &e.At, Detail: e.Action + " under way"}
		if e.Stuck != nil {
			w.Detail, w.At = e.Stuck.Message, &e.Stuck.At
		}
		if t, err := supervisor.TreeOf(d, e.Workspace); err == nil && t.Dir != "" {
			w.Name, w.Bytes = t.Dir, weigh(t.Dir)
		}
		w.drop = func(w *waste) error { return a.tryAgain(d, e, w) }
		found = append(found, w)
	}
	return found
}

// tryAgain has a supervisor go on with what is pending.
func (a *app) tryAgain(d *state.Dir, e record.Errand, w *waste) error {
	switch e.Action {
	case "create":
		order, err := json.Marshal(e.Tree)
		if e.Tree == nil {
			order = nil
		}
		return errors.Join(err, a.call(a.ctx, d, nil, api.MethodWsCreate, api.CreateWorkspace{ID: e.Workspace, Cwd: e.Cwd, Tree: order}, nil))
	case "restore":
		return a.call(a.ctx, d, nil, api.MethodWsRestore, api.Target{ID: e.Workspace}, nil)
	}
	var done api.Archived
	err := a.call(a.ctx, d, nil, api.MethodWsArchive, api.Archive{ID: e.Workspace}, &done)
	if err == nil && done.Report.Pending != nil {
		w.Detail = done.Report.Pending.Message
		return nil
	}
	w.Detail = ""
	return err
}

// spools are what dead runtimes left over, and sessions of which a gc was killed that removed them.
func spools(d *state.Dir) (found []waste) {
	for _, dir := range []string{"runtimes", "sessions"} {
		entries, _ := os.ReadDir(d.Path(dir))
		for _, e := range entries {
			if path := d.Path(dir, e.Name()); strings.HasPrefix(e.Name(), ".") {
				found = append(found, waste{Kind: "spool", Name: e.Name(), Bytes: weigh(path), drop: func(*waste) error { return os.RemoveAll(path) }})
			}
		}
	}
	return found
}

// quarantined are copies of records that could not be read. The records themselves are where they were.
func quarantined(d *state.Dir, before time.Time) (found []waste) {
	entries, _ := os.ReadDir(d.Path("quarantine"))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.ModTime().After(before) {
			continue
		}
		at, path := info.ModTime().UTC(), d.Path("quarantine", e.Name())
		found = append(found, waste{Kind: "quarantine", Name: e.Name(), Bytes: info.Size(), At: &at, drop: func(*waste) error { return os.Remove(path) }})
	}
	return found
}

// weigh is how many bytes the files below a path have.
func weigh(path string) (sum int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read weighs nothing
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// results are those of runs that were archived so long ago: a tombstone of each stays (X36). Their sessions' journals go with
// the last of them.
func (a *app) results(d *state.Dir, before time.Time) (found []waste) {
	rows, err := record.Expirable(d, before)
	if err != nil {
		a.tell(err) // of those that can be read the results go all the same
	}
	for _, row := range rows {
		hash := record.Hash(row.Folder)
		bytes, err := record.Expire(a.ctx, d, hash, true)
		if err != nil {
			a.tell(err)
			continue
		}
		found = append(found, waste{
			Kind: "result", Name: cmp.Or(row.Execution.ID, hash), Bytes: bytes + weigh(d.Path("sessions", row.Execution.Session)), At: row.Execution.ArchivedAt,
			drop: func(*waste) error { return a.expire(d, row) },
		})
	}
	return found
}

func (a *app) expire(d *state.Dir, row record.Listed) error {
	if err := record.ExpireSession(d, row.Execution.Session, before(row)); err != nil {
		return err
	}
	crash.At("gc.session")
	_, err := record.Expire(a.ctx, d, record.Hash(row.Folder), false)
	return err
}

// before is the time of an archive.
func before(row record.Listed) time.Time { return *row.Execution.ArchivedAt }

// keptWork is what was kept of worktrees that were archived, or restored since, so long ago.
func (a *app) keptWork(d *state.Dir, before time.Time) (found []waste) {
	for _, t := range supervisor.Worktrees(d) {
		w, err := state.Read[record.Workspace](d, record.WorkspaceFile(t.As))
		if err == nil && t.State == record.TreeGone && t.Kept != nil && w.ArchivedAt != nil && w.ArchivedAt.Before(before) {
			found = a.keptOf(found, d, t, *t.Kept, *w.ArchivedAt)
		}
		for _, past := range t.Past {
			if past.RestoredAt.Before(before) {
				found = a.keptOf(found, d, t, past.Kept, past.RestoredAt)
			}
		}
	}
	return found
}

// keptOf adds what was kept at one time, if it is something.
func (a *app) keptOf(found []waste, d *state.Dir, t record.Worktree, k worktree.Kept, at time.Time) []waste {
	ref := cmp.Or(k.Ref, k.Salvaged)
	if ref+k.Tar == "" {
		return found
	}
	one := waste{Kind: "archive", Name: cmp.Or(ref, k.Tar), At: &at, drop: func(*waste) error { return a.discard(d, t, k) }}
	if n, err := worktree.Size(a.ctx, t.Repository, ref); ref != "" && err == nil {
		one.Bytes = n
	}
	if info, err := os.Stat(k.Tar); err == nil {
		one.Bytes += info.Size()
	}
	return append(found, one)
}

// discard removes what was kept of a worktree, under the lock of its repository, under which it would be restored too. The
// record says first that it goes, so that nothing half removed is restored, and forgets last where it was: killed in
// between, a repeat finds it again.
func (a *app) discard(d *state.Dir, t record.Worktree, k worktree.Kept) error {
	hold, err := worktree.Lock(a.ctx, t.Repository)
	if errors.Is(err, worktree.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		return record.Forget(a.ctx, d, t.ID, k) // the repository is gone, and the ref with it
	}
	if err != nil {
		return err
	}
	defer hold.Release()
	now, err := state.Read[record.Worktree](d, record.WorktreeFile(t.ID))
	if err != nil || now.State == record.TreeComing {
		return err // it is being restored from it
	}
	if err := record.Expiring(a.ctx, d, t.ID, k); err != nil {
		return err
	}
	crash.At("gc.expiring")
	if ref := cmp.Or(k.Ref, k.Salvaged); ref != "" {
		if err := worktree.Discard(a.ctx, t.Repository, ref); err != nil {
			return err
		}
		crash.At("gc.discarded")
	}
	return record.Forget(a.ctx, d, t.ID, k)
}
