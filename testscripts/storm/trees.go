package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/state"
)

// place is where a run is carried out.
type place struct {
	words []string // of the verb
	tree  bool     // in a worktree of pintle's
	guest bool     // which another run ordered
	wrote string   // where runs note that their files are there
}

// script leaves files of all sorts, and then notes that.
func (p place) script(key string) string {
	if !p.tree {
		return ""
	}
	return fmt.Sprintf(`mkdir -p 'd ü' && echo "new %[1]s" > 'new %[1]s' && echo "deep %[1]s" > 'd ü/%[1]s' && ln -sf 'new %[1]s' 'link %[1]s' && `+
		`echo "T=%[1]s" > .env-%[1]s && echo "by %[1]s" >> tracked && echo "%[1]s $PWD" >> %[2]s || exit 9; `, key, p.wrote)
}

// left are the files that a run left.
func left(key string) map[string]string {
	return map[string]string{
		"new " + key: "new " + key + "\n", "d ü/" + key: "deep " + key + "\n", "link " + key: "new " + key + "\n", ".env-" + key: "T=" + key + "\n",
	}
}

// plant makes the repository, whose recipe is trusted.
func (r *round) plant() error {
	r.repo = filepath.Join(r.dir, "repo")
	recipe := "[worktree]\nsetup = '''[ -e .env.local ] && echo set up > set-up'''\ncleanup = \"rm -f set-up\"\ncopy = [\".env.local\"]\n"
	err := os.Mkdir(r.repo, 0o700)
	for name, text := range map[string]string{".pintle.toml": recipe, "tracked": "", ".gitignore": ".env*\n", ".env.local": "A=1\n"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(r.repo, name), []byte(text), 0o600)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=storm", "-c", "user.email=storm@x", "commit", "-qm", "base"},
	} {
		if err == nil {
			_, err = r.git(args...)
		}
	}
	for _, home := range []string{r.home, r.second()} {
		if res := r.verb(r.at(home), false, "trust", "-C", r.repo); err == nil && res.code != 0 {
			err = fmt.Errorf("trust: %s", res.err)
		}
	}
	return err
}

// second is another state directory on the same repository.
func (r *round) second() string { return filepath.Join(r.dir, "second") }

// at is the environment of a verb for a state directory.
func (r *round) at(home string) []string {
	env := slices.DeleteFunc(r.env(1), func(e string) bool { return strings.HasPrefix(e, "PINTLE_HOME=") })
	return append(env, "PINTLE_HOME="+home)
}

func (r *round) git(args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir, c.Env = r.repo, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return string(out), err
}

// settleIn chooses where an order is carried out. The caller holds the lock.
func (r *round) settleIn(o *order, d dice) {
	o.place.wrote = filepath.Join(r.dir, "wrote")
	in := []string{"-C", r.repo}
	switch roll := d.IntN(100); {
	case roll < 50:
		return
	case roll < 70:
		o.place.words = append(in, "--worktree")
	case roll < 85:
		o.place.words = append(in, "--branch", "work")
	case roll < 92:
		o.place.words = append(in, "--branch", "shared", "--worktree-reuse", "reuse")
	default:
		dirs := r.ready()
		if len(dirs) == 0 {
			return
		}
		// Which worktree is there when it comes to it is not known: it may be on its way out.
		o.place.words, o.place.guest = []string{"-C", dirs[d.IntN(len(dirs))]}, true
		for attempt := range 4 {
			o.spoiled[attempt] = " a guest"
		}
	}
	o.place.tree, o.archive = true, d.IntN(4) == 0
}

// ready are the directories that may be worked in.
func (r *round) ready() (dirs []string) {
	d, err := state.OpenExisting(r.home)
	if err != nil {
		return nil
	}
	for _, t := range supervisor.Worktrees(d) {
		if t.State == record.TreeReady {
			dirs = append(dirs, t.Dir)
		}
	}
	return dirs
}

