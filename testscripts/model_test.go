package testscripts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
)

// Whatever is ordered, repeated, stopped, archived, restored, thrown away and killed, in whatever order: nothing is launched
// twice, no result and no file is lost, and nothing is left. -rapid.seed repeats a sequence, PINTLE_LONG=1 tries many.
func TestModel_X7_X8_X16_X18_X21_NothingTwiceNothingLost(t *testing.T) {
	checks, steps := "3", "18"
	if os.Getenv("PINTLE_LONG") != "" {
		checks, steps = "60", "40"
	}
	defer set(t, "rapid.checks", checks)()
	defer set(t, "rapid.steps", steps)()
	defer set(t, "rapid.nofailfile", "true")()
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t, "")
		defer s.strike()
		w := newWorld(s, rt)
		defer func() {
			if rt.Failed() {
				log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log"))
				t.Logf("the sequence:\n%s\nsupervisor.log:\n%s", strings.Join(w.steps, "\n"), log)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { w.look() },
			"create":  w.create,
			"order":   w.create, // twice as often
			"repeat":  w.repeat,
			"open":    w.open,
			"end":     w.endIt,
			"archive": w.archiveIt,
			"restore": w.restoreIt,
			"rm":      w.rm,
			"gc":      w.gc,
			"kill":    w.kill,
			"tidy":    w.tidy,
		})
		w.settle()
	})
}

// ours are the flags that were set here: package flag takes them for given from then on.
var ours = map[string]bool{}

// set sets a flag of rapid's, if nobody has, and returns what sets it back.
func set(t *testing.T, name, value string) (back func()) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name && !ours[name] })
	f := flag.Lookup(name)
	if given || f == nil {
		return func() {}
	}
	was := f.Value.String()
	ours[name] = true
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Value.Set(was) }
}

// places are where a run may be.
var places = map[string][]string{
	"checkout": {},
	"tree":     {"--worktree"},
	"branch":   {"--branch", "work"},
	"other":    {"--branch", "feature/other"},
	"reuse":    {"--branch", "work", "--worktree-reuse", "reuse"},
	"beside":   nil, // in the worktree of another
}

// one draws one of the jobs that which accepts.
func (w *world) one(rt *rapid.T, which func(*task) bool) *task {
	found := w.alive(which)
	if len(found) == 0 {
		rt.Skip()
	}
	keys := make([]string, len(found))
	for i, j := range found {
		keys[i] = j.key
	}
	return found[slices.Index(keys, rapid.SampledFrom(keys).Draw(rt, "key"))]
}

func open(j *task) bool    { return j.end == nil }
func over(j *task) bool    { return j.end != nil }
func whichever(*task) bool { return true }
func housed(j *task) bool  { return j.tree != "" && !j.archived && !j.archive && over(j) }
func inUse(j *task) bool   { return !j.archived }

// create gives an order under a key that is free.
func (w *world) create(rt *rapid.T) {
	key := rapid.SampledFrom([]string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}).Draw(rt, "key")
	if len(w.alive(func(j *task) bool { return j.key == key })) > 0 {
		rt.Skip()
	}
	w.serial++
	j := &task{
		key: key, name: fmt.Sprintf("%s.%d", key, w.serial),
		kind:    rapid.SampledFrom([]string{"quick", "fails", "commit", "gate", "gate"}).Draw(rt, "kind"),
		where:   rapid.SampledFrom([]string{"tree", "branch", "branch", "other", "reuse", "beside", "checkout"}).Draw(rt, "where"),
		archive: rapid.IntRange(0, 3).Draw(rt, "--rm") == 0,
	}
	where := places[j.where]
	if j.where == "beside" {
		j.host = w.one(rt, housed)
		where = []string{"--workspace", j.host.workspace}
	}
	if j.where == "checkout" && j.kind == "commit" {
		j.kind = "quick" // the user's history is not for this
	}
	j.words = slices.Concat(where, []string{"-a", "command", "--", "sh", "-c", deed + deeds[j.kind], j.name, w.work})
	if j.host == nil {
		j.words = slices.Concat([]string{"-C", w.repo}, j.words)
	}
	w.step("create %s %s %s rm=%v", j.name, j.kind, j.where, j.archive)
	w.jobs = append(w.jobs, j)
	w.order(j)
	w.departed(j)
}

