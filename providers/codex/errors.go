package codex

import (
	"encoding/json"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// turnError is codex's own error. The info is an open union: a string, an object of one key, or anything else.
type turnError struct {
	Message           string
	CodexErrorInfo    json.RawMessage
	AdditionalDetails string
}

// failed notes an error. One that the agent goes on after by itself is told and no end: it may do so for ever, as it does
// when nobody listens where the model should.
func (f *fold) failed(params json.RawMessage) {
	var p struct {
		where
		Error     turnError
		WillRetry bool
	}
	_ = json.Unmarshal(params, &p)
	end := f.verdict(p.Error)
	f.tell("agent_notice", map[string]any{"message": end.Message, "cause": end.Code, "willRetry": p.WillRetry})
	switch {
	case !f.mine(p.where):
	case p.WillRetry:
		f.Trouble, f.Retried = end.Message, end.Code
	default:
		f.Failure = &end
	}
}

func (f *fold) fail(e turnError) {
	end := f.verdict(e)
	f.finish(end.Outcome, end.Code, end.Message)
}

// verdict is what an error comes to. When codex gives up after its own tries it calls many an error "other"; what it tried
// the same request again for has a better name.
func (f *fold) verdict(e turnError) providers.End {
	message := e.Message
	if e.AdditionalDetails != "" {
		message += ": " + e.AdditionalDetails
	}
	name, status := e.info()
	code := cause(name, status)
	if name == "other" {
		code = f.Retried
	}
	return providers.End{Outcome: session.Failed, Code: code, Message: clip(message, wordsLimit)}
}

// named are causes by the info's name. What a policy of the model's refused has none: it is refused again.
var named = map[string]string{
	"unauthorized": "auth",

	"usageLimitExceeded": "capacity", "rateLimitExceeded": "capacity", "serverOverloaded": "capacity",
	"flexUnavailable": "capacity", "policyCapacityUnavailable": "capacity",

	"internalServerError": "transient", "responseStreamDisconnected": "transient", "responseStreamConnectionFailed": "transient",
	"httpConnectionFailed": "transient", "responseTooManyFailedAttempts": "transient",

	"badRequest": "config", "contextWindowExceeded": "config", "modelNotFound": "config", "sandboxError": "config",
	"inferenceHookDenied": "config",

	"sessionBudgetExceeded": "budget", "activeTurnNotSteerable": "protocol", "threadRollbackFailed": "protocol",
}

// info is codex's code, and the status of the model's server where it has one.
func (e turnError) info() (name string, status int) {
	if json.Unmarshal(e.CodexErrorInfo, &name) == nil {
		return name, 0
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal(e.CodexErrorInfo, &object)
	for key, value := range object {
		var v struct{ HTTPStatusCode int }
		_ = json.Unmarshal(value, &v)
		if named[key] != "" || len(object) == 1 {
			name, status = key, v.HTTPStatusCode
		}
	}
	return name, status
}

// cause is the typed cause (B1).
func cause(name string, status int) string {
	switch {
	case status == 401 || status == 403:
		return "auth"
	case status == 429:
		return "capacity"
	case status == 404:
		return "config"
	}
	return named[name]
}
