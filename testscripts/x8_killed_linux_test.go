package testscripts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
)

// kills is how many supervisors are killed at random instants; with PINTLE_EVERY_CRASH ten times as many.
const kills = 10

// TestX8_KilledAtAnyInstant kills supervisors at random instants while worktrees are made, archived and restored: alone, so
// that a git of theirs goes on, and with all that they started. Package worktree has no crash points: this is its walk.
func TestX8_KilledAtAnyInstant(t *testing.T) {
	s := newStage(t, "")
	s.found("echo x >> $O/setup.$(basename $PWD)")
	left := kills
	if every {
		left *= 10
	}
	done := make(chan struct{})
	go func() { defer close(done); s.haunt(left) }()
	for i := 0; !closed(done); i++ {
		s.cycle(fmt.Sprintf("k%d", i))
	}
	s.unlock()
	s.settle()
	s.quiet()
	s.landscape()
}

// unlock does what git asks its user for after one of its processes was killed. Pintle removes the locks on its own
// references; this one may be anybody's. What was in its way is tried again.
func (s *stage) unlock() {
	if err := os.Remove(filepath.Join(s.repo, ".git", "packed-refs.lock")); err == nil {
		s.verb("gc")
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// haunt kills so many supervisors.
func (s *stage) haunt(most int) {
	chance := rand.New(rand.NewPCG(8, 24))
	for n := 0; n < most; {
		time.Sleep(time.Duration(chance.IntN(800_000)) * time.Microsecond)
		if s.strikeDown(chance.IntN(2) == 0) {
			n++
		}
	}
}

// strikeDown ends the supervisor and, with its gits, those too. It reports whether there was one.
func (s *stage) strikeDown(gits bool) (was bool) {
	left, err := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == s.home })
	if err != nil {
		s.t.Error(err)
		return false
	}
	var children []int // of supervisors, before these are gone
	for _, p := range left {
		if len(p.Args) > 1 && p.Args[1] == "supervise" {
			children = append(children, childrenOf(p.PID)...)
		}
	}
	for _, p := range left {
		supervisor := len(p.Args) > 1 && p.Args[1] == "supervise"
		if supervisor || gits && slices.Contains(children, p.PID) {
			err := proc.Signal(p.Identity, syscall.SIGKILL)
			was = was || supervisor && err == nil
			if err != nil && !errors.Is(err, proc.ErrGone) {
				s.t.Error(err)
			}
		}
	}
	return was
}

// childrenOf are the gits that a process has started.
func childrenOf(pid int) (gits []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		data, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(data)) {
			args, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if child, err := strconv.Atoi(field); err == nil && strings.HasPrefix(string(args), "git\x00") {
				gits = append(gits, child)
			}
		}
	}
	return gits
}

// cycle makes a worktree, archives it and brings it back: what was in it is in it again.
func (s *stage) cycle(key string) {
	s.verb("run", "--id", key, "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh(
		"echo x >> $O/launches."+key+"; echo change >> file; echo new > untracked; echo secret > .env; echo staged > s; git add s; git rm -q gone"))
	e := s.ending(key)
	if n := s.lines("setup." + key); n > 1 || e.Outcome == "completed" && n != 1 {
		s.t.Errorf("%s was set up %d times", key, n)
	}
	if n := s.launches(key); n > 1 || e.Outcome != "completed" {
		s.t.Errorf("%s was launched %d times, and is %s: %v", key, n, e.Outcome, s.cause(key))
		return
	}
	s.verb("archive", key)
	s.verb("workspace", "restore", key)
	s.verb("workspace", "restore", key)
	dir := s.path(key)
	for name, want := range map[string]string{"file": "file\nchange\n", "untracked": "new\n", ".env": "secret\n", "s": "staged\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want {
			s.t.Errorf("%s of %s came back as %q, %v", name, key, text, err)
		}
	}
	if got, want := s.git("-C", dir, "status", "--porcelain"), " M file\nD  gone\nA  s\n?? untracked\n"; got != want {
		s.t.Errorf("%s came back as\n%swant\n%s", key, got, want)
	}
	s.verb("archive", key)
}

func (s *stage) cause(key string) string {
	out, _ := s.quietly("show", "--field", "cause", key)
	return strings.TrimSpace(out)
}

// TestX25_TheNextSupervisorWaitsForTheGitOfADeadOne has a git stand still in its checkout when its supervisor is killed.
func TestX25_TheNextSupervisorWaitsForTheGitOfADeadOne(t *testing.T) {
	s := newStage(t, "")
	s.found("true")
	s.git("config", "filter.slow.smudge", s.sh("echo x >> $O/begun; until [ -e $O/go ]; do sleep 0.01; done; cat"))
	s.git("config", "filter.slow.clean", "cat")
	attributes := filepath.Join(s.repo, ".git", "info", "attributes")
	err := errors.Join(os.MkdirAll(filepath.Dir(attributes), 0o700), os.WriteFile(attributes, []byte("file filter=slow\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"run", "--id", "wt", "-C", s.repo, "--worktree", "-a", "command", "--", "sh", "-c", s.sh("echo x >> $O/launches.wt; cat file")}
	over := make(chan string)
	go func() { out, _ := s.verb(order...); over <- out }()
	s.until("git checks out", func() bool { return s.lines("begun") == 1 })
	s.until("the supervisor is killed", func() bool { return s.strikeDown(false) })
	s.until("the next one stands at the lock", s.standsAtLock)
	if n := s.lines("begun"); n != 1 {
		t.Errorf("files were checked out %d times at once", n)
	}
	s.write("go", "")
	if out := <-over; out != "file\n" {
		t.Errorf("the run said %q", out)
	}
	s.settle()
	s.quiet()
	s.landscape()
}

// standsAtLock reports whether a supervisor has opened the lock of the repository.
func (s *stage) standsAtLock() bool {
	return slices.ContainsFunc(s.tagged(), func(p proc.Tagged) bool {
		if len(p.Args) < 2 || p.Args[1] != "supervise" {
			return false
		}
		fds := fmt.Sprintf("/proc/%d/fd", p.PID)
		entries, _ := os.ReadDir(fds)
		return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			target, _ := os.Readlink(filepath.Join(fds, e.Name()))
			return target == filepath.Join(s.repo, ".git", "pintle.lock")
		})
	})
}
