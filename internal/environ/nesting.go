package environ

import "slices"

// Nested is a variable, or a glob of variables, by which an agent tells its children that they run
// inside it.
type Nested struct {
	Pattern string
	Reason  string
}

// nesting is E3's list. An agent that finds one of these refuses to start, joins the outer agent's
// editor or session, or believes itself in a sandbox that it is not in. Settings that only look alike
// (CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_NO_RELAUNCH, OPENCODE_CONFIG, PI_CODING_AGENT_DIR) are
// not here: whoever passes them means them.
var nesting = []Nested{
	{"CLAUDECODE", "Claude Code refuses to start inside another Claude Code"},
	{"CLAUDE_CODE_ENTRYPOINT", "says how the outer Claude Code was started"},
	{"CLAUDE_CODE_SSE_PORT", "the inner one would connect to the outer one's editor"},
	{"CLAUDE_CODE_SESSION_ID", "names the outer session"},
	{"CLAUDE_CODE_CHILD_SESSION", "marks a child of the outer session"},
	{"CLAUDE_CODE_EXECPATH", "the outer one's executable"},
	{"CLAUDE_CODE_MESSAGING_SOCKET", "the outer session's mailbox"},
	{"CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST", "the outer host's promise to sign in, which nobody keeps here"},
	{"CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH", "the outer SDK's promise to refresh tokens, which nobody keeps here"},
	{"CLAUDE_CODE_*_FILE_DESCRIPTOR", "numbers of descriptors that are open in the outer one only"},
	{"CLAUDE_AGENT_SDK_VERSION", "the outer SDK's version"},
	{"CLAUDE_PID", "the outer one's process"},
	{"CODEX_SANDBOX*", "claims the outer sandbox, so that the inner Codex skips its own or the network"},
	{"CODEX_THREAD_ID", "names the outer thread"},
	{"CODEX_CI", "marks a shell of the outer Codex"},
	{"GEMINI_CLI", "marks a shell of the outer Gemini CLI"},
	{"GEMINI_CLI_IDE_*", "the inner one would connect to the outer one's editor"},
	{"OPENCODE", "marks a child of the outer OpenCode"},
	{"OPENCODE_PID", "the outer one's process"},
	{"OPENCODE_RUN_ID", "names the outer run"},
	{"OPENCODE_SESSION_ID", "names the outer session"},
	{"OPENCODE_PROCESS_ROLE", "makes the inner one a worker of the outer"},
	{"PI_CODING_AGENT", "marks a child of the outer pi"},
	{"PI_SESSION_ID", "names the outer session"},
}

// Nesting returns the variables that are never taken from the host, each with the reason.
func Nesting() []Nested {
	return slices.Clone(nesting)
}

// nests reports whether a variable of the host would make the agent believe that it runs inside
// another one, or inside another of our runs.
func nests(name string) bool {
	return slices.ContainsFunc(nesting, func(n Nested) bool { return matches([]string{n.Pattern}, name) })
}
