package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// words are an error's, with what it says besides.
func (e rpcError) words() string {
	var data struct{ Details, Message string }
	_ = json.Unmarshal(e.Data, &data)
	if more := cmp.Or(data.Details, data.Message); more != "" && more != e.Message {
		return e.Message + ": " + more
	}
	return cmp.Or(e.Message, fmt.Sprintf("error %d", e.Code))
}

// gone says that a session is not there (any more): the agent has a code for it, or says so in words of its own.
func (e rpcError) gone() bool {
	if e.Code == notFound {
		return true
	}
	var data struct{ ErrorName string } // OpenCode has none for what is not there
	_ = json.Unmarshal(e.Data, &data)
	return absent.MatchString(e.words()) && data.ErrorName == ""
}

// absent is how agents say that they have nothing of a session. That something else is not there is another matter.
var absent = regexp.MustCompile(`(?i)\b(session|conversation|thread|resource)\b.*not found|not found.*\b(session|conversation|thread)\b|` +
	`no (session|conversation) found|no rollout found|no previous sessions|invalid session identifier|opencode service failure`)

// Codes of the protocol's own errors.
const (
	authRequired = -32000
	notFound     = -32002
)

// status finds the status of the model's server where an agent has it in its words only.
var status = regexp.MustCompile(`\b(?:status:?|error:?|says|code:?|API Error:?) \(?(4\d\d|5\d\d)\b`)

// cause is the typed cause (B1) of an error in answer to a prompt. Some agents have the status of the model's server for a
// code, some a kind in the data, the rest nothing but words.
func (f *fold) cause(e rpcError) string {
	if e.Code == authRequired {
		return "auth"
	}
	var data struct {
		ErrorKind      string
		CodexErrorInfo json.RawMessage
	}
	_ = json.Unmarshal(e.Data, &data)
	return cmp.Or(statusCause(e.Code), kinds[data.ErrorKind], codexCause(data.CodexErrorInfo), saidCause(e.words()))
}

// kinds are causes by the kind that claude-agent-acp has in an error's data.
var kinds = map[string]string{
	"authentication_failed": "auth", "billing_error": "capacity", "rate_limit": "capacity", "overloaded": "capacity", "server_error": "transient",
	"invalid_request": "", "model_not_found": "config", "max_output_tokens": "config", "prompt_too_long": "config",
}

// codexCauses are causes by Codex's own codes, as codex-acp passes them on.
var codexCauses = map[string]string{
	"unauthorized": "auth", "usageLimitExceeded": "capacity", "rateLimitExceeded": "capacity", "serverOverloaded": "capacity",
	"flexUnavailable": "capacity", "contextWindowExceeded": "config", "internalServerError": "transient",
	"httpConnectionFailed": "transient", "responseStreamConnectionFailed": "transient", "responseStreamDisconnected": "transient",
	"responseTooManyFailedAttempts": "transient",
}

// codexCause is the cause that Codex has a code for: a word, or an object of one key that may have the status of the model's server.
func codexCause(info json.RawMessage) string {
	if word := name(info); word != "" {
		return codexCauses[word]
	}
	var object map[string]struct{ HTTPStatusCode int }
	_ = json.Unmarshal(info, &object)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if cause := cmp.Or(statusCause(object[key].HTTPStatusCode), codexCauses[key]); cause != "" {
			return cause
		}
	}
	return ""
}

func statusCause(code int) string {
	switch {
	case code == 401 || code == 403:
		return "auth"
	case code == 429 || code == 529:
		return "capacity"
	case code == 404:
		return "config"
	case code >= 500 && code < 600:
		return "transient"
	}
	return ""
}

// phrases are causes by what only words say.
var phrases = []struct{ words, cause string }{
	{"prompt is too long", "config"}, {"context window", "config"}, {"context length", "config"}, {"maximum number of tokens", "config"},
	{"out of room", "config"}, {"model not found", "config"}, {"rate limit", "capacity"}, {"retry limit", "capacity"}, {"overloaded", "capacity"},
	{"usage limit", "capacity"}, {"quota", "capacity"}, {"at capacity", "capacity"},
	{"unauthorized", "auth"}, {"api key", "auth"}, {"not logged in", "auth"}, {"forbidden", "auth"},
	{"high demand", "transient"}, {"stream disconnected", "transient"}, {"connection", "transient"}, {"network error", "transient"},
	{"terminated", "transient"}, {"internal server error", "transient"}, {"service unavailable", "transient"},
}

// saidCause reads a cause from words.
func saidCause(message string) string {
	if found := status.FindStringSubmatch(message); found != nil {
		code, _ := strconv.Atoi(found[1])
		if cause := statusCause(code); cause != "" {
			return cause
		}
	}
	lower := strings.ToLower(message)
	for _, p := range phrases {
		if strings.Contains(lower, p.words) {
			return p.cause
		}
	}
	return ""
}
