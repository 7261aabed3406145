package testscripts

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Case 34: a prompt comes to the agent byte for byte, whatever is in it and however it is given.
func TestCase34_PromptsByteForByte(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	long := strings.Repeat("0123456789abcdef\u2028\n", 1<<16)[:1<<20]
	file := filepath.Join(s.dir, "long")
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"-x begins with a dash", " spaces around \n", "\"quotes\" 'and' `more` \\ $HOME", "line\u2028separator\u2029\x7f", long}
	for _, prompt := range want[:4] {
		s.verb("run", "-a", "codex", "--", prompt)
	}
	s.verb("run", "-a", "codex", "-f", file)
	s.quiet()
	if got := s.prompted(); !slices.Equal(got, want) {
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Errorf("prompt %d is not what was given: %.100q", i, want[i])
			}
		}
	}
}

// prompted are the prompts that the stand-in for codex got.
func (s *stage) prompted() (all []string) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.work, "prompts"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var prompt string
		if err := d.Decode(&prompt); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, prompt)
	}
	return all
}
