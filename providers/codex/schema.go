package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Use is a message of the protocol that the fold makes or takes in, with what it says and what it reads there.
//
// A field is named by its path, from params on or, in an answer, from result on: [] stands for what a list holds, {} for
// the values of a map, and =word for a value that the field must be able to have.
type Use struct {
	Method string
	Params []string
	Answer string // the schema's name of the answer; "" if there is none, or nothing of it matters
	Result []string
}

// Uses are the messages that the fold uses.
type Uses struct {
	Requests      []Use // ours to the server
	Notifications []Use // ours to the server
	Asked         []Use // the server's requests to us
	Told          []Use // the server's notifications
}

// Used is what the fold uses of the protocol. What it takes either way, with a field or without, is not in it.
func Used() Uses {
	return Uses{
		Requests: []Use{
			{
				"initialize", []string{"clientInfo.name", "clientInfo.title", "clientInfo.version", "capabilities.experimentalApi"},
				"InitializeResponse", []string{"userAgent"},
			},
			{"config/read", []string{"cwd"}, "ConfigReadResponse", []string{"config"}},
			{
				"thread/start", append(openedWith(), "ephemeral", "environments[].environmentId", "environments[].cwd"),
				"ThreadStartResponse", append(openedAs(), "thread.cliVersion"),
			},
			{
				"thread/resume", append(openedWith(), "threadId", "excludeTurns", "runtimeWorkspaceRoots", "permissions"),
				"ThreadResumeResponse", openedAs(),
			},
			{"thread/unsubscribe", []string{"threadId"}, "ThreadUnsubscribeResponse", []string{"status=notLoaded"}},
			{"turn/start", []string{"threadId", "input[].type=text", "input[].text", "input[].text_elements"}, "TurnStartResponse", []string{"turn.id"}},
			{
				"turn/steer",
				[]string{"threadId", "expectedTurnId", "clientUserMessageId", "input[].type=text", "input[].text", "input[].text_elements"},
				"", nil,
			},
			{"turn/interrupt", []string{"threadId", "turnId"}, "", nil},
			{"thread/backgroundTerminals/clean", []string{"threadId"}, "", nil},
		},
		Notifications: []Use{{Method: "initialized"}},
		Asked:         usedAsked(),
		Told:          usedTold(),
	}
}

// openedWith is what a thread is opened with.
func openedWith() []string {
	return []string{
		"cwd", "model", "config", "approvalsReviewer", "approvalPolicy=untrusted", "approvalPolicy=on-request", "approvalPolicy=never",
		"sandbox=read-only", "sandbox=workspace-write", "sandbox=danger-full-access",
	}
}

// openedAs is what is read of a thread that was.
func openedAs() []string {
	return []string{
		"thread.id", "model", "cwd", "approvalPolicy=untrusted", "approvalPolicy=on-request", "approvalPolicy=never", "approvalsReviewer",
		"sandbox.type=readOnly", "sandbox.type=workspaceWrite", "sandbox.type=dangerFullAccess", "sandbox.writableRoots[]",
		"sandbox.networkAccess", "sandbox.excludeTmpdirEnvVar", "sandbox.excludeSlashTmp", "activePermissionProfile.id",
		"runtimeWorkspaceRoots[]",
	}
}

