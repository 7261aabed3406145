//go:build agents

package agents

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "record the golden transcripts of providers/codex/testdata anew")

const goldens = "../../providers/codex/testdata"

// record ends an app-server and writes what it said to NAME.jsonl and what it was told to NAME.in.jsonl, if that
// is wanted.
// Ids, paths, addresses and times become placeholders; those of one lab are the same in all its transcripts.
func (l *lab) record(t *testing.T, name string, a *appServer) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	a.close()
	if err := os.MkdirAll(goldens, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		ending string
		lines  [][]byte
	}{{".jsonl", a.lines}, {".in.jsonl", a.written}} {
		content := l.replace(bytes.Join(side.lines, nil))
		if err := os.WriteFile(filepath.Join(goldens, name+side.ending), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// placeholders are the ids that were replaced, in order of their coming.
type placeholders map[string]string

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// volatile is what differs from one recording to the next, besides ids and paths, and what stands for it. Numbers
// stay numbers: that a time is there or null says something.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b(resp|msg|rs|fc|ctc|call)_[a-z2-7]{10}(\d+)`), "${1}_$2"},
	{regexp.MustCompile(`"(\w+AtMs)":\d+`), `"$1":1700000000000`},
	{regexp.MustCompile(`"(\w+At)":\d+`), `"$1":1700000000`},
	{regexp.MustCompile(`"durationMs":\d+`), `"durationMs":1`},
	{regexp.MustCompile(`"serverName":"[^"]*"`), `"serverName":"host"`},
	{regexp.MustCompile(`"processId":"\d+"`), `"processId":"1"`},
	{regexp.MustCompile(`sessions/\d+/\d+/\d+/rollout-[0-9T-]+-`), "sessions/2023/11/14/rollout-2023-11-14T22-13-20-"},
	{regexp.MustCompile(`[0-9a-f]{6}\\nWall `), `c00000\nWall `},              // the id of a chunk in a tool's output
	{regexp.MustCompile(`\d+\.\d{4} `), "0.0000 "},                            // and how long that took
	{regexp.MustCompile(`chunk_id\\":\\"[0-9a-f]{6}`), `chunk_id\":\"c00000`}, // likewise in code mode
	{regexp.MustCompile(`wall_time_seconds\\":[0-9.e-]+`), `wall_time_seconds\":0.1`},
	{regexp.MustCompile(`"\d+\.\d "`), `"0.1 "`},
	{regexp.MustCompile(`Wall time \d+\.\d `), "Wall time 0.1 "},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:0"},                     // of a file of the configuration
	{regexp.MustCompile(`(nickname\\?":\\?"|agentNickname":")\w+`), "${1}Name"}, // of an agent that was started
	{regexp.MustCompile(`\([^()]*; (x86_64|arm64|aarch64)\)`), "(Linux; x86_64)"},
}

// replace puts placeholders into a transcript.
func (l *lab) replace(content []byte) []byte {
	if l.names == nil {
		l.names = placeholders{}
	}
	address := bytes.TrimSuffix([]byte(l.model.URL()), []byte("/v1"))
	for from, to := range map[string]string{l.home: "/codex-home", l.dir: "/dir", string(address): "http://127.0.0.1:1"} {
		content = bytes.ReplaceAll(content, []byte(from), []byte(to))
	}
	for _, v := range volatile {
		content = v.what.ReplaceAll(content, []byte(v.with))
	}
	return uuid.ReplaceAllFunc(content, func(id []byte) []byte {
		if l.names[string(id)] == "" {
			l.names[string(id)] = fmt.Sprintf("00000000-0000-7000-8000-%012d", len(l.names)+1)
		}
		return []byte(l.names[string(id)])
	})
}
