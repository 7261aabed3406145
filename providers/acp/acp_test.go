package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/providers/providertest"
)

// spoken are what the real agents have said, by the name of the agent's run.
func spoken(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".jsonl")] = data
	}
	return all
}

// of are the transcripts of one agent.
func of(all map[string][]byte, name string) map[string][]byte {
	own := map[string][]byte{}
	for run, data := range all {
		if strings.HasPrefix(run, name+"_") {
			own[run] = data
		}
	}
	return own
}

func TestFold(t *testing.T) {
	all := spoken(t)
	for _, p := range Providers() {
		t.Run(p.Name, func(t *testing.T) { providertest.Run(t, p, of(all, p.Name)) })
	}
}

// All agents' transcripts are given to one whose ways are of every kind.
func FuzzFold(f *testing.F) {
	odd := agents[1]
	odd.errorsAreSaid, odd.steers = true, true
	providertest.Fuzz(f, provider(&odd), spoken(f))
}
