package testscripts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// trees is the name under which a play tells what became of its repository and of all records beside it.
const trees = "(trees)"

// treePlays are about worktrees: made, left, kept and brought back. Their keys have two letters: several processes serve
// each. In a quick walk each tries the points that no other passes in that state.
func treePlays() []play {
	return []play{
		{name: "Worktree", act: actWorktree, last: true, quick: either("supervisor.tree", "supervisor.moved_in", "supervisor.suppl", "supervisor.set_up", "supervisor.put_away", "supervisor.prepared", "record.claim")},
		{name: "SetupFails", act: actSetupFails, last: true, quick: either("supervisor.tree", "supervisor.given_up", "supervisor.said")},
		{name: "SetupStopped", act: actSetupStopped, last: true, quick: either("supervisor.given_up", "supervisor.cancel", "supervisor.closed", "supervisor.put_away")},
		{name: "Archive", act: actArchive, last: true, quick: either(
			"supervisor.errand", "supervisor.closed", "supervisor.unref", "supervisor.kept", "supervisor.tree_removed", "supervisor.told",
			"supervisor.archived", "supervisor.co", "supervisor.bro", "supervisor.re", "record.arch", "record.un", "record.moved")},
		{name: "Restore", act: actRestore, last: true, quick: either("supervisor.coming", "supervisor.bro", "supervisor.re")},
		{name: "Rm", act: actRm, last: true, quick: either("supervisor.ended", "supervisor.errand", "supervisor.arch")},
		{name: "Shared", act: actShared, last: true, quick: either("supervisor.unref", "supervisor.shared", "supervisor.lodged")},
		{name: "Create", act: actCreate, last: true, quick: either("supervisor.errand", "supervisor.tree", "supervisor.moved", "supervisor.set_up", "supervisor.unref")},
		{name: "Expire", act: actExpire, last: true, quick: either("record.exp", "record.forg", "gc.")},
	}
}

// either chooses the points that begin with one of some words.
func either(words ...string) func(string) bool {
	return func(point string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(point, word) })
	}
}

// TestX8_CrashPointsOfWorktrees kills at every point of create, control, archive and restore.
func TestX8_CrashPointsOfWorktrees(t *testing.T) { walk(t, treePlays()) }

// actWorktree makes a worktree with set-up, and gives the order again.
func actWorktree(s *stage) []string {
	s.found("echo one >> $O/setup.one", `test "$TOKEN" && cat .env >> $O/setup.two`)
	for range 2 {
		s.verb("run", "--id", "wt", "--secret", "TOKEN", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c",
			s.sh("echo x >> $O/launches.wt; git branch --show-current; cat .env"))
	}
	return []string{"wt"}
}

// actSetupFails has a set-up fail, and the next attempt begin anew.
func actSetupFails(s *stage) []string {
	s.found("echo one >> $O/setup.one", "test -e $O/go || exit 3")
	for _, attempt := range []string{"1", "2"} {
		s.verb("run", "--id", "sf", "--attempt", attempt, "-C", s.repo, "--branch", "topic", "-a", "command", "--", "sh", "-c",
			s.sh("echo x >> $O/launches.sf; git branch --show-current"))
		s.write("go", "")
	}
	return []string{"sf"}
}

// actSetupStopped stops a run while its worktree is set up, and archives another.
func actSetupStopped(s *stage) []string {
	s.found("echo one >> $O/setup.one; exec sleep 100")
	for i, key := range []string{"ss", "sa"} {
		order := []string{"run", "-d", "--id", key, "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches." + key)}
		s.verb(order...)
		s.until("set-up has begun, or it is over", func() bool {
			if s.lines("setup.one") > i || s.ending(key).Phase == "ended" {
				return true
			}
			if len(s.tagged()) == 0 {
				s.verb(order...)
			}
			time.Sleep(20 * time.Millisecond)
			return false
		})
		s.verb([]string{"stop", "archive"}[i], key)
	}
	return []string{"ss", "sa"}
}

