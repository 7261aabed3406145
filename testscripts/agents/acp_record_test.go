//go:build agents

package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/session"
)

// What the agents of the Agent Client Protocol say in a few runs, recorded with -update for the tests of the fold, which gives
// orders t1, t2, … Each run is one process's.
func TestACP_Record(t *testing.T) {
	if !*update {
		return // what it does the suite does too
	}
	for _, g := range []guest{openCode, geminiCLI, claudeACP, codexACP} {
		t.Run(g.agent, func(t *testing.T) {
			t.Parallel()
			h := g.house(t)
			h.tap(t)
			ask := g.subject(t).Prompts.Ask("echo x >> ran")
			run := func(id, prompt string, code int, flags ...string) {
				t.Helper()
				words := slices.Concat([]string{"run", "--id", id, "-a", h.agent}, flags, []string{"--", prompt})
				if r := h.pintle("", words...); r.Code != code {
					t.Errorf("%s: %+v", id, r)
				}
				h.keep(t, id)
			}
			run("text", "respond with exactly: hello world", 0)
			run("tool", "shell: echo made", 0, "--approve", "all")
			run("thought", "reason: let me see", 0)
			run("denied", ask, 5, "--approve", "edits")
			run("failed", "http: 400"+g.again, 1)
			if r := h.pintle("", "run", "--id", "asked", "-a", h.agent, "--approve", "edits", "--unattended", "park", "--", ask); r.Code != 15 {
				t.Errorf("%+v", r)
			}
			h.pintle("", "allow", "asked")
			h.pintle("", "wait", "asked")
			h.keep(t, "asked")
			h.pintle("", "run", "--id", "cut", "-d", "-a", h.agent, "--", "slow: 2 60000")
			for limit := time.Now().Add(patience); !strings.Contains(h.pintle("", "logs", "--json", "cut").Out, "w1"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("it says nothing")
				}
			}
			if r := h.pintle("", "interrupt", "cut"); r.Code != 0 || h.pintle("", "wait", "cut").Code != session.Cancelled.Exit() {
				t.Errorf("%+v", r)
			}
			h.keep(t, "interrupted")
			if r := h.pintle("", "send", "text", "respond with exactly: again"); r.Code != 0 {
				t.Errorf("%+v", r)
			}
			h.keep(t, "resumed")
		})
	}
}

// tap has what the agent says copied into a file.
func (h *house) tap(t *testing.T) {
	t.Helper()
	real, err := filepath.EvalSymlinks(h.binary)
	if err == nil {
		err = os.Remove(h.binary)
	}
	if err == nil {
		script := fmt.Sprintf("#!/bin/bash\nexec %q \"$@\" > >(exec tee -a %q)\n", real, h.tapped())
		err = os.WriteFile(h.binary, []byte(script), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *house) tapped() string { return filepath.Join(filepath.Dir(h.home), "tapped") }

// keep puts what was said since into a golden transcript, if that is wanted.
func (h *house) keep(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(h.tapped())
	if err != nil || len(data) == 0 {
		t.Fatalf("%s: nothing was said: %v", name, err)
	}
	if err := os.Remove(h.tapped()); err != nil {
		t.Fatal(err)
	}
	if !*update || t.Failed() {
		return
	}
	dir := "../../providers/acp/testdata"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, h.agent+"_"+name+".jsonl"), h.plain(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	requested = regexp.MustCompile(`"(initialize|open|choose|prompt)/[^"]+"`)
	address   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	stamps    = regexp.MustCompile(`"20\d\d-\d\d-\d\dT[^"]*"|_17\d{11}_|ses_[0-9A-Za-z]{20,}|msg_[0-9a-z]{10,}[0-9A-Za-z]{8,}`)
	commands  = regexp.MustCompile(`"availableCommands":\[.*\]`)
	choices   = regexp.MustCompile(`,"description":"[^"]*"`)
)

// plain is a transcript without what differs from one recording to the next, and without what makes it long.
func (h *house) plain(data []byte) []byte {
	var lines [][]byte
	for line := range bytes.Lines(data) {
		line = requested.ReplaceAll(line, []byte(`"$1/t1"`))
		line = commands.ReplaceAll(line, []byte(`"availableCommands":[]`))
		line = choices.ReplaceAll(line, nil)
		lines = append(lines, line)
	}
	text := strings.ReplaceAll(string(bytes.Join(lines, nil)), filepath.Dir(h.home), "/home")
	text = address.ReplaceAllString(text, "127.0.0.1:1")
	text = stamps.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "ses_"):
			return "ses_1"
		case strings.HasPrefix(s, "msg_"):
			return "msg_1"
		case s[0] == '_':
			return "_1_"
		}
		return `"2023-11-14T22:13:20Z"`
	})
	return h.replace([]byte(text))
}