// order gives the order of a job, for the first time or again, and waits until its files are written or it is over.
func (w *world) order(j *task) {
	words := []string{"run", "--id", j.key}
	if j.archive {
		words = append(words, "--rm")
	}
	if j.kind == "gate" && !j.opened {
		w.does(0, slices.Concat(words, []string{"-d"}, j.words)...)
		w.wait(j.name+" waits", func() bool { return w.noted("wrote")[j.name] > 0 || w.again(j).end != nil })
		return
	}
	code, out, errs := w.pintle(append(words, j.words...)...)
	w.again(j)
	if j.end == nil {
		w.fail("run %s returned %d before its end is on record: %s", j.key, code, errs)
	}
	if code != j.end.code || !j.expired && out != j.end.text {
		w.fail("run %s: exit %d, %q, and it is on record as %+v: %s", j.key, code, out, *j.end, errs)
	}
}

// again is the job after one more look at its record.
func (w *world) again(j *task) *task {
	w.casualties()
	w.lookAt(j)
	return j
}

// departed waits until what was to be archived at its end is.
func (w *world) departed(j *task) {
	if !j.archive || j.archived || j.end == nil || j.end.outcome != "completed" {
		return
	}
	w.wait(j.name+" is archived", func() bool {
		folder, err := record.Locate(w.d, record.FolderOf(j.key))
		_, pending := os.Stat(w.d.Path(record.ErrandFile(j.workspace)))
		return err == nil && record.IsArchived(folder) && os.IsNotExist(pending)
	})
	j.archived = true
}

// repeat gives an order again: it is joined or answered. Another one under its key is refused.
func (w *world) repeat(rt *rapid.T) {
	j := w.one(rt, whichever)
	if rapid.Bool().Draw(rt, "another payload") {
		w.step("repeat %s with another payload", j.name)
		w.does(6, slices.Concat([]string{"run", "-d", "--id", j.key}, j.words, []string{"more"})...)
		return
	}
	w.step("repeat %s", j.name)
	w.order(j)
}

// open lets one go on that waits.
func (w *world) open(rt *rapid.T) {
	j := w.one(rt, func(j *task) bool { return open(j) && j.kind == "gate" })
	w.step("open %s", j.name)
	w.letGo(j)
}

func (w *world) letGo(j *task) {
	j.opened = true
	w.must(os.WriteFile(filepath.Join(w.work, "gate-"+j.name), nil, 0o600))
	w.pintle("wait", j.key)
	if w.again(j).end == nil {
		w.fail("wait %s: it has not ended", j.key)
	}
	w.departed(j)
}

// endIt stops or interrupts.
func (w *world) endIt(rt *rapid.T) {
	verb := rapid.SampledFrom([]string{"stop", "interrupt"}).Draw(rt, "verb")
	j := w.one(rt, whichever)
	w.step("%s %s", verb, j.name)
	j.stopped = true
	w.does(0, verb, j.key)
	if w.again(j).end == nil {
		w.fail("%s %s: it has not ended", verb, j.key)
	}
	w.departed(j)
}

// archiveIt archives a run, also one that is archived.
func (w *world) archiveIt(rt *rapid.T) {
	j := w.one(rt, whichever)
	if rapid.IntRange(0, 2).Draw(rt, "--refuse-dirty") == 0 && !j.archived {
		w.step("archive --refuse-dirty %s", j.name)
		if dirty := w.dirty(j); dirty != "" {
			w.does(6, "archive", "--refuse-dirty", j.key)
			return
		}
		j.stopped, j.archived = true, true
		w.does(0, "archive", "--refuse-dirty", j.key)
		return
	}
	w.step("archive %s", j.name)
	w.shelve(j)
}

func (w *world) shelve(j *task) {
	j.stopped, j.archived = true, true
	w.does(0, "archive", j.key)
	if w.again(j).end == nil {
		w.fail("archive %s: it has not ended", j.key)
	}
}

// dirty is what git says of the worktree of a job that is the last one in it.
func (w *world) dirty(j *task) string {
	for _, rec := range w.records() {
		if rec.ID == j.tree && rec.State == record.TreeReady && len(rec.Workspaces) == 1 {
			return w.git(rec.Dir, "status", "--porcelain")
		}
	}
	return ""
}

