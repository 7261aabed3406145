package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// archiveVerb is `pintle archive`.
type archiveVerb struct {
	output
	selection
	OlderThan   *days  `name:"older-than" help:"All runs that ended so long ago." placeholder:"D"`
	RefuseDirty bool   `name:"refuse-dirty" help:"Refuse what git would not find again, rather than keep it."`
	DryRun      bool   `name:"dry-run" help:"Only say what would be archived."`
	Reason      string `help:"Why; it is kept." placeholder:"TEXT"`
}

// Help is more of `pintle archive --help`.
func (v *archiveVerb) Help() string {
	return "Archiving a run archives its session: all its runs. " + noneIsFine
}

// days is a duration that may be given in days.
type days time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *days) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(string(text), "d")
	if ok {
		var n int
		if _, err := fmt.Sscanf(number+"\n", "%d\n", &n); err != nil || n < 0 || n > 100_000 {
			return fmt.Errorf("%q: expected days, as in 30d", text)
		}
		*a = days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	*a = days(d)
	return err
}

// Run archives runs, each with its session, and returns once that is done.
func (v *archiveVerb) Run(a *app) error {
	d, targets, err := v.targets(a)
	if err != nil {
		return a.content(err, v.JSON, map[string]any{"action": "archive", "success": true})
	}
	if v.DryRun {
		return v.preview(a, d, targets)
	}
	return a.each(targets, func(t target) error {
		var done api.Archived
		if record.IsArchived(t.folder) && !v.JSON {
			a.say("%s is archived already", t.id)
		}
		st, _ := record.StatusOf(d, t.folder) // only to tell how far it has come
		err := a.progressing(d, st.Workspace, func() error {
			return a.call(a.ctx, d, nil, api.MethodArchive, api.Archive{ID: t.id, RefuseDirty: v.RefuseDirty, Reason: v.Reason}, &done)
		})
		if err != nil {
			return err
		}
		a.archived(t.id, done, v.JSON)
		return nil
	})
}

// targets are the runs that are meant.
func (v *archiveVerb) targets(a *app) (*state.Dir, []target, error) {
	if v.OlderThan == nil {
		return a.targets(v.selection, false, false)
	}
	if len(v.IDs) > 0 {
		return nil, nil, usage("name runs, or choose them by --older-than and --label")
	}
	want, err := labels(v.Label)
	if err != nil {
		return nil, nil, err
	}
	d, err := a.existing()
	if err != nil {
		return nil, nil, err
	}
	rows, err := listed(d)
	if err != nil {
		return nil, nil, err
	}
	var found []target
	before := time.Now().Add(-time.Duration(*v.OlderThan))
	for _, row := range rows {
		e := row.Execution
		if row.Err == nil && e.EndedAt != nil && e.EndedAt.Before(before) && supervisor.Matches(e.Labels, want) {
			found = append(found, target{e.ID, row.Folder, nil})
		}
	}
	if len(found) == 0 {
		return nil, nil, api.E(api.CodeNotFound, "%w", none("no run ended so long ago"))
	}
	return d, found, nil
}

// archived says what became of a run's workspace.
func (a *app) archived(id string, done api.Archived, asJSON bool) {
	if asJSON {
		a.print(done)
		return
	}
	r := done.Report
	a.say("%s: archived%s", id, outcomeOf(r))
	if r.Kept != nil && r.Kept.Ref != "" {
		a.say("%s: kept under %s: %s", id, r.Kept.Ref, keptLine(*r.Kept))
	}
	if r.Kept != nil && r.Kept.Ref == "" && len(r.Kept.Files) > 0 {
		a.say("%s: kept in the state directory: %s", id, strings.Join(r.Kept.Files, ", "))
	}
	if r.Cleanup != nil {
		a.say("%s: %s", id, oneLine(r.Cleanup.Message))
	}
	if r.Next != "" {
		a.say("hint: %s", r.Next)
	}
	if r.Pending != nil {
		a.say("%s: %s stays for now: %s", id, r.Worktree, oneLine(r.Pending.Message))
		a.say("hint: pintle gc tries again")
	}
}

func outcomeOf(r api.Report) string {
	switch {
	case r.Removed:
		return "; its worktree is removed"
	case len(r.SharedWith) > 0:
		return "; its worktree stays for " + strings.Join(r.SharedWith, ", ")
	}
	return ""
}

// keptLine says what was kept.
func keptLine(k api.Kept) string {
	parts := []string{fmt.Sprintf("%d files", k.Changed)}
	if len(k.State) > 0 {
		parts = append(parts, strings.Join(k.State, ", ")+" in progress")
	}
	if len(k.Files) > 0 {
		parts = append(parts, fmt.Sprintf("%d ignored files beside it", len(k.Files)))
	}
	return strings.Join(parts, ", ")
}

// would is what an archive would do with one run.
type would struct {
	ID       string   `json:"id"`
	Session  string   `json:"session,omitempty"`
	Phase    string   `json:"phase"`
	Worktree string   `json:"worktree,omitempty"` // that would go
	Unsaved  []string `json:"unsaved,omitempty"`  // what would be kept
}

// preview says what would be archived. It changes nothing, and starts nothing but git.
func (v *archiveVerb) preview(a *app, d *state.Dir, targets []target) error {
	return a.each(targets, func(t target) error {
		if record.IsArchived(t.folder) {
			a.say("%s is archived already", t.id)
			return nil
		}
		w, err := a.foresee(d, t)
		if err != nil {
			return err
		}
		if v.JSON {
			a.print(w)
			return nil
		}
		fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%d unsaved\n", printable(w.ID), w.Phase, printable(orDash(w.Worktree)), len(w.Unsaved))
		return nil
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a *app) foresee(d *state.Dir, t target) (would, error) {
	e, err := record.View(d, t.folder)
	w := would{ID: e.ID, Session: e.Session, Phase: e.Phase}
	if session.Phase(e.Phase) == session.Ended {
		w.Phase = e.Outcome
	}
	if err != nil || e.Workspace == "" {
		return w, err
	}
	tree, err := supervisor.TreeOf(d, e.Workspace)
	if err != nil || len(tree.Workspaces) != 1 {
		return w, err
	}
	w.Worktree = tree.Dir
	if u, err := worktree.FindUnsaved(a.ctx, tree.Dir); err == nil {
		w.Unsaved = u.Lines()
	}
	return w, nil
}
