package acp

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// agent is what pintle knows of one, besides the protocol.
type agent struct {
	name, program string
	title         string // what people call it
	args          []string
	environment   []string
	env           func(providers.Order) map[string]string
	natives       func(wrapper string) []string
	// modes are the session's modes by --approve. Where there is none, the mode is left as the agent is configured.
	modes map[string]string
	// modelArg is the option by which a model is chosen when it is started; else the protocol does so.
	modelArg string
	approves []string
	unasked  map[string][]string
	habits   providers.Habits
	kept     func(env map[string]string, conversation string) []string
	aside    func(env map[string]string, conversation string) *providers.Aside
	// replaysLate says that it tells what was in a session that it loads behind its answer, and then which commands there are.
	replaysLate bool
	// steers says that it may have _session/steering, an extension of the protocol.
	steers bool
	// planner is the title of the tool by which it makes plans, if it does not tell them.
	planner string
	// errorsAreSaid says that it tells errors of the model's as messages without an id, and ends their turns as if all were well.
	errorsAreSaid bool

	tested, pkg string // the version that this was tested with, and the npm package
	// keys and files are signs that somebody has signed in; login is what does so.
	keys  []string
	files func(env map[string]string) []string
	login string
}

// agents are all that are known. The last is any other one.
var agents = []agent{
	{
		name: "opencode", program: "opencode", title: "OpenCode", args: []string{"acp"}, natives: openCodeNative, planner: "todowrite",
		environment: []string{"OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "GEMINI_*", "GOOGLE_*", "GROQ_*", "MISTRAL_*", "XAI_*", "DEEPSEEK_*"},
		// Its modes are personas; what it asks for is its configuration's, over which this goes: it is found to ask for everything
		// then, whatever that allows.
		env:    openCodePermissions,
		tested: "1.18.33", pkg: "opencode-ai", login: "opencode auth login, or name a provider and a model in its configuration",
		keys: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"},
		files: func(env map[string]string) []string {
			return []string{below(env, "XDG_DATA_HOME", ".local/share", "opencode/auth.json"), below(env, "XDG_CONFIG_HOME", ".config", "opencode/opencode.json*")}
		},
	},
	{
		name: "gemini", program: "gemini", title: "Gemini CLI", args: []string{"--acp"}, modelArg: "--model",
		environment: []string{"GEMINI_*", "GOOGLE_*"},
		// Without it there is a second process, which ignores SIGTERM.
		env:     func(providers.Order) map[string]string { return map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"} },
		modes:   map[string]string{"none": "default", "reads": "default", "edits": "default", "all": "yolo"},
		unasked: anything,
		kept:    geminiKept, aside: geminiAside, replaysLate: true,
		tested: "0.61.0", pkg: "@google/gemini-cli", login: "gemini, once, at a terminal; or set GEMINI_API_KEY",
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"},
		files: func(env map[string]string) []string {
			return []string{below(env, "GEMINI_CLI_HOME", "", ".gemini/oauth_creds.json")}
		},
	},
	{
		name: "claude-acp", program: "claude-agent-acp", title: "Claude Agent (ACP)", steers: true,
		environment: []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "IS_SANDBOX"},
		// By itself it is in the mode "auto", in which a model decides in the user's place. What is allowed at once needs no mode.
		modes:   map[string]string{"none": "default", "reads": "default", "edits": "default", "all": "default"},
		unasked: anything,
		tested:  "0.101.0", pkg: "@agentclientprotocol/claude-agent-acp", login: "claude, and /login there; or set ANTHROPIC_API_KEY",
		keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		files: func(env map[string]string) []string {
			return []string{below(env, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")}
		},
	},
	{
		name: "codex-acp", program: "codex-acp", title: "Codex (ACP)", steers: true, environment: []string{"CODEX_*", "OPENAI_*"},
		modes: map[string]string{"none": "read-only", "reads": "read-only", "edits": "workspace-write", "all": "agent-full-access"},
		unasked: map[string][]string{
			"": everything, "none": inSandbox, "reads": inSandbox, "edits": append([]string{"edit", "delete", "move"}, inSandbox...), "all": everything,
		},
		habits: providers.Habits{Leaving: 5 * time.Second, Lingers: true}, errorsAreSaid: true,
		tested: "2.6.0", pkg: "@agentclientprotocol/codex-acp", login: "codex login",
		keys: []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		files: func(env map[string]string) []string {
			return []string{below(env, "CODEX_HOME", ".codex", "auth.json"), below(env, "CODEX_HOME", ".codex", "config.toml")}
		},
	},
	{name: Name, title: "the agent", approves: []string{""}, unasked: anything},
}

var (
	// everything is every kind: nothing is known of what it asks for.
	everything = []string{"read", "search", "think", "edit", "delete", "move", "execute", "fetch", "switch_mode", "other"}
	inSandbox  = []string{"read", "search", "think", "execute"}
	// anything is of agents that look unasked in any mode, and do besides what the user's settings allow.
	anything = map[string][]string{"": everything, "none": everything, "reads": everything, "edits": everything, "all": everything}
)

// below is a file in a directory that a variable names, or else in one of the home.
func below(env map[string]string, variable, dir, file string) string {
	if at := env[variable]; at != "" {
		return filepath.Join(wire.Literal(at), file)
	}
	return filepath.Join(wire.Literal(env["HOME"]), dir, file)
}

// openCodeNative is the real program behind the npm package's stub.
func openCodeNative(wrapper string) []string {
	pkg := filepath.Dir(filepath.Dir(wrapper)) // …/opencode-ai
	return []string{filepath.Join(filepath.Dir(pkg), "opencode-linux-x64", "bin", "opencode")}
}

// openCodePermissions has it ask for all that it can, or for nothing.
func openCodePermissions(o providers.Order) map[string]string {
	switch {
	case o.Policy || o.Approve != "" && o.Approve != "all":
		return map[string]string{"OPENCODE_PERMISSION": `{"*":"ask"}`}
	case o.Approve == "all":
		return map[string]string{"OPENCODE_PERMISSION": `{"*":"allow"}`}
	}
	return nil
}

// geminiChats is where Gemini CLI has a conversation: session-<minute>-<the first digits of its id>.jsonl.
func geminiChats(env map[string]string, conversation string) string {
	first, _, _ := strings.Cut(conversation, "-")
	home := env["GEMINI_CLI_HOME"]
	if home == "" {
		home = env["HOME"]
	}
	return filepath.Join(wire.Literal(home), ".gemini", "tmp", "*", "chats", "session-*-"+wire.Literal(first)+".jsonl")
}

func geminiKept(env map[string]string, conversation string) []string {
	return []string{geminiChats(env, conversation)}
}

// geminiAside keeps a conversation from being destroyed. When it is loaded, Gemini CLI begins a file for it that is named by the
// minute, and writes over one that has the name already: the conversation's own, if it is as young as that. It also takes the
// files that earlier loads have begun so, which hold nothing, for broken ones, and deletes with them all that bear the id. So
// only the longest keeps its name, and not one of this minute.
func geminiAside(env map[string]string, conversation string) *providers.Aside {
	return &providers.Aside{Pattern: geminiChats(env, conversation), Moves: geminiMoves}
}

func geminiMoves(files []providers.File, now time.Time) (moves []providers.Move) {
	if len(files) == 0 {
		return nil
	}
	longest := slices.MaxFunc(files, func(a, b providers.File) int { return cmp.Compare(a.Size, b.Size) })
	for _, f := range files {
		if dir, base := filepath.Split(f.Path); f != longest {
			moves = append(moves, providers.Move{From: f.Path, To: dir + "aside-" + base})
		}
	}
	const form = "2006-01-02T15-04"
	dir, base := filepath.Split(longest.Path)
	if minute := now.UTC().Format(form); strings.Contains(base, minute) {
		before := now.UTC().Add(-time.Minute).Format(form)
		moves = append(moves, providers.Move{From: longest.Path, To: dir + strings.Replace(base, minute, before, 1)})
	}
	return moves
}
