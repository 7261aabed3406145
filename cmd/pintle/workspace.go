package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// workspaceVerb is `pintle workspace`.
type workspaceVerb struct {
	Ls      workspaceLs      `cmd:"" help:"List workspaces."`
	Show    workspaceShow    `cmd:"" help:"Show one."`
	Path    workspacePath    `cmd:"" help:"Print its directory."`
	Create  workspaceCreate  `cmd:"" help:"Make one without a run; print its id."`
	Archive workspaceArchive `cmd:"" help:"Archive one, with its session."`
	Restore workspaceRestore `cmd:"" help:"Bring an archived one back, with its session and its work."`
}

type workspaceLs struct {
	output
	All bool `short:"a" help:"Archived ones too."`
}

// Run lists workspaces, the newest first; with JSON the oldest.
func (v *workspaceLs) Run(a *app) error {
	d, err := a.existing()
	if err != nil {
		return err
	}
	list := []api.Workspace{}
	if d != nil {
		for _, w := range supervisor.Workspaces(d, v.All) {
			list = append(list, supervisor.WorkspaceOf(w))
		}
	}
	if v.JSON {
		a.print(list)
		return nil
	}
	out := bufio.NewWriter(a.stdout)
	defer out.Flush()
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	defer w.Flush()
	if len(list) > 0 {
		fmt.Fprintln(w, "ID\tSTATE\tBRANCH\tDIRECTORY")
	}
	for i := range list {
		one := list[len(list)-1-i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", one.ID, workspaceWord(one), printable(orDash(one.Branch)), printable(one.Cwd))
	}
	return nil
}

func workspaceWord(w api.Workspace) string {
	switch {
	case w.ArchivedAt != nil && w.Report != nil && w.Report.Pending != nil:
		return "archived (its directory stays)"
	case w.ArchivedAt != nil:
		return "archived"
	case w.Worktree != "":
		return "worktree"
	}
	return "checkout"
}

type workspaceShow struct {
	output
	ID string `arg:"" help:"The workspace, or a run in it."`
}

// Run prints one workspace.
func (v *workspaceShow) Run(a *app) error {
	_, w, err := a.workspace(v.ID)
	if err != nil {
		return err
	}
	if v.JSON {
		a.print(supervisor.WorkspaceOf(w))
		return nil
	}
	data, err := json.MarshalIndent(supervisor.WorkspaceOf(w), "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, a.shown(string(data)))
	return nil
}

type workspacePath struct {
	output
	ID string `arg:"" help:"The workspace, or a run in it."`
}

// Run prints the directory, for $(…).
func (v *workspacePath) Run(a *app) error {
	cwd, err := a.directory(v.ID)
	if err != nil {
		return err
	}
	if v.JSON {
		a.print(cwd)
		return nil
	}
	fmt.Fprintln(a.stdout, a.shown(cwd))
	return nil
}

// directory is that of a workspace that is not archived.
func (a *app) directory(id string) (string, error) {
	_, w, err := a.workspace(id)
	if err == nil && w.ArchivedAt != nil {
		return "", api.E(api.CodeArchived, "the workspace %s is archived", w.ID).WithNext("pintle workspace restore " + w.ID)
	}
	return w.Cwd, err
}

// workspace finds a workspace by its id, a unique prefix of that, or a run in it.
func (a *app) workspace(id string) (*state.Dir, record.Workspace, error) {
	d, err := a.existing()
	if err != nil {
		return nil, record.Workspace{}, err
	}
	if d == nil {
		return nil, record.Workspace{}, api.E(api.CodeNotFound, "no workspace is called %s: there are none yet", record.Quote(id))
	}
	w, err := record.FindWorkspace(d, id)
	return d, w, err
}

type workspaceCreate struct {
	output
	treeFlags
	Dir string `short:"C" name:"dir" help:"Directory of the repository, or the workspace's own." placeholder:"DIR"`
}

// Run makes a workspace.
func (v *workspaceCreate) Run(a *app) error {
	if err := v.check(); err != nil {
		return err
	}
	cwd, err := filepath.Abs(v.Dir)
	if err != nil {
		return err
	}
	if err := (&runVerb{orderFlags: orderFlags{Dir: cwd}}).there(a, cwd); err != nil {
		return err
	}
	c := api.CreateWorkspace{ID: newWorkspaceID(), Cwd: cwd}
	if v.wanted() {
		tree, err := v.order(a, cwd)
		if err != nil {
			return err
		}
		if c.Tree, err = json.Marshal(tree); err != nil {
			return err
		}
	}
	d, err := a.open(a.ctx)
	if err != nil {
		return err
	}
	if v.wanted() && !v.JSON {
		a.say("workspace %s", c.ID) // who leaves before it is made can look, and archive it
	}
	var w api.Workspace
	if err := a.call(a.ctx, d, nil, api.MethodWsCreate, c, &w); err != nil {
		return err
	}
	if v.JSON {
		a.print(w)
		return nil
	}
	fmt.Fprintln(a.stdout, w.ID)
	return nil
}

func newWorkspaceID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "w-" + hex.EncodeToString(b[:])
}

type workspaceArchive struct {
	output
	ID          string `arg:"" help:"The workspace, or a run in it."`
	RefuseDirty bool   `name:"refuse-dirty" help:"Refuse what git would not find again, rather than keep it."`
	Reason      string `help:"Why; it is kept." placeholder:"TEXT"`
}

// Run archives a workspace with its session.
func (v *workspaceArchive) Run(a *app) error {
	d, w, err := a.workspace(v.ID)
	if err != nil {
		return err
	}
	if w.ArchivedAt != nil && !v.JSON {
		a.say("%s is archived already", w.ID)
	}
	var done api.Archived
	err = a.progressing(d, w.ID, func() error {
		return a.call(a.ctx, d, nil, api.MethodWsArchive, api.Archive{ID: w.ID, RefuseDirty: v.RefuseDirty, Reason: v.Reason}, &done)
	})
	if err != nil {
		return err
	}
	a.archived(w.ID, done, v.JSON)
	return nil
}

type workspaceRestore struct {
	output
	ID string `arg:"" help:"The workspace, or a run in it."`
}

// Run brings a workspace back, and prints its directory.
func (v *workspaceRestore) Run(a *app) error {
	d, w, err := a.workspace(v.ID)
	if err != nil {
		return err
	}
	if w.ArchivedAt == nil {
		a.say("%s is not archived", w.ID)
	}
	var back api.Restored
	if err := a.call(a.ctx, d, nil, api.MethodWsRestore, api.Target{ID: w.ID}, &back); err != nil {
		return err
	}
	for _, note := range back.Notes {
		a.say("%s: %s", w.ID, note)
	}
	if v.JSON {
		a.print(back)
		return nil
	}
	fmt.Fprintln(a.stdout, a.shown(back.Cwd))
	return nil
}