// isChore reports whether a process is of a set-up or a clean-up.
func (r *round) isChore(t proc.Tagged) bool {
	if role(t) != "shim" {
		key, _ := proc.Variable(t.PID, "PINTLE_EXECUTION")
		return strings.HasPrefix(key, "setup ") || strings.HasPrefix(key, "cleanup ")
	}
	rt, ok := r.runtimeOf(t)
	d, err := state.OpenExisting(r.home)
	if !ok || err != nil {
		return false
	}
	spec, err := record.SpecOf(d, rt.Folder)
	return err == nil && spec.Chore != nil
}

// spoilTrees spoils all that may wait for a set-up.
func (r *round) spoilTrees(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.orders {
		if o.place.tree {
			o.spoil(why)
		}
	}
}

// archive archives a run, whatever it does.
func (r *round) archive(o *order, d dice) {
	words := []string{"archive", o.key}
	if d.IntN(4) == 0 {
		words = append(words, "--refuse-dirty")
	}
	o.spoil("archive")
	defer o.spoil("archive")
	res := r.pintle(1, true, words...)
	r.allowed(o, words[0], res, 0, -1, 4)
	if res.code == 0 {
		r.archives.Add(1)
	}
}

// restore brings a run's workspace back.
func (r *round) restore(o *order) {
	res := r.pintle(1, true, "workspace", "restore", o.key)
	r.allowed(o, "restore", res, 0, -1, 4)
	if res.code == 0 {
		r.restores.Add(1)
	}
}

// collect throws away what is not needed.
func (r *round) collect(d dice) {
	words := []string{"gc"}
	if d.IntN(2) == 0 {
		words = append(words, "--dry-run")
	}
	if o := r.anyOrder(d); o != nil {
		r.allowed(o, "gc", r.pintle(1, true, words...), 0, -1)
	}
}

// allowed says what else than the codes a verb may end with: a full disk, and a worktree that is dirty and not to be kept.
func (r *round) allowed(o *order, verb string, res result, codes ...int) {
	switch {
	case slices.Contains(codes, res.code):
	case res.full && slices.Contains([]int{1, 7, 11, 12}, res.code):
	case res.code == 6 && strings.Contains(res.err, "git would not find again"):
	default:
		o.fault("%s: exit %d: %s", verb, res.code, res.err)
	}
}

// gardener does to the repository what git does by itself.
func (r *round) gardener(ctx context.Context, d dice) {
	for ctx.Err() == nil {
		sleep(ctx, d.between(300*time.Millisecond, 1500*time.Millisecond))
		if d.IntN(3) == 0 {
			_, _ = r.git("gc", "-q") // two at once refuse each other, and one that finds no room fails
			continue
		}
		_, _ = r.git("worktree", "prune", "--expire=now")
	}
}

// neighbour has worktrees of the repository in another state directory, whose supervisor is killed too.
func (r *round) neighbour(ctx context.Context, d dice) {
	var killed sync.WaitGroup
	for n := 0; ctx.Err() == nil; n++ {
		sleep(ctx, d.between(500*time.Millisecond, 2500*time.Millisecond))
		if d.IntN(3) > 0 {
			wait := d.between(time.Millisecond, 500*time.Millisecond)
			killed.Go(func() { sleep(ctx, wait); r.killSupervisorOf(r.second()) })
		}
		r.nextDoor(fmt.Sprintf("n%d", n), d.IntN(2) == 0)
	}
	killed.Wait()
}

// nextDoor has one run there, which nobody disturbs but who kills its supervisor.
func (r *round) nextDoor(key string, archive bool) {
	res := r.verb(r.at(r.second()), false, "run", "--id", key, "-C", r.repo, "--branch", "work", "-a", "command", "--", "sh", "-c", "echo > mine; echo "+key)
	if res.code != 0 || res.out != key+"\n" {
		r.blame("the neighbour's run %s: exit %d: %s", key, res.code, res.err)
	}
	if !archive {
		return
	}
	if res := r.verb(r.at(r.second()), false, "archive", key); res.code != 0 {
		r.blame("the neighbour's archive of %s: exit %d: %s", key, res.code, res.err)
	}
}

// blame notes a fault that is of no order.
func (r *round) blame(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
	r.say("FAULT "+format, args...)
}

// folderOf is where the records of an order's key are.
func folderOf(d *state.Dir, o *order) (string, error) {
	return record.Locate(d, session.Folder(session.Local, o.key))
}
