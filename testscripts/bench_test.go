package testscripts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
)

// The figures of docs/performance.md. Each reports its median; none fails for being slow.
//
//	go test -run '^$' -bench . -benchtime 20x ./testscripts

// median reports what was measured as one figure, in milliseconds.
func median(b *testing.B, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(0, "ns/op")
}

// measure takes the time of each round; between is not counted.
func measure(b *testing.B, between, what func(i int)) {
	b.Helper()
	var all []time.Duration
	for i := range b.N {
		if between != nil {
			between(i)
		}
		start := time.Now()
		what(i)
		all = append(all, time.Since(start))
	}
	median(b, all)
}

func benchStage(b *testing.B) *stage {
	b.Helper()
	dir, err := os.MkdirTemp("", "pb-")
	if err != nil {
		b.Fatal(err)
	}
	s := &stage{dir: dir, home: filepath.Join(dir, "h"), work: dir}
	b.Cleanup(func() {
		_ = killAll(s.home)
		_ = os.RemoveAll(dir)
	})
	return s
}

// must runs a verb that has to succeed.
func (s *stage) must(b *testing.B, args ...string) {
	b.Helper()
	if out, err := s.command(args...).CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func BenchmarkVersion(b *testing.B) {
	s := benchStage(b)
	measure(b, nil, func(int) { s.must(b, "version") })
}

func BenchmarkRunLive(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "-a", "command", "--", "true")
	measure(b, func(int) { s.settled() }, func(i int) { s.must(b, "run", "--id", fmt.Sprint("k", i), "-a", "command", "--", "true") })
}

// settled returns once nothing of an earlier run is going on: its shim has left and its runtime's directory is gone.
func (s *stage) settled() {
	for {
		left, _ := os.ReadDir(filepath.Join(s.home, "runtimes"))
		shims, _ := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == s.home })
		if len(left) == 0 && len(shims) <= 1 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func BenchmarkRunCold(b *testing.B) {
	s := benchStage(b)
	measure(b, func(int) {
		_ = killAll(s.home)
		_ = os.RemoveAll(s.home)
	}, func(int) { s.must(b, "run", "--id", "k", "-a", "command", "--", "true") })
}

// BenchmarkRuns1000 is a thousand runs, four verbs at once, with a live supervisor.
func BenchmarkRuns1000(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "-a", "command", "--", "true")
	measure(b, nil, func(i int) {
		done := make(chan error, 4)
		for w := range 4 {
			go func() {
				var err error
				for n := range 250 {
					if e := s.command("run", "--id", fmt.Sprintf("k%d-%d-%d", i, w, n), "-a", "command", "--", "true").Run(); e != nil {
						err = e
					}
				}
				done <- err
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkPs10000 lists ten thousand runs that have ended. The records are copies of a real one's.
func BenchmarkPs10000(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "--id", "model", "-a", "command", "--", "true")
	s.must(b, "supervise", "stop")
	model := filepath.Join(s.home, "executions", session.Folder(session.Local, "model"))
	for i := range 10000 {
		key := fmt.Sprint("k", i)
		dir := filepath.Join(s.home, "executions", session.Folder(session.Local, key))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"spec.json", "status.json"} {
			data, err := os.ReadFile(filepath.Join(model, name))
			if err != nil {
				b.Fatal(err)
			}
			data = []byte(strings.Replace(string(data), `"id":"model"`, `"id":"`+key+`"`, 1))
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				b.Fatal(err)
			}
			before := time.Now().Add(-time.Hour) // an order is older than its end
			if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
				b.Fatal(err)
			}
		}
	}
	measure(b, nil, func(int) { s.must(b, "ps", "-a") })
}

// BenchmarkLogs counts the lines of 100 bytes that get from an agent to a reader of logs -f in a second.
func BenchmarkLogs(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "-a", "command", "--", "true")
	const n = 1_000_000
	var rates []float64
	for i := range b.N {
		key := fmt.Sprint("k", i)
		start := time.Now()
		s.must(b, "run", "-d", "--id", key, "-a", "command", "--", "sh", "-c", fmt.Sprintf("yes %099d | head -n %d", 7, n))
		c := s.command("logs", "-f", key)
		out, err := c.StdoutPipe()
		if err != nil || c.Start() != nil {
			b.Fatal(err)
		}
		got := 0
		for r := bufio.NewReaderSize(out, 1<<20); ; got++ {
			if _, err := r.ReadSlice('\n'); err == io.EOF {
				break
			}
		}
		_ = c.Wait()
		if got != n {
			b.Fatalf("%d lines came of %d", got, n)
		}
		rates = append(rates, n/time.Since(start).Seconds())
	}
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)/2], "median-lines/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAdopt is from SIGKILL of the supervisor to a new one having adopted, started at once.
func BenchmarkAdopt(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "-d", "--id", "k", "-a", "command", "--", "sh", "-c", "touch up; exec sleep 1000")
	for !exists(filepath.Join(s.work, "up")) {
		time.Sleep(time.Millisecond)
	}
	var id proc.Identity
	measure(b, func(int) {
		time.Sleep(50 * time.Millisecond)
		id = s.supervisor(b)
	}, func(i int) {
		if err := proc.Signal(id, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		s.must(b, "supervise", "restart", "--force")
		for {
			log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log"))
			if strings.Count(string(log), "adopted runtime") > i {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func (s *stage) supervisor(b *testing.B) (id proc.Identity) {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(s.home, "supervisor.json"))
	if err == nil {
		err = json.Unmarshal(data, &id)
	}
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// BenchmarkResident is the memory of a shim whose agent is quiet and of a supervisor with nothing to do.
func BenchmarkResident(b *testing.B) {
	s := benchStage(b)
	s.must(b, "run", "--id", "t", "-a", "command", "--", "sh", "-c", "seq 1000")
	var shims, idle []float64
	for i := range b.N {
		key := fmt.Sprint("k", i)
		idle = append(idle, resident(b, s.supervisor(b).PID))
		s.must(b, "run", "-d", "--id", key, "-a", "command", "--", "sh", "-c", "seq 1000; touch "+key+"; exec sleep 1000")
		for !exists(filepath.Join(s.work, key)) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		entries, _ := os.ReadDir(filepath.Join(s.home, "runtimes"))
		for _, e := range entries {
			var a struct{ Shim proc.Identity }
			data, err := os.ReadFile(filepath.Join(s.home, filepath.Dir(record.RuntimeFile(e.Name())), "agent.json"))
			if err == nil && json.Unmarshal(data, &a) == nil {
				shims = append(shims, resident(b, a.Shim.PID))
			}
		}
		s.must(b, "stop", key)
	}
	slices.Sort(shims)
	slices.Sort(idle)
	b.ReportMetric(shims[len(shims)/2], "shim-MB")
	b.ReportMetric(idle[len(idle)/2], "supervisor-MB")
	b.ReportMetric(0, "ns/op")
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// resident is what a process has in memory, in MB.
func resident(b *testing.B, pid int) float64 { return memory(b, pid, "VmRSS:") }

// memory is a figure of a process's in MB, by its name in proc(5).
func memory(b *testing.B, pid int, figure string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), figure)
	fields := strings.Fields(rest)
	kb, _ := strconv.Atoi(fields[0])
	return float64(kb) / 1024
}