// actArchive archives what a run left, twice, and has it brought back in between.
func actArchive(s *stage) []string {
	s.found("true")
	s.verb("run", "--id", "ar", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh(
		"echo x >> $O/launches.ar; echo change >> file; echo new > untracked; echo secret > .env; git rm -q --cached gone; echo staged > s; git add s"))
	s.verb("archive", "ar")
	s.verb("workspace", "restore", "ar")
	dir := s.path("ar")
	if text, _ := os.ReadFile(filepath.Join(dir, "untracked")); string(text) != "new\n" {
		s.t.Errorf("the first restore brought %q back in %s", text, dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "later"), []byte("later\n"), 0o600); err != nil {
		s.t.Error(err)
	}
	s.verb("archive", "ar")
	return []string{"ar"}
}

// actRestore brings a worktree back while something else is where it was.
func actRestore(s *stage) []string {
	s.found("true")
	s.verb("run", "--id", "re", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh(
		"echo x >> $O/launches.re; mkdir sub; echo new > sub/untracked; echo secret > .env; git add sub; git -c user.name=a -c user.email=a@b commit -qm c; echo more > file"))
	dir := s.path("re")
	s.verb("archive", "re")
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Error(err)
	}
	s.verb("workspace", "restore", "re")
	_ = os.Remove(dir)
	now := s.path("re")
	for name, want := range map[string]string{"sub/untracked": "new\n", ".env": "secret\n", "file": "more\n"} {
		if text, err := os.ReadFile(filepath.Join(now, name)); string(text) != want {
			s.t.Errorf("%s in %s: %q, %v", name, now, text, err)
		}
	}
	return []string{"re"}
}

