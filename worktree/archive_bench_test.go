package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkSnapshotClean is what an archive of a worktree with nothing to keep costs over git's own removal.
func BenchmarkSnapshotClean(b *testing.B) {
	dir := b.TempDir()
	b.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	run := func(args ...string) {
		if out, err := userGit(dir, args...); err != nil {
			b.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("init", "-q", "-b", "main")
	for i := range 1000 {
		fill(b, filepath.Join(dir, fmt.Sprint(i%30), fmt.Sprint(i)), 100)
	}
	run("add", "-A")
	run("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	for b.Loop() {
		if k, err := Snapshot(b.Context(), dir, "refs/pintle/archive/w-1", SnapshotOptions{Keep: []string{".env*"}}); err != nil || k.Ref != "" {
			b.Fatal(k, err)
		}
	}
}

// BenchmarkSnapshot keeps many untracked files: PINTLE_BENCH_MIB in 50 a MiB. Memory must not grow with it.
func BenchmarkSnapshot(b *testing.B) {
	mib, _ := strconv.Atoi(os.Getenv("PINTLE_BENCH_MIB"))
	if mib == 0 {
		b.Skip("set PINTLE_BENCH_MIB, for instance to 1024")
	}
	dir := b.TempDir()
	b.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	if out, err := userGit(dir, "init", "-q"); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for i := range mib * 50 {
		fill(b, filepath.Join(dir, fmt.Sprint(i%300), fmt.Sprint(i)), 1<<20/50)
	}
	for b.Loop() {
		if _, err := Snapshot(b.Context(), dir, "refs/pintle/archive/w-1", SnapshotOptions{}); err != nil {
			b.Fatal(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-of-pintle")
	}
}

// fill writes a file that no two are alike of.
func fill(b *testing.B, path string, size int) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(path, size/len(path)+1)[:size]
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}
