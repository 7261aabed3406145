package testscripts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
)

// look learns what has become of everything, and holds it against what is known.
func (w *world) look() {
	w.casualties()
	for name, n := range w.noted("launches") {
		if n > 1 {
			w.fail("%s was launched %d times", name, n)
		}
	}
	for _, j := range w.alive(func(*task) bool { return true }) {
		w.lookAt(j)
	}
	w.lookAtTrees()
	w.lookAtCheckout()
}

// casualties spoils what was open when a shim died by the crash point that was armed.
func (w *world) casualties() {
	if w.flag == "" || w.seen[w.flag] {
		return
	}
	if who, _ := os.ReadFile(w.flag); strings.Contains(string(who), "shim") {
		w.seen[w.flag] = true
		w.spoil()
	}
}

func (w *world) spoil() {
	for _, j := range w.alive(func(j *task) bool { return j.end == nil }) {
		j.spoiled = true
	}
}

// lookAt holds what is on record of a job against what is known of it.
func (w *world) lookAt(j *task) {
	folder, err := record.Locate(w.d, record.FolderOf(j.key))
	if err != nil {
		w.fail("lost: %s is not on record: %v", j.key, err)
	}
	e, err := record.View(w.d, folder)
	if err != nil {
		w.fail("lost: %s: %v", j.key, err)
	}
	if record.IsArchived(folder) != j.archived && !(j.archive && !j.archived) {
		w.fail("%s is in %s, and archived is %v", j.key, folder, j.archived)
	}
	if e.ResultExpired != j.expired {
		w.fail("%s: expired is %v, want %v", j.key, e.ResultExpired, j.expired)
	}
	if j.workspace == "" && e.Workspace != "" {
		j.workspace = e.Workspace
	}
	if ws, err := state.Read[record.Workspace](w.d, record.WorkspaceFile(j.workspace)); err == nil && j.workspace != "" {
		j.tree = ws.Worktree
		if (ws.ArchivedAt != nil) != j.archived && !j.archive && !j.expired {
			w.fail("the workspace %s of %s: archived is %v, want %v", ws.ID, j.key, ws.ArchivedAt != nil, j.archived)
		}
	}
	// What a reader concludes from a dead shim is no end yet: somebody has to put it on record.
	if st, err := record.StatusOf(w.d, folder); !e.ResultExpired && (err != nil || st.Phase != "ended") {
		if j.end != nil {
			w.fail("lost: %s had ended as %+v and is %s, %v", j.key, *j.end, st.Phase, err)
		}
		return
	}
	w.ended(j, ending{e.Outcome, w.text(j, folder), *e.ExitCode})
}

func (w *world) text(j *task, folder string) string {
	if j.expired {
		return j.end.text
	}
	text, err := record.Text(w.d, folder)
	w.must(err)
	return string(text)
}

// ended holds an end against what may come of a job, and against what was told before.
func (w *world) ended(j *task, e ending) {
	if j.end != nil {
		if *j.end != e {
			w.fail("lost: %s was %+v and is %+v", j.key, *j.end, e)
		}
		return
	}
	may := map[string]bool{
		"completed": j.kind != "fails" && (j.kind != "gate" || j.opened), "failed": j.kind == "fails" || j.spoiled,
		"cancelled": j.stopped, "agent_died": j.spoiled, "unknown": j.spoiled,
	}
	switch {
	case !may[e.outcome]:
		w.fail("%s (%s) ended as %+v; it may be %v", j.key, j.kind, e, may)
	case e.outcome == "completed" && e.text != "said "+j.name+"\n":
		w.fail("lost: %s completed with %q", j.key, e.text)
	case e.outcome == "completed" && w.noted("launches")[j.name] != 1:
		w.fail("%s completed and was never launched", j.key)
	}
	j.end = &e
}

// wrote are the jobs that have left their files in a worktree; "" stands for the user's checkout.
func (w *world) wrote(id string) (found []*task) {
	noted := w.noted("wrote")
	for _, j := range w.jobs {
		if noted[j.name] > 0 && j.tree == id {
			found = append(found, j)
		}
	}
	return found
}

// lookAtTrees holds every worktree that is there against what the runs left in it, and one that came back against what it
// was before.
func (w *world) lookAtTrees() {
	there := map[string]bool{}
	for _, line := range strings.Split(w.git(w.repo, "worktree", "list", "--porcelain"), "\n") {
		if dir, ok := strings.CutPrefix(line, "worktree "); ok && dir != w.repo {
			there[dir] = true
		}
	}
	for _, rec := range w.records() {
		t := w.trees[rec.ID]
		if t == nil {
			t = &tree{}
			w.trees[rec.ID] = t
		}
		switch rec.State {
		case record.TreeReady:
			if !there[rec.Dir] {
				w.fail("git does not know the worktree %s of %s", rec.Dir, rec.ID)
			}
			delete(there, rec.Dir)
			w.lookIn(rec, t)
		case record.TreeGone:
			t.gone = true
		default:
			w.fail("worktree %s is %s", rec.ID, rec.State)
		}
	}
	if len(there) > 0 {
		w.fail("worktrees of which no record knows: %v", slices.Collect(maps.Keys(there)))
	}
}

func (w *world) records() (all []record.Worktree) {
	files, err := filepath.Glob(filepath.Join(w.home, "worktrees", "*.json"))
	w.must(err)
	for _, file := range files {
		rec, err := state.Read[record.Worktree](w.d, "worktrees/"+filepath.Base(file))
		w.must(err)
		all = append(all, rec)
	}
	return all
}

func (w *world) lookIn(rec record.Worktree, t *tree) {
	found := w.files(rec.Dir)
	if !t.stale {
		for _, j := range w.wrote(rec.ID) {
			w.has(rec.Dir, found, j)
		}
		if t.gone && t.last != nil { // else it came and went unseen
			w.same(rec.Dir, found, t.last)
		}
	}
	t.gone, t.last = false, found
}

func (w *world) lookAtCheckout() {
	found := w.files(w.repo)
	for _, j := range w.wrote("") {
		w.has(w.repo, found, j)
	}
}

// has holds a directory against what a run left in it.
func (w *world) has(dir string, found map[string]string, j *task) {
	for name, want := range j.left() {
		if found[name] != want {
			w.fail("lost: %q of %s in %s is %q, want %q", name, j.name, dir, found[name], want)
		}
	}
	if !strings.Contains(found["tracked"], "by "+j.name+"\n") {
		w.fail("lost: what %s added to tracked in %s: %q", j.name, dir, found["tracked"])
	}
}

func (w *world) same(dir string, found, want map[string]string) {
	for name := range want {
		if found[name] != want[name] {
			w.fail("lost: %q in %s is %q, and was %q before", name, dir, found[name], want[name])
		}
	}
	for name := range found {
		if _, ok := want[name]; !ok {
			w.fail("%q in %s was not there before", name, dir)
		}
	}
}

// files are the files below a directory, but for git's own: mode and content, or where a link points to.
func (w *world) files(dir string) map[string]string {
	found := map[string]string{}
	w.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case name == ".git" && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || name == ".git":
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			found[name] = "-> " + to
			return err
		}
		info, err := e.Info()
		data, readErr := os.ReadFile(path)
		if err == nil {
			found[name] = fmt.Sprintf("%o %s", info.Mode().Perm()&0o700, data)
		}
		return errors.Join(err, readErr)
	}))
	return found
}
