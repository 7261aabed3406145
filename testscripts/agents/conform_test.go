//go:build agents

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/providers/providertest"
)

// document is what the suite found out, for readers.
const document = "../../docs/agents.md"

// TestConform runs the suite of providertest on each agent. The document is compared if all of it was run, and written
// anew with -update.
func TestConform(t *testing.T) {
	reports := []providertest.Report{providertest.Conform(t, codex(t)), providertest.Conform(t, codeMode(t))}
	for _, g := range guests {
		reports = append(reports, providertest.Conform(t, g.subject(t)))
	}
	for _, r := range reports {
		if !r.Whole() {
			t.Logf("%s: not all cells were played, and passed: %s is not compared", r.Agent, document)
			return
		}
	}
	text := describe(reports)
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), text); diff != "" {
		t.Errorf("%s (-document +result; -update writes it)\n%s", document, diff)
	}
}

// describe is the document.
func describe(reports []providertest.Report) string {
	return `# Agents

What pintle does with each agent, as found by running it. One suite ([providers/providertest](../providers/providertest)) is run on the
real binary of each, at the version in the table's head, offline, against a model server of ours. Each row is a test. After each,
nothing of the agent was left running, and the agent's own settings were as before.

In code mode Codex has one tool, which runs JavaScript: its newer models have it so, the older ones have a tool for each purpose.

` + providertest.Table(reports) + `
This page is written by

` + "```sh" + `
testscripts/agents/install.sh && go test -tags agents ./testscripts/agents -run TestConform -update
` + "```" + `

and the same without ` + "`-update`" + ` fails if what it finds is not what stands here.
`
}

// codex is Codex as the suite sees it. Under "edits" it asks for what goes out of its sandbox.
func codex(t *testing.T) providertest.Subject {
	t.Helper()
	native(t) // or skip
	return providertest.Subject{
		Agent: "codex", Title: "Codex", Version: version(t, "@openai/codex"), Model: "gpt-5.5",
		Usage: providertest.Usage{InputTokens: 100, OutputTokens: 10},
		Prompts: providertest.Prompts{
			Say:      func(text string) string { return "respond with exactly: " + text },
			Drip:     "slow: 2 60000",
			Big:      "big: 10000000 65536",
			Shell:    func(command string) string { return "shell: " + command },
			Ask:      func(command string) string { return "shell-escalated: " + command },
			AskFlags: []string{"--approve", "edits"},
			Plan:     `tool: update_plan {"plan":[{"step":"one","status":"in_progress"},{"step":"two","status":"pending"}]}`,

			Unauthorized: "http: 401", Limited: "http: 429", Broken: "http: 500", Unavailable: "http: 503",
			TooLong: "fail: context_length_exceeded too long", Dropped: "drop: hello world", Silent: "hang-headers",
		},
		Open: func(t *testing.T) providertest.Stage { return newHouse(t, "gpt-5.5").stage() },
	}
}

// codeMode is Codex with a model as its users get by default: one whose only tool runs JavaScript.
func codeMode(t *testing.T) providertest.Subject {
	t.Helper()
	s := codex(t)
	s.Setup, s.Model = "code mode", "gpt-6.2-sol"
	s.Prompts.Plan = "custom: exec\nawait tools.update_plan({plan:[{step:'one',status:'in_progress'},{step:'two',status:'pending'}]})"
	s.Open = func(t *testing.T) providertest.Stage { return newHouse(t, "gpt-6.2-sol").stage() }
	return s
}

