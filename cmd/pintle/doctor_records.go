package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/state"
)

// kind is one kind of records: where they are, and what can be done for one that is damaged.
type kind struct {
	name, files string
	read        func(d *state.Dir, file string) error
	mend        string // NAME is its directory
}

// kinds are the records that doctor reads. What to do is what is true of the supervisor: not every file may be
// moved away. Without its agent.json a runtime counts as one under which nothing was begun, and begins again.
var kinds = []kind{
	{"run", "executions/*/spec.json", readable[record.Spec], giveUp},
	{"run", "executions/*/status.json", readable[record.Status], giveUp},
	{"session", "sessions/*/session.json", readable[record.Session],
		"put a good one back, or, once its command has ended, move it away"},
	{"workspace", "workspaces/*.json", readable[record.Workspace], "put a good one back; without it the worktree that it may have is not archived"},
	{"worktree", "worktrees/*.json", readable[record.Worktree], "put a good one back; without it the directory stays until you remove it: git worktree remove"},
	{"errand", "pending/*.json", readable[record.Errand], "put a good one back, or move it away and archive or restore the workspace again"},
	{"runtime", "runtimes/*/runtime.json", readable[record.Runtime],
		"put a good one back; without it the run is settled when its command has ended"},
	{"runtime", "runtimes/*/agent.json", readable[shim.Agent],
		`put a good one back, never move it away; of a shim that has died {"version":1,"state":"starting"} will do: outcome unknown`},
	{"runtime", "runtimes/*/exit.json", readable[shim.Exit],
		"put a good one back, or move it away: the run counts as one whose shim was killed"},
	{"client", "clients/*.json", readClient,
		"put a good one back, or, once its program has gone, move it away: its id is free then"},
	{"trust", "trusted/*.json", readable[record.TrustRecord], "move it away, and trust again what it held"},
	{"archived run", "archived/*/spec.json", readable[record.Spec], "put a good one back, or move NAME away: its key is free then"},
	{"archived run", "archived/*/status.json", readable[record.Status], "put a good one back, or move NAME away: its key is free then"},
	{"tombstone", "archived/*/tombstone.json", readable[record.Tombstone], "put a good one back, or move NAME away: its key is free then"},
}

const giveUp = "put a good one back, or, if nothing of the run is left, move NAME away: its key is free then"

func readable[T any](d *state.Dir, file string) error {
	_, err := state.Read[T](d, file)
	return err
}

func readClient(d *state.Dir, file string) error {
	_, err := record.ReadClient(d, file)
	return err
}

// checkRecords names every record that cannot be read, and every run whose end is not taken in.
func checkRecords(d *state.Dir) (checks []check) {
	rows, err := record.List(d)
	if err != nil {
		return []check{{"runs", "error", err.Error(), ""}}
	}
	read, of := 0, map[string]string{} // the run that a session, a workspace or a runtime is of
	for _, row := range rows {
		e := row.Execution
		if e.ID == "" {
			spec, _ := record.SpecOf(d, row.Folder)
			e.ID = spec.ID
		}
		of[row.Folder], of[e.Session], of[e.Workspace+".json"] = e.ID, e.ID, e.ID
		if e.Runtime != nil {
			of[e.Runtime.ID] = e.ID
		}
		if row.Err == nil {
			read++
		}
		if row.Err == nil && session.Phase(e.Phase) == session.Ended && !settled(e) {
			detail := e.ID + ": " + e.Outcome + ", not settled" + leftOf(d, row.Folder)
			checks = append(checks, check{"run", "warning", detail, "pintle wait " + record.Quote(e.ID)})
		}
	}
	for _, k := range kinds {
		checks = append(checks, k.check(d, of)...)
	}
	checks = append(checks, checkErrands(d)...)
	return append(checks, check{"runs", "ok", fmt.Sprintf("%d read", read), ""})
}

// leftOf names what lives of a run that is over, by its token. What cleared its environment is not found so: it is
// ended all the same when the end is taken in.
func leftOf(d *state.Dir, folder string) string {
	st, err := state.Read[record.Status](d, record.StatusFile(folder))
	if err != nil || st.RuntimeID == "" {
		return ""
	}
	found, err := proc.WithToken(shim.TokenVariable, func(v string) bool { return v == d.HomeID()+"."+st.RuntimeID })
	if err != nil || len(found) == 0 {
		return ""
	}
	var pids []string
	for _, t := range found {
		pids = append(pids, strconv.Itoa(t.PID))
	}
	return "; it left processes that live: pid " + strings.Join(pids, ", ")
}

// check reads all records of a kind.
func (k kind) check(d *state.Dir, of map[string]string) (checks []check) {
	files, _ := fs.Glob(os.DirFS(d.Path()), k.files) // its only error is of the pattern
	for _, file := range files {
		err := k.read(d, file)
		if err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(file, "/.") {
			continue // a dot-name is being removed
		}
		detail := err.Error()
		if id := of[owner(file)]; id != "" {
			detail = printable(id) + ": " + detail
		}
		checks = append(checks, check{k.name, "error", detail, k.fix(d, file, err)})
	}
	return checks
}

// owner is the name that a record's file goes by: of its directory, or, beside others, its own.
func owner(file string) string {
	dir, name := path.Split(file)
	if strings.Count(file, "/") == 1 {
		return name
	}
	return path.Base(dir)
}

// fix is what can be done for a record that cannot be read. Only of a damaged one there is a copy.
func (k kind) fix(d *state.Dir, file string, err error) string {
	switch {
	case errors.Is(err, state.ErrNewer):
		return "a newer pintle wrote it: use that one"
	case !errors.Is(err, state.ErrDamaged):
		return "make it a file that you can read"
	}
	fix := strings.ReplaceAll(k.mend, "NAME", path.Dir(file))
	if copies, _ := fs.Glob(os.DirFS(d.Path()), "quarantine/"+strings.ReplaceAll(file, "/", "_")+".*"); len(copies) > 0 {
		fix += " (a copy of this one is in " + d.Path("quarantine") + ")"
	}
	return fix
}

// checkErrands names directories of archived workspaces that could not be removed.
func checkErrands(d *state.Dir) (checks []check) {
	for _, e := range supervisor.Errands(d) {
		if e.Stuck != nil {
			checks = append(checks, check{"workspace", "warning", e.Workspace + " is archived, and its directory stays: " + e.Stuck.Message, "pintle gc"})
		}
	}
	return checks
}
