package testscripts

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
)

// settle lets everything come to its end and looks for what must not be left: first with all that was made archived, then
// with all of it restored.
func (w *world) settle() {
	w.step("settle")
	w.casualties()
	w.crash, w.flag = "", ""
	w.strikeDown("supervisor")
	for _, j := range w.alive(open) {
		if j.kind == "gate" {
			w.letGo(j)
		} else {
			w.order(j)
		}
	}
	w.step("all are archived")
	for _, ws := range w.workspaces() {
		w.does(0, "workspace", "archive", ws.ID)
	}
	for _, j := range w.alive(inUse) {
		w.shelve(j)
	}
	w.look()
	w.bare()
	w.step("all are restored")
	for _, ws := range w.workspaces() {
		w.does(0, "workspace", "restore", ws.ID)
	}
	for _, j := range w.alive(whichever) {
		j.archived, j.archive = j.expired, false
	}
	w.look()
	w.tidied()
	w.rest()
}

func (w *world) workspaces() (all []record.Workspace) {
	files, err := filepath.Glob(filepath.Join(w.home, "workspaces", "*.json"))
	w.must(err)
	for _, file := range files {
		ws, err := state.Read[record.Workspace](w.d, "workspaces/"+filepath.Base(file))
		w.must(err)
		all = append(all, ws)
	}
	return all
}

func (w *world) workspaceOf(j *task) (record.Workspace, error) {
	return state.Read[record.Workspace](w.d, record.WorkspaceFile(j.workspace))
}

// bare: with everything archived no worktree is left, and nothing in executions/.
func (w *world) bare() {
	for _, rec := range w.records() {
		if rec.State != record.TreeGone || len(rec.Workspaces) > 0 {
			w.fault("with all archived, worktree %s is %s, of %v", rec.ID, rec.State, rec.Workspaces)
		}
	}
	_ = filepath.WalkDir(filepath.Join(w.home, "worktrees"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.Count(strings.TrimPrefix(path, w.home), "/") > 2 {
			w.fault("%s is left", path)
			return fs.SkipDir
		}
		return nil
	})
	w.empty(filepath.Join(w.home, "executions"))
	w.tidied()
}

// tidied: nothing is left over of what was done to worktrees.
func (w *world) tidied() {
	w.empty(filepath.Join(w.home, "pending"))
	w.empty(filepath.Join(w.home, "quarantine"))
	if refs := w.git(w.repo, "for-each-ref", "refs/pintle/tmp"); refs != "" {
		w.fault("temporary references: %s", refs)
	}
	_ = filepath.WalkDir(filepath.Join(w.repo, ".git"), func(path string, e fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && (strings.HasSuffix(name, ".lock") && name != "pintle.lock" || strings.HasPrefix(name, "pintle-removed-")) {
			w.fault("%s is left", path)
		}
		return nil
	})
	dots, _ := filepath.Glob(filepath.Join(w.home, "worktrees", "*", ".*"))
	for _, dot := range dots {
		w.fault("%s is left", dot)
	}
	for name, n := range w.noted("setups") {
		if n > 1 && strings.HasPrefix(name, "t-") {
			w.fault("%s was set up %d times", name, n)
		}
	}
}

func (w *world) empty(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		w.fault("%s/%s is left", dir, e.Name())
	}
}

// rest: nothing is left running.
func (w *world) rest() {
	w.wait("nothing of a run is left", func() bool {
		left := w.tagged()
		return len(left) <= supervisors(left)
	})
	w.does(0, "supervise", "stop")
	w.until("no supervisor is left", func() bool { return len(w.tagged()) == 0 })
	w.empty(filepath.Join(w.home, "runtimes"))
}
