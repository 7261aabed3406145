package claude

import (
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// launch starts the process for a conversation: a new one under an id of ours, or one that goes on. One of which nothing
// was kept is begun anew under the id that it had: --resume would not find it. Both options refuse the other's case.
func launch(o providers.Order, more []string, _ string) providers.Launch {
	args := []string{
		"claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio",
	}
	if o.Conversation != "" && !o.Lost {
		args = append(args, "--resume", o.Conversation)
	} else {
		args = append(args, "--session-id", conversation(o))
	}
	switch {
	case stated(o):
		args = append(args, "--permission-mode", mode)
	case o.Mode != "":
		args = append(args, "--permission-mode", o.Mode)
	}
	if gated(o) {
		args = append(args, "--settings", askRules)
	}
	if o.Model != "" {
		args = append(args, "--model", o.Model)
	}
	return providers.Launch{
		Args: slices.Concat(args, more),
		Env:  map[string]string{"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}, // "idle"
	}
}

// mode is the permission mode in which it asks for what is neither harmless nor allowed by its configuration. Where
// everything is allowed it is this one too: it asks, and is allowed it at once. The mode in which it would not ask is
// refused to root.
const mode = "default"

// askRules are for when its hooks are off, as they are by --bare, CLAUDE_CODE_SIMPLE, or a variable in the user's settings. That
// is found out when the turn begins (begins); until it is broken off, this keeps the tools that there are then from being used.
const askRules = `{"permissions":{"ask":["Bash","Edit","Read","Write","NotebookEdit","WebFetch"]}}`

// stated says that an order states what is allowed, in place of the agent's own configuration.
func stated(o providers.Order) bool { return o.Approve != "" || o.Policy }

// gated says that it is to ask for each use of a tool.
func gated(o providers.Order) bool { return o.Policy || o.Approve != "" && o.Approve != "all" }

// conversation is the id of an order's conversation. That of a new one has the process's name in it: turns are named
// alike in every home of pintle's, and an id that was taken before is refused.
func conversation(o providers.Order) string {
	if o.Conversation != "" {
		return o.Conversation
	}
	return wire.UUID("conversation", o.Process, o.Turn)
}