// usedAsked is what the server asks for and we answer.
func usedAsked() []Use {
	approval := []string{"decision=accept", "decision=decline", "decision=cancel"}
	older := []string{"decision=approved", "decision=abort", "decision.denied.rejection"}
	return []Use{
		{
			"item/commandExecution/requestApproval",
			[]string{
				"threadId", "itemId", "kind=writeStdin", "reason", "command", "cwd", "additionalPermissions.network.enabled",
				"additionalPermissions.fileSystem.entries[].access", "networkApprovalContext.host", "networkApprovalContext.protocol",
			},
			"CommandExecutionRequestApprovalResponse", approval,
		},
		{"execCommandApproval", []string{"conversationId", "callId", "command[]", "cwd", "reason"}, "ExecCommandApprovalResponse", older},
		{"item/fileChange/requestApproval", []string{"threadId", "itemId", "reason", "grantRoot"}, "FileChangeRequestApprovalResponse", approval},
		{"applyPatchApproval", []string{"conversationId", "callId", "fileChanges{}", "reason", "grantRoot"}, "ApplyPatchApprovalResponse", older},
		{
			"item/permissions/requestApproval",
			[]string{
				"threadId", "itemId", "reason", "permissions.network.enabled", "permissions.fileSystem.read[]", "permissions.fileSystem.write[]",
				"permissions.fileSystem.entries[].access", "permissions.fileSystem.entries[].path.path", "permissions.fileSystem.entries[].path.pattern",
			},
			"PermissionsRequestApprovalResponse", []string{"permissions", "scope=turn"},
		},
		{
			"mcpServer/elicitation/request",
			[]string{"threadId", "serverName", "message", "mode=url", "mode=openai/userVerification", "url", "requestedSchema.properties", "_meta"},
			"McpServerElicitationRequestResponse", []string{"action=accept", "action=decline", "action=cancel", "content", "_meta"},
		},
		{"item/tool/requestUserInput", []string{"questions[].question"}, "ToolRequestUserInputResponse", []string{"answers"}},
	}
}

// usedTold is what the server tells.
func usedTold() []Use {
	delta := []string{"threadId", "turnId", "itemId", "delta"}
	return []Use{
		{Method: "turn/started", Params: []string{"threadId", "turn.id", "turn.rootTurnId"}},
		{Method: "thread/closed", Params: []string{"threadId"}},
		{Method: "turn/completed", Params: []string{
			"threadId", "turn.id", "turn.status=completed", "turn.status=interrupted", "turn.error.message", "turn.error.codexErrorInfo",
			"turn.error.additionalDetails",
		}},
		{Method: "item/started", Params: things()},
		{Method: "item/completed", Params: things()},
		{Method: "item/agentMessage/delta", Params: delta},
		{Method: "item/reasoning/summaryTextDelta", Params: delta},
		{Method: "item/reasoning/textDelta", Params: delta},
		{Method: "turn/plan/updated", Params: []string{"threadId", "turnId", "plan[].step", "plan[].status=inProgress"}},
		{Method: "thread/tokenUsage/updated", Params: []string{
			"threadId", "turnId", "tokenUsage.total.inputTokens", "tokenUsage.total.cachedInputTokens", "tokenUsage.total.outputTokens",
			"tokenUsage.last.inputTokens", "tokenUsage.last.cachedInputTokens", "tokenUsage.last.outputTokens",
		}},
		{Method: "serverRequest/resolved", Params: []string{"requestId"}},
		{Method: "error", Params: []string{
			"threadId", "turnId", "willRetry", "error.message", "error.codexErrorInfo", "error.additionalDetails",
		}},
		{Method: "configWarning", Params: []string{"summary"}},
		{Method: "warning", Params: []string{"message"}},
		{Method: "guardianWarning", Params: []string{"message"}},
	}
}

// things are what a turn is made of.
func things() []string {
	all := []string{"threadId", "turnId"}
	for _, kind := range []string{
		"userMessage", "agentMessage", "reasoning", "commandExecution", "fileChange", "webSearch", "mcpToolCall", "collabAgentToolCall", "subAgentActivity",
	} {
		all = append(all, "item.type="+kind)
	}
	return append(all, "item.id", "item.clientId", "item.agentThreadId", "item.receiverThreadIds[]", "item.tool=spawnAgent", "item.text", "item.command", "item.cwd", "item.tool", "item.server", "item.query", "item.prompt",
		"item.status=failed", "item.status=declined", "item.aggregatedOutput", "item.exitCode", "item.changes[].path", "item.changes[].diff",
		"item.changes[].kind.type")
}

// SchemaFile is the file in which `codex app-server generate-json-schema` has all definitions.
const SchemaFile = "codex_app_server_protocol.schemas.json"

