//go:build agents

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	claude "github.com/pintle/pintle/providers/claude"
)

// claudeBinary finds Claude Code's own binary, or skips the test.
func claudeBinary(t testing.TB) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path, err := filepath.Abs("node_modules/@anthropic-ai/claude-code-" + runtime.GOOS + "-" + arch + "/claude")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("Claude Code is not installed: run testscripts/agents/install.sh")
	}
	return path
}

// A den is a home of Claude Code, a directory to work in and a model, all thrown away with the test.
type den struct {
	binary, home, dir string
	model             *fakemodel.Server
	env, more         []string // more are arguments of the user's
	names             placeholders
}

func newDen(t testing.TB, env ...string) *den {
	t.Helper()
	d := &den{binary: claudeBinary(t), model: fakemodel.New(t, fakemodel.Options{}), names: placeholders{}}
	base, err := os.MkdirTemp("/var/tmp", "pintle-claude-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	d.home, d.dir = filepath.Join(base, "home"), filepath.Join(base, "dir")
	for _, dir := range []string{d.home, d.dir, d.config(), filepath.Join(base, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(d.quiet(), env...)
	return d
}

// config is where its settings and conversations are.
func (d *den) config() string { return filepath.Join(d.home, ".claude") }

// quiet is an environment in which it talks to the model alone, and leaves nothing elsewhere.
func (d *den) quiet() []string {
	tmp := filepath.Join(filepath.Dir(d.home), "tmp")
	return []string{
		"HOME=" + d.home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=" + tmp, "CLAUDE_CODE_TMPDIR=" + tmp,
		"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(d.model.URL(), "/v1"), "ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_MAX_RETRIES=1",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}

// settings writes the user's.
func (d *den) settings(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.config(), "settings.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *den) order(n int, prompt string) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", n), Prompt: prompt, Cwd: d.dir, Approve: "all"}
}

// begin starts Claude Code for an order, and has pintle's own fold speak to it.
func (d *den) begin(t testing.TB, o providers.Order) *driver {
	t.Helper()
	p := claude.Provider()
	f, err := p.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := p.Launch(o, d.more, "")
	a := &appServer{t: t, foreign: true}
	a.cmd = exec.Command(d.binary, l.Args[1:]...)
	a.cmd.Dir, a.cmd.Env = d.dir, d.env
	for name, value := range l.Env {
		a.cmd.Env = append(slices.Clone(a.cmd.Env), name+"="+value)
	}
	a.begin(t)
	r := &driver{appServer: a, fold: f.(providers.Agent)}
	r.begin(o)
	return r
}

// run has an order carried out by a new process, and wants its turn to end so.
func (d *den) run(t testing.TB, o providers.Order, outcome session.Outcome, code string) *driver {
	t.Helper()
	r := d.begin(t, o)
	r.ends(outcome, code)
	return r
}

// ends wants the turn to end so.
func (d *driver) ends(outcome session.Outcome, code string) providers.About {
	d.t.Helper()
	a := d.end()
	if a.End.Outcome != outcome || a.End.Code != code {
		d.t.Fatalf("the turn ended as %+v; %s", a.End, d.story())
	}
	return a
}

// asked are the model's requests for a prompt that are no repetitions.
func (d *den) asked(prompt string) (found []fakemodel.Request) {
	for _, r := range d.model.Requests() {
		if r.Prompt == prompt && !r.FollowUp && !r.Retry {
			found = append(found, r)
		}
	}
	return found
}

// places are where the driver looks for a conversation.
func (d *den) places(conversation string) []string {
	return claude.Provider().Kept(map[string]string{"HOME": d.home}, conversation)
}

// sweep ends what a killed process has left.
func (d *den) sweep(t testing.TB, args ...string) {
	t.Helper()
	found, _ := proc.WithToken("HOME", func(v string) bool { return v == d.home })
	for _, p := range found {
		if slices.Equal(p.Args, args) {
			if err := proc.Signal(p.Identity, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}

// commands are the living ones of this den's, with all their arguments.
func (d *den) commands(args ...string) (n int) {
	found, _ := proc.WithToken("HOME", func(v string) bool { return v == d.home })
	for _, p := range found {
		if slices.Equal(p.Args, args) {
			n++
		}
	}
	return n
}

// record ends a process and writes what it said to NAME.jsonl, if that is wanted.
func (d *den) record(t *testing.T, name string, r *driver) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	r.close()
	for _, ours := range uuid.FindAll(append(bytes.Join(r.written, nil), r.fold.About().Conversation...), -1) {
		d.names[string(ours)] = string(ours) // the suite's orders are called alike, and so are these
	}
	var b bytes.Buffer
	for _, line := range r.lines {
		b.Write(d.replace(trimmed(line)))
	}
	path := filepath.Join("../../providers/claude/testdata", name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wordy is what is long and says nothing to a driver.
var wordy = []string{"commands", "agents", "models", "slash_commands", "terminal_slash_commands", "skills", "capabilities", "tools", "plugins"}

// trimmed is a line without what is long in the answer to initialize and at the beginning of each turn.
func trimmed(line []byte) []byte {
	var m map[string]any
	if json.Unmarshal(line, &m) != nil || m["type"] != "control_response" && m["subtype"] != "init" {
		return line
	}
	trim(m)
	short, err := json.Marshal(m)
	if err != nil {
		return line
	}
	return append(short, '\n')
}

func trim(m map[string]any) {
	for key, value := range m {
		if inner, ok := value.(map[string]any); ok {
			trim(inner)
		}
		if _, ok := value.([]any); ok && slices.Contains(wordy, key) {
			m[key] = []any{}
		}
	}
}

// changing is what differs from one recording to the next, besides ids and paths, and what stands for it.
var changing = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b(msg|toolu)_[a-z2-7]{10}(\d+)`), "${1}_$2"},
	{regexp.MustCompile(`"(timestamp)":"[^"]*"`), `"$1":"2023-11-14T22:13:20.000Z"`},
	{regexp.MustCompile(`"(\w+_ms|\w+_wall_ms|pid|end_time)":[0-9.]+`), `"$1":1`},
	{regexp.MustCompile(`\b(\d+)\.sock`), "1.sock"},
	{regexp.MustCompile(`"run_id":"[^"]*"`), `"run_id":"r"`},
	{regexp.MustCompile(`"runId":"[^"]*"`), `"runId":"r"`},
	{regexp.MustCompile(`projects/[-\w]+`), "projects/-dir"},
	{regexp.MustCompile(`claude-\d+/[-\w]+`), "claude-0/-dir"},
}

// replace puts placeholders into a line.
func (d *den) replace(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte(d.dir), []byte("/dir"))
	line = bytes.ReplaceAll(line, []byte(filepath.Dir(d.home)), nil)
	for _, v := range changing {
		line = v.what.ReplaceAll(line, []byte(v.with))
	}
	return uuid.ReplaceAllFunc(line, func(id []byte) []byte {
		if d.names[string(id)] == "" {
			d.names[string(id)] = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(d.names)+1)
		}
		return []byte(d.names[string(id)])
	})
}
