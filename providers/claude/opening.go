package claude

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// Begin takes an order in: the first one opens the conversation, as the process was started for it (launch); a later one
// is its next turn.
func (f *fold) Begin(o providers.Order) []providers.Frame {
	f.Order, f.newest = o, newest{}
	return f.Made(f.ordered("begin"), 0, func() {
		switch {
		case f.Waiting != "": // what it opens with is under way
		case !f.Ready:
			f.Session = conversation(o)
			f.Waiting = f.call("initialize", map[string]any{"subtype": "initialize", "hooks": hooks(o)})
		case gated(o) && !f.Gated:
			f.finish(session.Failed, "config", "Claude Code was started without being told to ask")
		default:
			f.due()
		}
	})
}

// The names that we give to hooks.
const (
	gate = "gate"   // each use of a tool goes through it
	sign = "prompt" // so does each prompt: the sign that the other one is in force
)

// hooks have each use of a tool come to us first, and by our answer become a question: also what Claude Code takes for
// harmless, and what its settings, its mode or another hook allow. An answer that does not come keeps the tool from being
// used. The longest time that it can wait is that of a timer, 24 days.
func hooks(o providers.Order) any {
	if !gated(o) {
		return nil
	}
	hook := func(id string) []any {
		return []any{map[string]any{"matcher": "", "hookCallbackIds": []string{id}, "timeout": 2_000_000, "onFailure": "block"}}
	}
	return map[string]any{"PreToolUse": hook(gate), "UserPromptSubmit": hook(sign)}
}

// greeting is the answer to what opens a conversation. Nothing else is said before a message comes, and a conversation that
// is not there is found out before it.
type greeting struct {
	Version word            `json:"claude_code_version"`
	Mode    word            `json:"current_permission_mode"`
	Hooked  bool            `json:"hooks_applied"`
	Blocks  bool            `json:"hook_on_failure_supported"`
	Pending json.RawMessage `json:"pending_permission_requests"`
}

// answered goes on with what the answer to one of our requests allows. Only one that is waited for counts.
func (f *fold) answered(response json.RawMessage) {
	var r struct {
		Subtype   word
		RequestID ident `json:"request_id"`
		Error     word
		Response  json.RawMessage
	}
	read(response, &r)
	if r.RequestID == "" || string(r.RequestID) != f.Waiting {
		return
	}
	f.Waiting = ""
	if r.Subtype != "success" {
		f.finish(session.Failed, "config", "Claude Code did not open the conversation: "+string(r.Error))
		return
	}
	var g greeting
	read(r.Response, &g)
	f.greeted(g)
}

// greeted checks that the agent is what was asked for, and gives the prompt.
func (f *fold) greeted(g greeting) {
	f.isVersion(string(g.Version))
	switch {
	case gated(f.Order) && !(g.Hooked && g.Blocks):
		f.finish(session.Failed, "config", "Claude Code "+f.Version+" cannot be held to asking before it uses a tool: update it")
		return
	case g.Mode != "" && f.wrong(string(g.Mode)):
		f.finish(session.Failed, "config", "Claude Code did not take the permission mode "+mode+": it has "+wire.Clip(string(g.Mode), wire.IDLimit))
		return
	}
	f.Ready, f.Gated = true, gated(f.Order)
	f.due()
}

// wrong says that a permission mode is not what was asked for. One in which it changes nothing is no harm.
func (f *fold) wrong(got string) bool { return stated(f.Order) && got != mode && got != "plan" }

// isVersion takes in the agent's version.
func (f *fold) isVersion(version string) {
	if version = wire.Clip(version, wire.IDLimit); version == "" || version == f.Version {
		return
	}
	f.Version = version
	if newer(version, Tested) {
		f.Notice("Claude Code " + version + " is newer than " + Tested + ", with which this was tested")
	}
}

// newer says that a version is, in its first two numbers.
func newer(version, than string) bool { return slices.Compare(numbers(version), numbers(than)) > 0 }

func numbers(version string) (n []int) {
	for _, part := range strings.SplitN(version, ".", 3)[:min(2, 1+strings.Count(version, "."))] {
		number, _ := strconv.Atoi(part)
		n = append(n, number)
	}
	return n
}