// Missing names what is used and not in a schema that `codex app-server generate-json-schema --experimental` made. What
// the schema leaves open is taken to be there.
func (u Uses) Missing(data []byte) ([]string, error) {
	var s schema
	if err := json.Unmarshal(data, &s.root); err != nil {
		return nil, fmt.Errorf("schema of codex's protocol: %w", err)
	}
	var missing []string
	for _, side := range []struct {
		union string
		uses  []Use
	}{{"ClientRequest", u.Requests}, {"ClientNotification", u.Notifications}, {"ServerRequest", u.Asked}, {"ServerNotification", u.Told}} {
		for _, use := range side.uses {
			missing = append(missing, s.missing(side.union, use)...)
		}
	}
	return missing, nil
}

// schema is a JSON schema, of the few words that codex's has.
type schema struct{ root any }

func (s schema) missing(union string, use Use) (missing []string) {
	messages := s.expand(s.definition(union))
	i := slices.IndexFunc(messages, func(v any) bool { return s.has(v, "method="+use.Method) })
	if i < 0 {
		return []string{use.Method}
	}
	for _, path := range use.Params {
		if !s.has(messages[i], "params."+path) {
			missing = append(missing, use.Method+" "+path)
		}
	}
	for _, path := range use.Result {
		if !s.has(s.definition(use.Answer), path) {
			missing = append(missing, use.Method+" → "+path)
		}
	}
	return missing
}

// definition looks a name up among those of the older protocol and those of version 2.
func (s schema) definition(name string) any {
	if v := s.at("#/definitions/v2/" + name); v != nil {
		return v
	}
	return s.at("#/definitions/" + name)
}

// at is what a reference means, nil if nothing.
func (s schema) at(ref string) any {
	v := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		v = member(v, step)
	}
	return v
}

func member(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

// expand is what a value may be: its references followed, and its alternatives one by one.
func (s schema) expand(v any) []any { return s.expanded(v, map[string]bool{}) }

func (s schema) expanded(v any, seen map[string]bool) (all []any) {
	if ref, ok := member(v, "$ref").(string); ok {
		if seen[ref] {
			return nil // a definition that is its own alternative
		}
		seen[ref] = true
		return s.expanded(s.at(ref), seen)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := member(v, word).([]any)
		for _, one := range list {
			all = append(all, s.expanded(one, seen)...)
		}
	}
	if v != nil && (all == nil || member(v, "properties") != nil) {
		all = append(all, v)
	}
	return all
}

// has reports whether a value may have what lies at a path.
func (s schema) has(v any, path string) bool {
	path, value, valued := strings.Cut(path, "=")
	at := s.expand(v)
	for step := range strings.SplitSeq(strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path), ".") {
		var next []any
		for _, one := range at {
			next = append(next, s.expand(below(one, step))...)
		}
		at = next
	}
	return slices.ContainsFunc(at, func(one any) bool { return !valued || may(one, value) })
}

// below is what lies one step further, nil if nothing.
func below(v any, step string) any {
	properties := member(v, "properties")
	switch {
	case free(v):
		return true
	case step == "[]":
		return member(v, "items")
	case member(properties, step) != nil:
		return member(properties, step)
	case step == "{}" || properties == nil:
		if more := member(v, "additionalProperties"); more != false {
			return more
		}
	}
	return nil
}

// free reports whether a value may be anything.
func free(v any) bool {
	m, ok := v.(map[string]any)
	for _, word := range []string{"type", "properties", "items", "additionalProperties", "enum", "const"} {
		ok = ok && m[word] == nil
	}
	return ok || v == true
}

// may reports whether a value may be that word.
func may(v any, word string) bool {
	list, limited := member(v, "enum").([]any)
	if one := member(v, "const"); one != nil {
		list, limited = append(list, one), true
	}
	kinds, _ := member(v, "type").([]any)
	text := member(v, "type") == "string" || slices.Contains(kinds, any("string"))
	return slices.Contains(list, any(word)) || free(v) || text && !limited
}
