package testscripts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/state"
)

// A world is a state directory, a repository, and a model of both: what was ordered, how it ended, which worktree it was
// in, and what is in that. What cannot be told beforehand, since somebody may be killed, is learnt from what the runs
// noted themselves, outside of the state directory; it must be true from then on.
type world struct {
	*stage
	rt     *rapid.T
	repo   string // the user's checkout
	d      *state.Dir
	jobs   []*task
	trees  map[string]*tree // by the id of their record
	steps  []string
	flag   string          // of the crash point that is armed
	seen   map[string]bool // flags by which a shim died
	serial int
	killed bool // the verb before was, and was repeated
}

// task is an order under a key.
type task struct {
	key, name string // name is its own, also where a key is used again
	where     string // as in places
	kind      string // as in deeds
	words     []string
	archive   bool  // at its end (--rm)
	host      *task // in whose worktree it is

	spoiled bool // somebody died who may have taken it along
	stopped bool // somebody wanted it to end
	opened  bool // what it waits for is there
	end     *ending
	// archived: its records are; expired: only its tombstone is left; freed: its key is another's.
	archived, expired, freed bool

	workspace, tree string
}

// ending is what was told of an end. It never changes.
type ending struct {
	outcome, text string
	code          int
}

// tree is a worktree of pintle's.
type tree struct {
	last  map[string]string // what was in it when it was seen last
	gone  bool
	stale bool // what was kept of it has expired
}

// deed is what every run does: it notes that it begins, leaves files of all sorts, notes that, and then what its kind does.
const deed = `echo "$0 $PINTLE_RUNTIME" >> "$1/launches"
mkdir -p 'd ü' && printf 'one %s\n' "$0" > "new $0" && printf 'two %s' "$0" > "d ü/$0" && chmod 755 "d ü/$0" &&
ln -s "new $0" "link $0" && printf 'TOKEN=%s\n' "$0" > ".env-$0" && echo "by $0" >> tracked || exit 9
`

var deeds = map[string]string{
	"quick":  `echo "$0" >> "$1/wrote"; echo "said $0"`,
	"fails":  `echo "$0" >> "$1/wrote"; echo "said $0"; exit 3`,
	"commit": `git add -A && git -c user.name=m -c user.email=m@x commit -qm "$0" && echo "$0" >> "$1/wrote"; echo "said $0"`,
	"gate":   `echo "$0" >> "$1/wrote"; until [ -e "$1/gate-$0" ]; do sleep 0.01; done; echo "said $0"`,
}

// left are the files that a run left.
func (j *task) left() map[string]string {
	return map[string]string{
		"new " + j.name: "600 one " + j.name + "\n", "d ü/" + j.name: "700 two " + j.name, "link " + j.name: "-> new " + j.name,
		".env-" + j.name: "600 TOKEN=" + j.name + "\n",
	}
}

// newWorld makes the repository, with a recipe that is trusted.
func newWorld(s *stage, rt *rapid.T) *world {
	w := &world{stage: s, rt: rt, repo: filepath.Join(s.dir, "repo"), trees: map[string]*tree{}, seen: map[string]bool{}}
	recipe := fmt.Sprintf("[worktree]\nsetup = '''echo \"${PINTLE_EXECUTION#* }\" >> %[1]s/setups; echo set up > set-up'''\n"+
		"cleanup = '''echo \"${PINTLE_EXECUTION#* }\" >> %[1]s/cleanups'''\ncopy = [\".env.local\"]\n", s.work)
	w.git(s.dir, "init", "-q", "-b", "main", w.repo)
	for name, text := range map[string]string{".pintle.toml": recipe, "tracked": "", ".gitignore": ".env*\n", ".env.local": "A=1\n"} {
		w.must(os.WriteFile(filepath.Join(w.repo, name), []byte(text), 0o644))
	}
	w.git(w.repo, "add", "-A")
	w.git(w.repo, "-c", "user.name=m", "-c", "user.email=m@x", "commit", "-qm", "base")
	w.pintle("trust", "-C", w.repo)
	d, err := state.OpenExisting(s.home)
	w.must(err)
	w.d = d
	return w
}

func (w *world) must(err error) {
	if err != nil {
		w.rt.Fatal(err)
	}
}

func (w *world) git(dir string, args ...string) string {
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.CombinedOutput()
	if err != nil {
		w.fail("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// step notes what is done, for whoever reads of a failure.
func (w *world) step(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

// fail ends the sequence. rapid does not show what failed first if it does not fail again.
func (w *world) fail(format string, args ...any) {
	w.rt.Helper()
	w.step("FAILED: "+format, args...)
	w.rt.Fatalf(format, args...)
}

// fault is fail for what is left when all is over: there may be more.
func (w *world) fault(format string, args ...any) {
	w.rt.Helper()
	w.step("FAILED: "+format, args...)
	w.rt.Errorf(format, args...)
}

// pintle runs a verb, again if it was killed.
func (w *world) pintle(args ...string) (code int, out, errs string) {
	for w.killed = false; ; w.killed = true {
		var o, e bytes.Buffer
		c := w.command(args...)
		c.Stdout, c.Stderr = &o, &e
		w.must(c.Start())
		hung := time.AfterFunc(patience, func() { _ = c.Process.Signal(syscall.SIGQUIT) })
		_ = c.Wait()
		w.step("    %q: %v %s", args[:min(len(args), 12)], c.ProcessState, strings.TrimSpace(e.String()))
		if !hung.Stop() {
			w.fail("%q hung: %s", args, e.String())
		}
		if code := c.ProcessState.ExitCode(); code >= 0 {
			return code, o.String(), e.String()
		}
		if w.killed {
			w.fail("%q is killed again", args) // a point kills once
		}
	}
}

// does runs a verb whose exit code is known.
func (w *world) does(want int, args ...string) {
	if code, _, errs := w.pintle(args...); code != want {
		w.fail("%q: exit %d, want %d: %s", args, code, want, errs)
	}
}

// wait waits for a fact. Each look may have a supervisor started, if the one that should see to it was killed.
func (w *world) wait(what string, fact func() bool) {
	for limit := time.Now().Add(patience / 3); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			w.fail("never came true: %s; left: %+v", what, w.tagged())
		}
		if len(w.tagged()) == 0 {
			w.pintle("supervise", "restart")
		}
	}
}

// noted are the first words of the lines of a file of the runs' own.
func (w *world) noted(file string) map[string]int {
	counts := map[string]int{}
	data, _ := os.ReadFile(filepath.Join(w.work, file))
	for line := range strings.Lines(string(data)) {
		counts[strings.Fields(line)[0]]++
	}
	return counts
}

// alive are the jobs whose keys are their own.
func (w *world) alive(which func(*task) bool) (found []*task) {
	for _, j := range w.jobs {
		if !j.freed && which(j) {
			found = append(found, j)
		}
	}
	return found
}
