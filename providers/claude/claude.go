// Package claude drives Claude Code without its screen (`claude -p`): JSON by lines both ways.
//
// A process has one conversation, whose id is ours. It has a turn for each message that it is given, and begins turns by
// itself when something ends that it had begun in the background: a message and a result are not one to one, and "idle" is
// what it says when nothing is left to be done. What the real agent does was recorded by experiment; each rule here that is
// no matter of course says which surprise it answers.
package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// Name is what -a calls this provider.
const Name = "claude"

// Tested is the version that this was tested with. One that is newer is told of, and driven all the same.
const Tested = "2.1.332"

// Provider returns the provider. It uses no tool unasked once it was told to ask, and says so: see opening.go.
func Provider() providers.Provider {
	return providers.Provider{
		Name: Name, Program: "claude", Environment: environment, Tested: Tested, Install: "npm install -g @anthropic-ai/claude-code",
		Stdin: true, Steers: true, Modes: true, Lockless: true, Split: wire.Split, New: restore, Launch: launch, Kept: kept,
	}
}

// environment are its settings and keys. What gives access to a cloud besides, such as AWS_SECRET_ACCESS_KEY, is the
// user's to name: it would be there for every command of the agent's too.
var environment = []string{
	"CLAUDE_*", "ANTHROPIC_*", "IS_SANDBOX", "API_TIMEOUT_MS", "BASH_*_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
	"TASK_MAX_OUTPUT_LENGTH", "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_*", "ENABLE_TOOL_SEARCH",
	"SLASH_COMMAND_TOOL_CHAR_BUDGET", "USE_BUILTIN_RIPGREP", "FORCE_PROMPT_CACHING_5M", "ENABLE_PROMPT_CACHING_1H",
	"DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_FEEDBACK_COMMAND",
	"DISABLE_COST_WARNINGS", "DISABLE_PROMPT_CACHING*", "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "DO_NOT_TRACK",
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
	"AWS_BEARER_TOKEN_BEDROCK", "CLOUD_ML_REGION", "VERTEX_REGION_*", "GOOGLE_APPLICATION_CREDENTIALS",
	"GOOGLE_CLOUD_PROJECT",
}

// kept is where a conversation is, from about the time of the model's first answer on. Until then there is nothing, and it
// can be begun again under its id.
func kept(env map[string]string, conversation string) []string {
	home := env["CLAUDE_CONFIG_DIR"]
	if home == "" {
		home = filepath.Join(env["HOME"], ".claude")
	}
	return []string{filepath.Join(wire.Literal(home), "projects", "*", wire.Literal(conversation)+".jsonl")}
}

func restore(saved json.RawMessage) (providers.Fold, error) {
	f := &fold{}
	if len(saved) == 0 || bytes.Equal(saved, []byte("null")) {
		return f, nil
	}
	if err := json.Unmarshal(saved, &f.state); err != nil {
		return nil, fmt.Errorf("state of Claude Code's protocol: %w", err)
	}
	return f, nil
}