// actRm has a run archived at its end.
func actRm(s *stage) []string {
	s.found("true")
	for range 2 {
		s.verb("run", "--id", "rm", "--rm", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.rm; echo new > untracked; echo out"))
	}
	return []string{"rm"}
}

// actShared has two workspaces in one worktree, and archives both.
func actShared(s *stage) []string {
	s.found("true")
	s.verb("run", "--id", "sh", "-C", s.repo, "--branch", "b", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.sh; echo new > untracked"))
	dir := s.path("sh")
	s.verb("run", "--id", "si", "-C", dir, "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.si; echo more > more"))
	s.verb("run", "--id", "sj", "-C", s.repo, "--branch", "b", "--worktree-reuse", "reuse", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.sj"))
	s.verb("archive", "sh")
	if _, err := os.Stat(filepath.Join(dir, "more")); err != nil {
		s.t.Errorf("the first archive took the files of the second workspace: %v", err)
	}
	s.verb("archive", "sj")
	s.verb("archive", "si")
	return []string{"sh", "si", "sj"}
}

// actCreate makes a workspace without a run, which a run works in, and archives it. A verb that was killed has told no id:
// what it made is archived too.
func actCreate(s *stage) []string {
	s.found("echo one >> $O/setup.one")
	s.verb("workspace", "create", "-C", s.repo, "--branch", "made")
	for _, id := range s.workspaces() {
		s.verb("workspace", "archive", id)
	}
	return nil
}

// actExpire has gc remove all that archives left.
func actExpire(s *stage) []string {
	s.found("true")
	s.verb("run", "--id", "ex", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.ex; echo new > untracked; echo s > .env"))
	s.verb("archive", "ex")
	for range 2 {
		s.verb("gc", "--older-than", "0s")
	}
	return nil
}

// found makes the repository of the play, and trusts it.
func (s *stage) found(setup ...string) {
	s.repo = filepath.Join(s.dir, "repo")
	if err := os.Mkdir(s.repo, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for i := range setup {
		setup[i] = s.sh(setup[i])
	}
	commands, _ := json.Marshal(setup)
	for name, text := range map[string]string{
		".pintle.toml": "[worktree]\nsetup = " + string(commands) + "\ncopy = [\".env\"]\n", ".gitignore": ".env\n", "file": "file\n", "gone": "gone\n",
	} {
		if err := os.WriteFile(filepath.Join(s.repo, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one")
	if err := os.WriteFile(filepath.Join(s.repo, ".env"), []byte("copied\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.verb("trust", "-C", s.repo)
}

// sh is a script that knows where the play works.
func (s *stage) sh(script string) string { return strings.ReplaceAll(script, "$O", s.work) }

func (s *stage) write(name, text string) {
	if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) lines(name string) int {
	data, _ := os.ReadFile(filepath.Join(s.work, name))
	return strings.Count(string(data), "\n")
}

func (s *stage) git(args ...string) string {
	s.t.Helper()
	c := exec.Command("git", append([]string{"-C", s.repo}, args...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Errorf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// path is the directory of a run's workspace.
func (s *stage) path(key string) string {
	out, errs := s.quietly("workspace", "path", key)
	if out == "" {
		s.t.Errorf("%s has no directory: %s", key, errs)
	}
	return strings.TrimSuffix(out, "\n")
}

func (s *stage) workspaces() (ids []string) {
	out, _ := s.quietly("workspace", "ls", "--json")
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Errorf("%v: %s", err, out)
	}
	for _, w := range list {
		ids = append(ids, w.ID)
	}
	return ids
}

// settle has a supervisor finish what was begun: there is none if the last one was killed.
func (s *stage) settle() {
	s.t.Helper()
	s.verb("run", "--id", "nudge", "-a", "command", "--", "true")
	s.until("nothing is pending", func() bool {
		return len(records[struct{}](s, "pending")) == 0 && !s.holds("executions", `"leaving":true`)
	})
}

// names are those of the files in a directory of the state directory.
func (s *stage) names(dir string) (names []string) {
	entries, _ := os.ReadDir(filepath.Join(s.home, dir))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// holds reports whether a record below a directory of the state directory has a text in it.
func (s *stage) holds(dir, text string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(s.home, dir), func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" {
			data, _ := os.ReadFile(path)
			found = found || strings.Contains(strings.ReplaceAll(string(data), " ", ""), text)
		}
		return nil
	})
	return found
}

// treeRecord is what is looked at in worktrees/<id>.json.
type treeRecord struct {
	State, Dir, Branch string
	Workspaces         []string
	Kept               *struct{ Ref, Tar string }
}

// landscape is what is left of a play's worktrees, in words that do not depend on chance. What may never be left is
// reported on the way.
func (s *stage) landscape() string {
	var b strings.Builder
	dirs := map[string]bool{s.repo: true}
	all := records[treeRecord](s, "worktrees")
	slices.SortFunc(all, func(a, b treeRecord) int { return cmp.Compare(a.State, b.State) })
	for _, t := range all {
		fmt.Fprintf(&b, "worktree %s of %d, kept %v\n", t.State, len(t.Workspaces), t.Kept != nil && t.Kept.Ref != "")
		switch t.State {
		case "ready":
			dirs[t.Dir] = true
		case "gone":
		default:
			s.t.Errorf("%s is %s at the end", t.Dir, t.State)
		}
	}
	s.accounted(dirs)
	for line := range strings.Lines(s.git("for-each-ref", "--format=%(refname)")) {
		ref := strings.TrimSpace(line)
		fmt.Fprintf(&b, "%s\n%s", ref, s.git("ls-tree", "-r", "--name-only", ref))
		if strings.HasPrefix(ref, "refs/pintle/tmp/") {
			s.t.Errorf("%s is left", ref)
		}
	}
	for dir := range dirs {
		if dir != s.repo {
			fmt.Fprintf(&b, "in it:\n%s", s.git("-C", dir, "status", "--porcelain", "--ignored", "--branch"))
		}
	}
	for _, name := range []string{"setup.one", "setup.two"} {
		fmt.Fprintf(&b, "%s %d\n", name, s.lines(name))
	}
	for _, dir := range []string{"executions", "archived", "sessions", "workspaces", "kept"} {
		names := slices.DeleteFunc(s.names(dir), interrupted.MatchString)
		fmt.Fprintf(&b, "%s %d\n", dir, len(names))
	}
	s.told(&b)
	s.tidy()
	return byChance.ReplaceAllString(b.String(), "$1-X")
}

// byChance are generated ids, and the name of a repository's managed directory.
var byChance = regexp.MustCompile(`\b([a-z]|repo)-[0-9a-f]{8,16}\b`)

// records reads all records of a directory of the state directory.
func records[T any](s *stage, dir string) (all []T) {
	for _, name := range s.names(dir) {
		data, _ := os.ReadFile(filepath.Join(s.home, dir, name))
		var one T
		if filepath.Ext(name) == ".json" && !strings.HasPrefix(name, ".") && json.Unmarshal(data, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// accounted compares what git knows, and what lies in the managed directory, with the records.
func (s *stage) accounted(dirs map[string]bool) {
	for line := range strings.Lines(s.git("worktree", "list", "--porcelain")) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree "); ok && !dirs[dir] {
			s.t.Errorf("git knows the worktree %s, and no record accounts for it", dir)
		}
	}
	managed, _ := filepath.Glob(filepath.Join(s.home, "worktrees", "*", "*"))
	hidden, _ := filepath.Glob(filepath.Join(s.home, "worktrees", "*", ".*"))
	for _, dir := range append(managed, hidden...) {
		if !dirs[dir] {
			s.t.Errorf("%s is left", dir)
		}
	}
}

// told adds what people are told of all runs.
func (s *stage) told(b *strings.Builder) {
	out, _ := s.quietly("ps", "-a", "--json")
	var rows []struct {
		ID, Outcome, Session, Workspace, Worktree, Branch string
		ArchivedAt                                        *time.Time
		ResultExpired                                     bool
		Cause                                             struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		s.t.Errorf("ps: %v: %s", err, out)
	}
	seen := map[string]int{}
	for _, r := range rows {
		if r.ID == "nudge" {
			continue
		}
		if seen[r.ID]++; seen[r.ID] > 1 {
			s.t.Errorf("%s is there %d times", r.ID, seen[r.ID])
		}
		events, _ := s.quietly("logs", "--json", r.ID)
		fmt.Fprintf(b, "%s %s archived %v %d, expired %v, worktree %v, branch %q, cause %q %q\n", r.ID, r.Outcome, r.ArchivedAt != nil,
			strings.Count(events, `"type":"archived"`), r.ResultExpired, strings.ReplaceAll(r.Worktree, s.dir, ""), r.Branch, r.Cause.Code, strings.ReplaceAll(r.Cause.Message, s.dir, ""))
		if _, err := os.Stat(r.Worktree); (r.Worktree == "" || err != nil) && r.ArchivedAt == nil && r.Worktree != "" {
			s.t.Errorf("%s says it is in %s: %v", r.ID, r.Worktree, err)
		}
	}
}

// interrupted is what a write leaves that was killed: supervisors remove that after a while.
var interrupted = regexp.MustCompile(`^\.[\w-]+\.json\d+$`)

// tidy looks for what a death may leave and nobody may find: temporary files, dot-names, locks.
func (s *stage) tidy() {
	for _, root := range []string{s.home, filepath.Join(s.repo, ".git")} {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			name := filepath.Base(path)
			switch {
			case err != nil || path == root || interrupted.MatchString(name):
			case root == s.home && strings.HasPrefix(path, filepath.Join(s.home, "worktrees")) && e.IsDir() && filepath.Dir(filepath.Dir(path)) == filepath.Join(s.home, "worktrees"):
				return fs.SkipDir // what lies in a worktree is the user's
			case strings.HasPrefix(name, "."), strings.HasPrefix(name, "fast_import_crash"), strings.HasPrefix(name, "pintle-removed-"),
				strings.HasSuffix(name, ".lock") && name != "pintle.lock" && name != "supervisor.lock":
				s.t.Errorf("%s is left", strings.ReplaceAll(path, s.dir, ""))
			}
			return nil
		})
	}
}
