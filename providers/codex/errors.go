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

// failed notes an error. One that is tried again by the agent itself is told and no end.
func (f *fold) failed(params json.RawMessage) {
	var p struct {
		Error     turnError
		WillRetry bool
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	end := p.Error.end()
	f.tell("agent_notice", map[string]any{"message": end.Message, "cause": end.Code, "willRetry": p.WillRetry})
	if !p.WillRetry {
		f.Failure = &end
	}
}

func (e turnError) end() providers.End {
	message := e.Message
	if e.AdditionalDetails != "" {
		message += ": " + e.AdditionalDetails
	}
	return providers.End{Outcome: session.Failed, Code: e.cause(), Message: message}
}

// named are causes by the info's name.
var named = map[string]string{
	"unauthorized": "auth", "usageLimitExceeded": "capacity", "rateLimitExceeded": "capacity", "serverOverloaded": "capacity",
	"internalServerError": "transient", "responseStreamDisconnected": "transient", "responseStreamConnectionFailed": "transient",
	"httpConnectionFailed": "transient", "responseTooManyFailedAttempts": "transient", "badRequest": "config",
	"contextWindowExceeded": "config",
}

// cause is the typed cause (B1), from codex's code and, where it has one, the status of the model's server.
func (e turnError) cause() string {
	var name string
	status := 0
	if json.Unmarshal(e.CodexErrorInfo, &name) != nil {
		var object map[string]json.RawMessage
		_ = json.Unmarshal(e.CodexErrorInfo, &object)
		for key, value := range object {
			var v struct{ HTTPStatusCode *int }
			_ = json.Unmarshal(value, &v)
			if name = key; v.HTTPStatusCode != nil {
				status = *v.HTTPStatusCode
			}
		}
	}
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
