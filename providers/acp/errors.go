package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
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
	said := strings.ToLower(e.words())
	for _, words := range []string{"not found", "no rollout found", "no previous sessions", "invalid session identifier", "opencode service failure"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

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
	var data struct{ ErrorKind, ErrorName string }
	_ = json.Unmarshal(e.Data, &data)
	return cmp.Or(statusCause(e.Code), kinds[data.ErrorKind], saidCause(e.words()))
}

// kinds are causes by the kind that claude-agent-acp has in an error's data.
var kinds = map[string]string{
	"authentication_failed": "auth", "billing_error": "capacity", "rate_limit": "capacity", "overloaded": "capacity", "server_error": "transient",
	"invalid_request": "", "model_not_found": "config", "max_output_tokens": "config", "prompt_too_long": "config",
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
