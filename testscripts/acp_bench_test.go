package testscripts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkChunks counts the pieces of 100 bytes that get in a second from an agent that speaks ACP to who ran it, from the
// order to its end, and the most that the supervisor had in memory. All of them arrive.
func BenchmarkChunks(b *testing.B) {
	s := benchStage(b)
	text := fmt.Sprintf("[agent.mine]\nkind = \"acp\"\ncommand = [%q, \"acp\"]\n", filepath.Join(filepath.Dir(binary), "standin"))
	if err := os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	s.must(b, "run", "-a", "mine", "say hello")
	const n = 100_000
	var rates []float64
	for range b.N {
		start := time.Now()
		out, err := s.command("run", "-a", "mine", fmt.Sprintf("chunks %d 100", n)).Output()
		rates = append(rates, n/time.Since(start).Seconds())
		if err != nil || len(out) != n*100+1 {
			b.Fatalf("%v: %d bytes came of %d", err, len(out), n*100+1)
		}
	}
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)/2], "median-chunks/s")
	b.ReportMetric(memory(b, s.supervisor(b).PID, "VmHWM:"), "supervisor-MB")
	b.ReportMetric(0, "ns/op")
}
