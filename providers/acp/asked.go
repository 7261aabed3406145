package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// pending is a permission that nobody has answered, with the agent's own id of the question, and what it offers for an answer.
type pending struct {
	providers.Permission
	Request json.RawMessage `json:"request"`
	Allow   string          `json:"allow,omitempty"` // the ids of options
	Reject  string          `json:"reject,omitempty"`
}

// asked takes in what the agent asks of us. A permission waits for its answer; the rest is nothing that we offered.
func (f *fold) asked(m message) {
	q := m.Params
	p := f.permission(m, q)
	switch known := slices.ContainsFunc(f.Pending, func(o pending) bool { return bytes.Equal(o.Request, m.ID) }); {
	case known: // said again
	case m.Method != "session/request_permission":
		f.Notice(f.agent.title + " asked for " + wire.Clip(m.Method, wire.IDLimit) + ", which is not available here")
		f.Send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "not available here"}})
	case f.Prompt == "" || f.End != nil || f.Stop || q.SessionID != f.Session:
		f.reply(p, nil)
	case p.Allow == "" && q.option("allow_always") != "":
		f.Notice(f.agent.title + " asked " + p.Title + ", to be allowed it for good or not at all, and was refused")
		f.reply(p, &p.Reject)
	case f.Order.Approve == "all" && !f.Order.Policy:
		f.reply(p, &p.Allow)
	case len(f.Pending) == wire.Most || len(m.ID) > wire.IDLimit:
		f.Notice(f.agent.title + " asked " + p.Title + ": more than can be kept, and was refused")
		f.reply(p, &p.Reject)
	default:
		f.ask(p, q)
	}
}

// permission is what the agent asks for, in our words: what the question says, and its tool call has said before.
func (f *fold) permission(m message, q params) pending {
	o := open{ID: wire.Clip(q.ToolCall.ToolCallID, wire.IDLimit)}
	if known := f.known(o.ID); known != nil {
		o = *known
	}
	o.learn(q.ToolCall)
	p := pending{Request: m.ID, Allow: f.allowing(q), Reject: q.option("reject_once", "reject_always")}
	p.ToolCall, p.Kind, p.Tool = o.ID, o.Kind, o.Tool
	if p.Kind == "" {
		p.Kind = "other"
	}
	switch {
	case o.Runs || p.Kind == "execute":
		o.runs(&p)
	case slices.Contains([]string{"edit", "delete", "move", "read"}, p.Kind):
		p.Paths = o.Paths
		p.Title = "to " + p.Kind + " " + strings.Join(f.relative(o.Paths), ", ")
		if len(o.Paths) == 0 {
			p.Title = "for " + o.Title
		}
	default:
		p.Title = "for " + o.Title
	}
	p.Title = wire.Clip(p.Title, wire.TitleLimit)
	return p
}

// runs says what is run. The title is that only of an agent that says nothing else of it; what cannot be told is a command of which
// nobody knows what it is.
func (o open) runs(p *pending) {
	p.Command = o.Command
	if !o.Input && len(o.Title) < wire.TitleLimit/2 {
		p.Command = o.Title
	}
	if p.Command == "" {
		p.Kind = "execute"
	}
	if p.Kind != "execute" {
		p.Paths = o.Paths
	}
	p.Title = "to run " + cmp.Or(p.Command, o.Title)
}

// allowing is the option by which something is allowed once. An agent that is held to asking is not allowed anything for good.
func (f *fold) allowing(q params) string {
	if f.Order.Policy || f.Order.Approve != "" {
		return q.option("allow_once")
	}
	return q.option("allow_once", "allow_always")
}

// relative are paths as seen from where the agent works.
func (f *fold) relative(paths []string) (names []string) {
	for _, path := range paths {
		names = append(names, strings.TrimPrefix(path, strings.TrimSuffix(f.Order.Cwd, "/")+"/"))
	}
	return names
}

// option is the first of the kinds that is offered. What an option is called, and what its id is, says nothing.
func (q params) option(kinds ...string) string {
	for _, kind := range kinds {
		for _, o := range q.Options {
			if o.Kind == kind && o.OptionID != "" {
				return wire.Clip(o.OptionID, wire.IDLimit)
			}
		}
	}
	return ""
}

// ask has a permission wait for its answer.
func (f *fold) ask(p pending, q params) {
	f.alive()
	f.Asked++
	p.ID = wire.Permission(f.Order.Turn, f.Asked, p.Request)
	call := map[string]any{"toolCallId": p.ToolCall, "title": p.Title, "kind": p.Kind}
	if len(q.ToolCall.RawInput) > 0 && len(q.ToolCall.RawInput) <= wire.KeptLimit {
		call["rawInput"] = q.ToolCall.RawInput
	}
	f.Tell("permission_requested", map[string]any{
		"permission": p.ID, "toolCall": call, "reason": p.Reason, "options": []providers.Decision{providers.Allow, providers.Deny},
	})
	f.Pending = append(f.Pending, p)
}

// Answer answers what was asked. Where nobody is there, the turn is cancelled behind the answer.
func (f *fold) Answer(permission string, d providers.Decision) []providers.Frame {
	i := slices.IndexFunc(f.Pending, func(p pending) bool { return p.ID == permission })
	if i < 0 {
		return nil
	}
	p := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	return f.Made(wire.Ordered(f.Order.Turn, "answer."+permission), 0, func() {
		if d == providers.Allow {
			f.reply(p, &p.Allow)
			return
		}
		f.Refused = wire.Clip(p.Title, wire.WordsLimit)
		f.reply(p, &p.Reject)
		if d == providers.Fail {
			f.Denied, f.Stop = "it asked "+p.Title+", and nobody was there to allow it", true
			f.cancel()
		}
	})
}

// withdrawn is what the agent waits for no longer.
func (f *fold) withdrawn(request json.RawMessage) {
	i := slices.IndexFunc(f.Pending, func(o pending) bool { return bytes.Equal(o.Request, request) })
	if i < 0 {
		return
	}
	gone := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	f.Send(map[string]any{"jsonrpc": "2.0", "id": gone.Request, "error": map[string]any{"code": -32800, "message": "cancelled"}})
	f.Tell("permission_resolved", map[string]string{"permission": gone.ID, "decision": "lapsed"})
}

// reply chooses an option; without one that fits, the question is cancelled.
func (f *fold) reply(p pending, option *string) {
	outcome := map[string]string{"outcome": "cancelled"}
	if option != nil && *option != "" {
		outcome = map[string]string{"outcome": "selected", "optionId": *option}
	}
	f.Send(map[string]any{"jsonrpc": "2.0", "id": p.Request, "result": map[string]any{"outcome": outcome}})
}

// lapse is for what is asked when the turn ends. Unless the turn was cancelled, the agent waits for answers still.
func (f *fold) lapse() {
	for _, p := range f.Pending {
		if !f.Stop {
			f.reply(p, nil)
		}
		f.Tell("permission_resolved", map[string]string{"permission": p.ID, "decision": "lapsed"})
	}
	f.Pending = nil
}