// restoreIt brings a workspace back, also one that is there.
func (w *world) restoreIt(rt *rapid.T) {
	j := w.one(rt, func(j *task) bool { return j.workspace != "" })
	w.step("restore %s", j.name)
	w.bringBack(j)
}

func (w *world) bringBack(j *task) {
	if ws, err := w.workspaceOf(j); err != nil || j.archived && ws.ArchivedAt == nil && !j.expired {
		w.fail("the workspace of archived %s: %+v, %v", j.key, ws, err)
	}
	w.does(0, "workspace", "restore", j.workspace)
	if j.archived {
		j.archived, j.archive = j.expired, false
	}
}

// rm frees a key.
func (w *world) rm(rt *rapid.T) {
	j := w.one(rt, whichever)
	w.step("rm %s", j.name)
	if j.end == nil {
		w.does(7, "rm", j.key)
		return
	}
	if code, _, errs := w.pintle("rm", j.key); code != 0 && !(code == 4 && w.killed) { // it was done, and killed then
		w.fail("rm %s: exit %d: %s", j.key, code, errs)
	}
	j.freed = true
}

// gc throws away what is not needed, or all that it ever would.
func (w *world) gc(rt *rapid.T) {
	all := rapid.IntRange(0, 3).Draw(rt, "all of it") == 0
	w.step("gc, all of it: %v", all)
	if !all {
		w.does(0, "gc")
		return
	}
	w.does(0, "gc", "--older-than", "0s")
	for _, j := range w.alive(func(j *task) bool { return j.archived }) {
		j.expired = true
	}
	for _, t := range w.trees {
		t.stale = t.stale || t.gone
	}
}

// tidy is what git does to a repository.
func (w *world) tidy(*rapid.T) {
	w.step("git gc, git worktree prune")
	w.git(w.repo, "gc", "-q")
	w.git(w.repo, "worktree", "prune", "--expire=now")
}

// passed are crash points that a sequence may come by.
var passed = strings.Fields(`
	journal.append journal.appended journal.synced record.archive record.claim record.expire record.moved record.unarchive
	shim.announced shim.began shim.drained shim.exited shim.forked shim.locked shim.recorded shim.starting shim.swept shim.told
	state.locked state.renamed state.synced state.write state.written
	supervisor.archived supervisor.brought_back supervisor.cancel supervisor.closed supervisor.closing supervisor.coming supervisor.condemned
	supervisor.ended supervisor.errand supervisor.errand_done supervisor.kept supervisor.kept_recorded supervisor.launched
	supervisor.prepared supervisor.restored supervisor.started supervisor.taken supervisor.tree_made supervisor.tree_named
	supervisor.tree_planned supervisor.tree_removed supervisor.tree_undone supervisor.unreferred`)

// kill kills somebody: now, or, where it hurts, as soon as he comes by.
func (w *world) kill(rt *rapid.T) {
	switch who := rapid.SampledFrom([]string{"supervisor", "shim", "at", "at", "at"}).Draw(rt, "who"); who {
	case "supervisor", "shim":
		w.step("kill a %s", who)
		w.strikeDown(who)
	default:
		point, n := rapid.SampledFrom(passed).Draw(rt, "point"), rapid.IntRange(1, 4).Draw(rt, "passing")
		w.step("kill whoever passes %s#%d", point, n)
		w.arm(point, n)
	}
}

// arm has whoever passes a point as the nth die there. The supervisor that is running knows nothing of that: another has
// its place.
func (w *world) arm(point string, n int) {
	w.casualties()
	w.serial++
	w.flag = filepath.Join(w.dir, fmt.Sprintf("flag%d", w.serial))
	w.crash = fmt.Sprintf("kill:%s#%d@%s", point, n, w.flag)
	w.strikeDown("supervisor")
}

func (w *world) strikeDown(who string) {
	arg := map[string]string{"supervisor": "supervise", "shim": "shim"}[who]
	for _, t := range w.tagged() {
		if len(t.Args) > 1 && t.Args[1] == arg {
			if who == "shim" {
				w.spoil()
			}
			_ = proc.Signal(t.Identity, syscall.SIGKILL) // it may be gone already
			return
		}
	}
}
