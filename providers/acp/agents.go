package acp

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/providers"
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
	// errorsAreSaid says that it tells errors of the model's as messages without an id, and ends their turns as if all were well.
	errorsAreSaid bool
}

// Kinds of tools that agents use unasked even in the mode in which they ask most.
var looking = []string{"read", "search", "think"}

// agents are all that are known. The last is any other one.
var agents = []agent{
	{
		name: "opencode", program: "opencode", title: "OpenCode", args: []string{"acp"}, natives: openCodeNative,
		environment: []string{"OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "GEMINI_*", "GOOGLE_*", "GROQ_*", "MISTRAL_*", "XAI_*", "DEEPSEEK_*"},
		// Its modes are personas; what it asks for is its configuration's, over which this goes.
		env:     openCodePermissions,
		unasked: map[string][]string{"": everything},
		habits:  providers.Habits{},
	},
	{
		name: "gemini", program: "gemini", title: "Gemini CLI", args: []string{"--acp"}, modelArg: "--model",
		environment: []string{"GEMINI_*", "GOOGLE_*"},
		// Without it there is a second process, which ignores SIGTERM.
		env:   func(providers.Order) map[string]string { return map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"} },
		modes: map[string]string{"none": "default", "reads": "default", "edits": "default", "all": "yolo"},
		unasked: map[string][]string{
			"": everything, "none": looking, "reads": looking, "edits": looking, "all": everything,
		},
		kept: geminiKept, aside: geminiAside, replaysLate: true,
	},
	{
		name: "claude-acp", program: "claude-agent-acp", title: "Claude Agent (ACP)",
		environment: []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "IS_SANDBOX"},
		// By itself it is in the mode "auto", in which a model decides in the user's place. What is allowed at once needs no mode.
		modes:   map[string]string{"none": "default", "reads": "default", "edits": "default", "all": "default"},
		unasked: map[string][]string{"": everything, "none": looking, "reads": looking, "edits": looking, "all": looking},
	},
	{
		name: "codex-acp", program: "codex-acp", title: "Codex (ACP)", environment: []string{"CODEX_*", "OPENAI_*"},
		modes: map[string]string{"none": "read-only", "reads": "read-only", "edits": "workspace-write", "all": "agent-full-access"},
		unasked: map[string][]string{
			"": everything, "none": inSandbox, "reads": inSandbox, "edits": append([]string{"edit", "delete", "move"}, inSandbox...), "all": everything,
		},
		habits: providers.Habits{Leaving: 5 * time.Second, Lingers: true}, errorsAreSaid: true,
	},
	{name: Name, title: "the agent", approves: []string{""}, unasked: map[string][]string{"": everything}},
}

var (
	// everything is every kind: nothing is known of what it asks for.
	everything = []string{"read", "search", "think", "edit", "delete", "move", "execute", "fetch", "switch_mode", "other"}
	inSandbox  = []string{"read", "search", "think", "execute"}
)

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
	return filepath.Join(home, ".gemini", "tmp", "*", "chats", "session-*-"+first+".jsonl")
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
