package pi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// dialog is what an extension asks somebody, or tells.
type dialog struct {
	ID      ident
	Method  word
	Title   word
	Message word
	Options []word
	Key     word `json:"statusKey"`
	Text    word `json:"statusText"`
}

// pending is a permission that nobody has answered, with pi's own id of the dialog, and what answers it.
type pending struct {
	providers.Permission
	Request string `json:"request"`
	Yes     string `json:"yes,omitempty"` // of the options; "" in a dialog that is confirmed or not
	No      string `json:"no,omitempty"`
}

// asked takes in what an extension wants to have seen. What can be answered by yes or no is a permission and waits for its
// answer; the rest is refused at once, since the turn would wait for ever.
func (f *fold) asked(line []byte) {
	var d dialog
	_ = wire.Read(line, &d)
	switch d.Method {
	case "notify":
		f.Notice(string(d.Message))
	case "setStatus":
		f.Gated = f.Gated || d.Key == "pintle" && d.Text == "asks" && !f.Ready
	case "setWidget", "setTitle", "set_editor_text": // is for a screen
	case "select", "confirm", "input", "editor":
		f.wants(d)
	default:
		f.cancel(string(d.ID))
	}
}

// wants takes in that somebody is asked something.
func (f *fold) wants(d dialog) {
	p, ours, ok := f.permission(d)
	known := slices.ContainsFunc(f.Pending, func(o pending) bool { return o.Request == p.Request })
	switch {
	case known: // said again
	case f.breaking():
		f.cancel(p.Request)
	case !ok:
		f.Notice("an extension of pi's asked " + p.Title + ", which cannot be answered here")
		f.cancel(p.Request)
	case !f.outstanding():
		f.Notice("pi asked " + p.Title + " outside of a turn, and was refused")
		f.reply(p, providers.Deny)
	case ours && !gated(f.Order), f.Order.Approve == "all" && !f.Order.Policy:
		f.reply(p, providers.Allow)
	case len(f.Pending) == wire.Most:
		f.Notice("pi asked " + p.Title + ": more than can be kept, and was refused")
		f.reply(p, providers.Deny)
	default:
		f.ask(p)
	}
}

// question is what our extension asks.
type question struct {
	Pintle  word
	Call    ident
	Tool    ident
	Builtin bool
	Paths   []word
	Input   json.RawMessage
}

// permission is what is asked, in our words. ours is that it is asked by our extension, and ok that it is answered by yes or no.
func (f *fold) permission(d dialog) (p pending, ours, ok bool) {
	p = pending{Request: string(d.ID), Permission: providers.Permission{Kind: "other"}}
	var q question
	if d.Method == "select" && wire.Read([]byte(d.Title), &q) && q.Pintle == "tool_call" {
		f.describe(&p, q)
		p.Yes, p.No = "allow", "deny"
		return p, true, true
	}
	p.Title = wire.Clip("\""+strings.TrimSpace(string(d.Title+" "+d.Message))+"\"", wire.TitleLimit)
	if d.Method == "confirm" {
		return p, false, true
	}
	p.Yes, p.No = yesOrNo(d.Options)
	return p, false, d.Method == "select" && p.Yes != ""
}

// describe says what a tool would do. A tool that an extension has put in the place of one of pi's may do something else: it is
// no reading, whatever it is called.
func (f *fold) describe(p *pending, q question) {
	if i := f.find(q.Call); i >= 0 {
		f.Calls[i].Asked = true
	}
	d := f.deed(string(q.Tool), q.Input)
	p.ToolCall, p.Tool, p.Kind, p.Command = string(q.Call), string(q.Tool), d.kind, d.command
	p.Title = wire.Clip(d.wish(), wire.TitleLimit)
	if !q.Builtin && d.kind != "execute" {
		p.Kind = "other"
	}
	for _, path := range q.Paths {
		if len(path) > wire.TitleLimit {
			p.Paths = nil
			break
		}
		p.Paths = append(p.Paths, string(path))
	}
}

// yesOrNo are the options of a question that has those two; "" if it is another one.
func yesOrNo(options []word) (yes, no string) {
	if len(options) != 2 {
		return "", ""
	}
	for _, o := range options {
		first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(string(o))), " ")
		switch first = strings.Trim(first, ".,!:"); {
		case len(o) > wire.IDLimit:
		case slices.Contains([]string{"yes", "y", "allow", "approve", "accept", "ok", "confirm", "continue", "proceed"}, first):
			yes = string(o)
		case slices.Contains([]string{"no", "n", "deny", "don't", "block", "reject", "refuse", "cancel", "abort", "decline", "stop"}, first):
			no = string(o)
		}
	}
	if yes == "" || no == "" {
		return "", ""
	}
	return yes, no
}

// ask has a permission wait for its answer.
func (f *fold) ask(p pending) {
	f.alive()
	f.Asked++
	p.ID = wire.Permission(f.Order.Turn, f.Asked, []byte(p.Request))
	f.Tell("permission_requested", map[string]any{
		"permission": p.ID, "reason": p.Reason, "options": []providers.Decision{providers.Allow, providers.Deny},
		"toolCall": map[string]any{"toolCallId": p.ToolCall, "title": p.Title, "kind": p.Kind},
	})
	f.Pending = append(f.Pending, p)
}

// reply answers a dialog.
func (f *fold) reply(p pending, d providers.Decision) {
	answer := map[string]any{"type": "extension_ui_response", "id": p.Request}
	switch {
	case p.Yes == "":
		answer["confirmed"] = d == providers.Allow
	case d == providers.Allow:
		answer["value"] = p.Yes
	default:
		answer["value"] = p.No
	}
	f.Send(answer)
}

// cancel has a dialog go away: whoever asked takes that for no.
func (f *fold) cancel(request string) {
	if request != "" {
		f.Send(map[string]any{"type": "extension_ui_response", "id": request, "cancelled": true})
	}
}

// Answer answers what was asked. Where nobody is there, the turn is broken off before.
func (f *fold) Answer(permission string, d providers.Decision) []providers.Frame {
	i := slices.IndexFunc(f.Pending, func(p pending) bool { return p.ID == permission })
	if i < 0 {
		return nil
	}
	p := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	return f.Made(f.ordered("answer."+permission), 0, func() {
		if d == providers.Fail {
			f.Denied = "it asked " + p.Title + ", and nobody was there to allow it"
			f.abort()
		}
		f.reply(p, d)
	})
}

// lapse is for what is asked when the turn ends. Whoever asked may wait still.
func (f *fold) lapse() {
	for _, p := range f.Pending {
		if !f.Stop {
			f.cancel(p.Request)
		}
		f.Tell("permission_resolved", map[string]string{"permission": p.ID, "decision": "lapsed"})
	}
	f.Pending = nil
}
