package claude

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// result is the end of a turn, in the agent's words.
type result struct {
	Subtype  word
	IsError  bool `json:"is_error"`
	Result   word
	Errors   []word
	Status   int  `json:"api_error_status"`
	Fault    word `json:"api_error"`
	Reason   word `json:"terminal_reason"`
	Usage    tokens
	Models   map[string]modelUsage `json:"model_usage_since_last_result"`
	TotalUSD *float64              `json:"total_cost_usd"`
	UUIDs    names                 `json:"user_message_uuids"`
}

// message is what there is to say of an error.
func (r result) message() string {
	var words []string
	for _, e := range r.Errors {
		words = append(words, string(e))
	}
	return cmp.Or(strings.Join(words, "; "), string(r.Result), "the turn ended as "+string(r.Subtype))
}

// aborted says that the turn was broken off.
func (r result) aborted() bool {
	return r.Subtype == "error_during_execution" || strings.HasPrefix(string(r.Reason), "aborted")
}

// result takes in how a turn ended. It may be the agent's own; one that has taken our prompt in is ours too. A conversation
// that cannot be opened has one as well, before anything else is said.
func (f *fold) result(line []byte) {
	var r result
	read(line, &r)
	end, spent := f.verdict(r), f.spend(r)
	f.Busy, f.Stream = f.Busy && f.Tells, stream{}
	if !f.Ready {
		f.unopened(r)
		return
	}
	if f.Own {
		taken := f.outstanding() && (f.Confirmed || r.UUIDs.have(f.promptID()))
		f.ended(&end, spent)
		if !taken {
			f.due()
			return
		}
	}
	if !f.outstanding() {
		return
	}
	f.Result, f.Trouble = &end, ""
	f.Spent, f.Running = plus(f.Spent, spent), providers.Usage{}
	f.Tell("usage_update", f.Spent)
	f.over()
}

// unopened is that the conversation was not opened.
func (f *fold) unopened(r result) {
	code := "config"
	if f.Order.Conversation != "" && strings.Contains(r.message(), "No conversation found") {
		code = "session_lost" // its file is there, and is not one of a conversation
	}
	f.Waiting = ""
	f.finish(session.Failed, code, r.message())
}

// verdict is how a turn ended, in our words. That it is an error comes before that it is a success: what the model's server
// refused has both.
func (f *fold) verdict(r result) providers.End {
	switch {
	case r.Subtype == "success" && !r.IsError && f.Stream.cut():
		return failed("transient", "the model's answer was cut off")
	case r.Subtype == "success" && !r.IsError:
		return providers.End{Outcome: session.Completed}
	case r.aborted() && f.Failure != nil && f.ours():
		return *f.Failure
	case r.aborted() && (f.Stop || f.Denied != ""):
		return providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "the turn was interrupted"}
	case r.Subtype == "error_max_budget_usd" || r.Subtype == "error_max_turns":
		return providers.End{Outcome: session.Budget, Code: "budget", Message: wire.Clip(r.message(), wire.WordsLimit)}
	}
	return failed(f.because(r), r.message())
}

func failed(code, message string) providers.End {
	return providers.End{Outcome: session.Failed, Code: code, Message: wire.Clip(message, wire.WordsLimit)}
}

// because is the typed cause (B1).
func (f *fold) because(r result) string {
	if r.Reason == "prompt_too_long" || r.Reason == "image_error" {
		return "config"
	}
	return cmp.Or(cause(r.Status, string(r.Fault)), cause(0, f.Fault))
}

// cause is by the status of the model's server, or by what the agent calls an error. A request that it calls invalid has
// none: it would be refused again.
func cause(status int, name string) string {
	switch {
	case status == 401 || status == 403:
		return "auth"
	case status == 429 || status == 529:
		return "capacity"
	case status == 402 || status == 404 || status == 413:
		return "config"
	case status == 408 || status >= 500:
		return "transient"
	case status > 0:
		return ""
	}
	return named[name]
}

var named = map[string]string{
	"authentication_failed": "auth", "oauth_org_not_allowed": "auth",
	"rate_limit": "capacity", "overloaded": "capacity",
	"server_error": "transient", "connection_failed": "transient",
	"billing_error": "config", "model_not_found": "config",
}

// retried is a request that the agent makes again.
type retried struct {
	Attempt int
	Most    int `json:"max_retries"`
	Status  int `json:"error_status"`
	Error   word
}

// enough is how often a key is tried that is refused. By then one that could be renewed was; the agent itself goes on for
// minutes.
const enough = 3

// retries tells that the agent asks the model again.
func (f *fold) retries(line []byte) {
	var r retried
	read(line, &r)
	why := "the model cannot be reached"
	if r.Status > 0 {
		why = fmt.Sprintf("the model's server answered %d", r.Status)
	}
	why = fmt.Sprintf("%s; Claude Code tries it again, %d of %d", why, r.Attempt, r.Most)
	code := cmp.Or(cause(r.Status, string(r.Error)), "transient")
	f.Tell("agent_notice", map[string]any{"message": why, "cause": code, "willRetry": true})
	if !f.ours() {
		return
	}
	f.Trouble = why
	if code == "auth" && r.Attempt >= enough {
		f.giveUp(code, fmt.Sprintf("the model's server answered %d, %d times", r.Status, r.Attempt))
	}
}

// informed tells what the agent wants somebody to know.
func (f *fold) informed(line []byte) {
	var m struct{ Content word }
	read(line, &m)
	if m.Content != "" {
		f.Notice(string(m.Content))
	}
}
