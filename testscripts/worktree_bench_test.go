package testscripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// benchRepository makes a repository of a few hundred files and returns how git is called in it.
func (s *stage) benchRepository(b *testing.B) (git func(args ...string)) {
	b.Helper()
	repo := filepath.Join(s.dir, "repo")
	git = func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Mkdir(repo, 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(repo, fmt.Sprint("f", i)), []byte(strings.Repeat("line\n", 40)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-qm", "one")
	s.work = repo
	return git
}

// What a worktree adds to a run, side by side with git's own command: run, run --worktree, git worktree add.
func BenchmarkRunWorktree(b *testing.B) {
	s := benchStage(b)
	git := s.benchRepository(b)
	s.must(b, "run", "-a", "command", "--", "true")
	b.Run("plain", func(b *testing.B) {
		measure(b, func(int) { s.settled() }, func(int) { s.must(b, "run", "-a", "command", "--", "true") })
	})
	b.Run("worktree", func(b *testing.B) {
		measure(b, func(int) { s.settled() }, func(int) { s.must(b, "run", "--worktree", "-a", "command", "--", "true") })
	})
	n := 0
	b.Run("git", func(b *testing.B) {
		measure(b, nil, func(int) {
			n++
			git("worktree", "add", "-q", "-b", fmt.Sprint("b", n), filepath.Join(s.dir, "w", fmt.Sprint(n)))
		})
	})
}

// An archive of a clean worktree, side by side with git's own removal.
func BenchmarkArchiveClean(b *testing.B) {
	s := benchStage(b)
	git := s.benchRepository(b)
	n := 0
	b.Run("archive", func(b *testing.B) {
		measure(b, func(int) {
			n++
			s.must(b, "run", "--id", fmt.Sprint("k", n), "--worktree", "-a", "command", "--", "true")
			s.settled()
		}, func(int) { s.must(b, "archive", fmt.Sprint("k", n)) })
	})
	b.Run("git", func(b *testing.B) {
		at := func() string { return filepath.Join(s.dir, "w", fmt.Sprint(n)) }
		measure(b, func(int) { n++; git("worktree", "add", "-q", "-b", fmt.Sprint("b", n), at()) },
			func(int) { git("worktree", "remove", at()) })
	})
}

// An archive of untracked files, PINTLE_BENCH_FILES (50,000) of 20 KiB, and how much memory the supervisor had at most.
func BenchmarkArchiveUntracked(b *testing.B) {
	files := 2000
	if n, err := strconv.Atoi(os.Getenv("PINTLE_BENCH_FILES")); err == nil {
		files = n
	}
	s := benchStage(b)
	s.benchRepository(b)
	n := 0
	measure(b, func(int) {
		n++
		id := fmt.Sprint("k", n)
		s.must(b, "run", "--id", id, "--worktree", "-a", "command", "--", "sh", "-c",
			fmt.Sprintf("i=0; while [ $i -lt %d ]; do head -c 20480 /dev/urandom > u$i; i=$((i+1)); done", files))
	}, func(int) { s.must(b, "archive", fmt.Sprint("k", n)) })
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.supervisor(b).PID))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "VmHWM:" {
			kb, _ := strconv.ParseFloat(fields[1], 64)
			b.ReportMetric(kb/1024, "MB-most")
		}
	}
}

// ps over 100 runs, beside 1,000 that are archived.
func BenchmarkPsArchived(b *testing.B) {
	s := benchStage(b)
	for i := range 1100 {
		s.must(b, "run", "-q", "--id", fmt.Sprint("k", i), "-a", "command", "--label", fmt.Sprint("old=", i < 1000), "--", "true")
	}
	b.Run("before", func(b *testing.B) { measure(b, nil, func(int) { s.must(b, "ps") }) })
	start := time.Now()
	s.must(b, "archive", "--label", "old=true")
	b.Logf("archived 1,000 in %s", time.Since(start).Round(time.Millisecond))
	if left, err := os.ReadDir(filepath.Join(s.home, "executions")); err != nil || len(left) != 100 {
		b.Fatalf("%d are left, %v", len(left), err)
	}
	b.Run("after", func(b *testing.B) { measure(b, nil, func(int) { s.must(b, "ps") }) })
}