// version is the version of an npm package that is installed.
func version(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("node_modules", name, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p.Version
}

// A house is a lab with a pintle in it: what follows is the real agent, driven by the real pintle.
type house struct {
	*lab
	t      testing.TB
	agent  string // what -a calls the agent
	home   string // pintle's
	config string // likewise
	vars   []string
	own    []string // patterns of the files in the agent's home that are the user's
	once   bool     // the agent has no repetitions of its own
}

// environment is that of a caller. The directory of the agent's binary comes first: what -a finds is that.
func (h *house) environment() []string {
	return append([]string{
		"PATH=" + filepath.Dir(h.binary) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Dir(h.home), "LANG=C.UTF-8",
		"PINTLE_HOME=" + h.home, "PINTLE_CONFIG=" + h.config,
	}, h.vars...)
}

// binary builds pintle once for all tests, in a directory that TestMain removes.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "pintle")
	build := exec.Command("go", "build", "-o", path, "github.com/pintle/pintle/cmd/pintle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as `just build` does
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// built is where that is.
var built string

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	var err error
	if built, err = os.MkdirTemp("", "pintle-agents-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer func() { _ = os.RemoveAll(built) }()
	code = m.Run()
}

// settings are those of a Codex that plans, and a pintle that does not wait long before it tries again.
const (
	planning = "[tools.update_plan]\nenabled = true\n"
	eager    = "[recovery]\ndelay = \"50ms\"\n"
)

func newHouse(t testing.TB, model string) *house {
	t.Helper()
	l := newLab(t, model)
	// Codex notes that it trusts a directory only if that is in a repository.
	if out, err := exec.Command("git", "init", "-q", l.dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	h := newHousing(t, l, "codex", filepath.Dir(l.home))
	h.vars = []string{"CODEX_HOME=" + l.home}
	h.own = []string{"*.toml", "*.json", "*.md", "rules/*", "prompts/*", "hooks/*"}
	h.add(filepath.Join(l.home, "config.toml"), planning)
	return h
}

// newHousing puts a pintle into a lab, in a directory which is the home of who calls it.
func newHousing(t testing.TB, l *lab, agent, base string) *house {
	t.Helper()
	h := &house{lab: l, t: t, agent: agent, home: filepath.Join(base, "h"), config: filepath.Join(base, "pintle.toml")}
	h.add(h.config, eager)
	t.Cleanup(h.leave)
	return h
}

// add appends to a file.
func (h *house) add(path, text string) {
	h.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		h.t.Error(err)
	}
	if err := f.Close(); err != nil {
		h.t.Error(err)
	}
}

// leave ends the supervisor and all that it holds; nothing of the house is left then.
func (h *house) leave() {
	h.pintle("", "supervise", "stop")
	for limit := time.Now().Add(patience); len(h.alive()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("never left: %v", h.alive())
		}
	}
}

// pintle runs a verb.
func (h *house) pintle(input string, args ...string) providertest.Told {
	path, err := binary()
	if err != nil {
		return providertest.Told{Code: -1, Err: err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay, c.Stdin = h.dir, &out, &errs, time.Second, strings.NewReader(input)
	c.Env = h.environment()
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		return providertest.Told{Code: -1, Out: out.String(), Err: errs.String() + err.Error()}
	}
	return providertest.Told{Out: out.String(), Err: errs.String(), Code: c.ProcessState.ExitCode()}
}

func (h *house) stage() providertest.Stage {
	return providertest.Stage{
		Dir: h.dir, Pintle: h.pintle, Asked: h.prompts, Alive: h.processes, Kill: h.kill, Settings: h.settings,
		Hold: h.hold,
		HangUp: func() {
			if err := h.model.Close(); err != nil {
				h.t.Error(err)
			}
		},
	}
}

// prompts are the model's requests for a prompt that are not the agent's own repetitions.
func (h *house) prompts(prompt string) (found []providertest.Asked) {
	for _, r := range h.asked(prompt) {
		if !r.FollowUp && (h.once || !r.Retry) {
			found = append(found, providertest.Asked{Earlier: r.Earlier})
		}
	}
	return found
}

func (h *house) alive() []proc.Tagged {
	found, err := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == h.home })
	if err != nil {
		h.t.Error(err)
	}
	return found
}

func (h *house) processes() (all []providertest.Process) {
	for _, p := range h.alive() {
		all = append(all, providertest.Process{PID: p.Identity.PID, Args: p.Args})
	}
	return all
}

// kill ends a process of this house and no other's, and returns when it is dead: what is sent to one that is dying may
// or may not have reached it.
func (h *house) kill(pid int) {
	h.t.Helper()
	for _, p := range h.alive() {
		if p.Identity.PID != pid {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(proc.Signal(p.Identity, syscall.SIGKILL), proc.Await(ctx, p.Identity)); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	h.t.Fatalf("process %d is none of %v", pid, h.alive())
}

// settings are the files in the agent's home that are not its own working data.
func (h *house) settings() map[string]string {
	h.t.Helper()
	files := map[string]string{}
	for _, pattern := range h.own {
		found, err := filepath.Glob(filepath.Join(h.lab.home, pattern))
		if err != nil {
			h.t.Fatal(err)
		}
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err != nil {
				h.t.Fatal(err)
			}
			files[filepath.Base(path)] = string(data)
		}
	}
	return files
}
