package codex

import (
	"encoding/json"
	"testing"

	"github.com/pintle/pintle/internal/session"
)

// All that codex's schema knows, and what it does not.
func TestB1_Causes(t *testing.T) {
	for info, want := range map[string]string{
		`"contextWindowExceeded"`: "config", `"sessionBudgetExceeded"`: "budget", `"usageLimitExceeded"`: "capacity",
		`"rateLimitExceeded"`: "capacity", `"flexUnavailable"`: "capacity", `"serverOverloaded"`: "capacity", `"modelNotFound"`: "config",
		`"policyCapacityUnavailable"`: "capacity", `"inferenceHookDenied"`: "config", `"cyberPolicy"`: "", `"bioPolicy"`: "",
		`"misalignmentPolicyViolation"`: "", `"tooManyDenials"`: "", `"internalServerError"`: "transient", `"unauthorized"`: "auth",
		`"badRequest"`: "config", `"threadRollbackFailed"`: "protocol", `"sandboxError"`: "config", `"other"`: "",
		`{"httpConnectionFailed":{"httpStatusCode":503}}`: "transient", `{"httpConnectionFailed":{"httpStatusCode":401}}`: "auth",
		`{"httpConnectionFailed":{"httpStatusCode":404}}`: "config", `{"responseStreamConnectionFailed":{"httpStatusCode":null}}`: "transient",
		`{"responseStreamDisconnected":{"httpStatusCode":null}}`: "transient", `{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: "capacity",
		`{"activeTurnNotSteerable":{"turnKind":"review"}}`: "protocol", `{"new":{"x":1},"newer":2}`: "", `17`: "", `null`: "", `["x"]`: "",
	} {
		var f fold
		if got := f.verdict(turnError{CodexErrorInfo: json.RawMessage(info)}).Code; got != want {
			t.Errorf("%s: %q, want %q", info, got, want)
		}
	}
}

// What codex gave up trying again for is called other at the end.
func TestB1_OtherIsCalledByWhatItTriedAgainFor(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.notifies("error", "U", `"error":{"message":"Reconnecting","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":null}}},"willRetry":true`)
	k.notifies("error", "U", `"error":{"message":"idle timeout","codexErrorInfo":"other"},"willRetry":false`)
	k.notifies("turn/completed", "U", `"turn":{"id":"U","status":"failed","error":{"message":"idle timeout","codexErrorInfo":"other"}}`)
	k.wantEnd(session.Failed, "transient", "idle timeout")
}
