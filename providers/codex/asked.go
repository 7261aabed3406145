package codex

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pintle/pintle/providers"
)

// pending is a permission that nobody has answered, with the server's own id of the question, and how it is answered.
type pending struct {
	providers.Permission
	Request json.RawMessage `json:"request"`
	Thread  string          `json:"thread,omitempty"`
	Form    form            `json:"form"`
	Wanted  json.RawMessage `json:"wanted,omitempty"` // the permissions, if such are to be granted
}

// form is how a question is answered.
type form string

const (
	decision form = "decision"
	review   form = "review" // as decision, in older words
	grant    form = "grant"
	consent  form = "consent"
)

// asked takes in what the server asks of us. What can be answered by yes or no is a permission and waits for its answer;
// the rest is refused at once, since the turn would wait for ever.
func (f *fold) asked(m message) {
	var q question
	_ = json.Unmarshal(m.Params, &q)
	if q.ThreadID == "" {
		q.ThreadID = q.ConversationID
	}
	p, ok := f.permission(m, q)
	if f.Shared && q.ThreadID == "" {
		f.refuse(m) // whoever is meant: each fold does so, and the server hears the first
		return
	}
	switch known := slices.ContainsFunc(f.Pending, func(o pending) bool { return equal(o.Request, m.ID) }); {
	case known: // said again
	case !ok:
		f.notice("Codex asked " + q.talk(m.Method) + ", which cannot be answered here")
		f.refuse(m)
	case f.Prompt == "" || f.End != nil:
		f.notice("Codex asked " + p.Title + " outside of a turn, and was refused")
		f.reply(p, providers.Deny)
	case len(f.Pending) == most || len(p.Request)+len(p.Wanted) > wantedLimit:
		f.notice("Codex asked " + p.Title + ": more than can be kept, and was refused")
		f.reply(p, providers.Deny)
	default:
		f.ask(p, q)
	}
}

// wantedLimit is how long a request may be that is kept, in bytes.
const wantedLimit = 16 << 10

// permission is what the server asks for, in our words.
func (f *fold) permission(m message, q question) (p pending, ok bool) {
	p = pending{Request: m.ID, Thread: string(q.ThreadID), Form: decision}
	p.ToolCall = string(q.ItemID)
	switch {
	case m.Method == "item/commandExecution/requestApproval":
		p.Title, p.Kind = q.command(), "execute"
	case m.Method == "execCommandApproval":
		p.Form, p.ToolCall, p.Title, p.Kind = review, string(q.CallID), q.command(), "execute"
	case m.Method == "item/fileChange/requestApproval":
		p.Title, p.Kind = f.change(q), "edit"
	case m.Method == "applyPatchApproval":
		p.Form, p.ToolCall, p.Title, p.Kind = review, string(q.CallID), f.change(q), "edit"
	case m.Method == "item/permissions/requestApproval":
		p.Form, p.Title, p.Kind, p.Wanted = grant, "for more permissions: "+q.Permissions.words(), "other", wanted(m.Params)
	case m.Method == "mcpServer/elicitation/request" && q.plain():
		p.Form, p.Title, p.Kind = consent, q.consent(), "other"
	default:
		return p, false
	}
	p.Title, p.Reason = clip(p.Title, titleLimit), clip(q.Reason, wordsLimit)
	p.Command, p.Paths = f.exactly(p.Kind, q)
	return p, true
}

// exactly is what would be done, if that is all of it: with more permissions, or in more files than are known, it is more.
func (f *fold) exactly(kind string, q question) (command string, paths []string) {
	switch line := q.line(); {
	case kind == "execute" && q.Network == nil && q.Kind != "writeStdin" && q.Additional.words() == "" && len(line) <= titleLimit:
		return line, nil
	case kind == "edit" && q.GrantRoot == "":
		if c := f.asksToChange(q); c != nil && c.Note == "" {
			return "", c.files()
		}
	}
	return "", nil
}

// refuse answers what cannot be answered. A model is told that there was no answer.
func (f *fold) refuse(m message) {
	result := map[string]any{
		"item/tool/requestUserInput":    map[string]any{"answers": map[string]any{}},
		"mcpServer/elicitation/request": map[string]any{"action": "decline", "content": nil, "_meta": nil},
	}[m.Method]
	if result != nil {
		f.send(map[string]any{"id": m.ID, "result": result})
		return
	}
	f.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "not available here"}})
}

// ask has a permission wait for its answer.
func (f *fold) ask(p pending, q question) {
	f.Asked++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", f.Order.Turn, f.Asked, p.Request))
	p.ID = "p-" + hex.EncodeToString(sum[:8])
	call := map[string]any{"toolCallId": p.ToolCall, "title": p.Title, "kind": p.Kind}
	if len(q.Command) > 0 && !bytes.Equal(q.Command, []byte("null")) {
		call["rawInput"] = map[string]any{"command": q.Command, "cwd": q.Cwd}
	}
	if c := f.asksToChange(q); p.Kind == "edit" && c != nil {
		call["rawInput"] = c
	}
	f.tell("permission_requested", map[string]any{
		"permission": p.ID, "toolCall": call, "reason": p.Reason, "options": []providers.Decision{providers.Allow, providers.Deny},
	})
	f.Pending = append(f.Pending, p)
}

// Answer answers what was asked.
func (f *fold) Answer(permission string, d providers.Decision) []providers.Frame {
	i := slices.IndexFunc(f.Pending, func(p pending) bool { return p.ID == permission })
	if i < 0 {
		return nil
	}
	p := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	return f.made(f.ordered("answer."+permission), 0, func() {
		f.reply(p, d)
		if d == providers.Fail {
			f.Denied = "it asked " + p.Title + ", and nobody was there to allow it"
			f.deny(p)
		}
	})
}

// deny ends the turn of what was refused, where the answer alone does not.
func (f *fold) deny(p pending) {
	if f.own(ident(p.Thread)) && (p.Form == decision || p.Form == review) {
		return
	}
	f.Stop = true
	f.interrupt()
}

// reply gives the answer in the words that the question has for it. A permission that is granted is for the turn.
func (f *fold) reply(p pending, d providers.Decision) {
	none := map[string]any{}
	answers := map[form]map[providers.Decision]any{
		decision: {
			providers.Allow: map[string]any{"decision": "accept"}, providers.Deny: map[string]any{"decision": "decline"},
			providers.Fail: map[string]any{"decision": "cancel"},
		},
		review: {
			providers.Allow: map[string]any{"decision": "approved"}, providers.Fail: map[string]any{"decision": "abort"},
			providers.Deny: map[string]any{"decision": map[string]any{"denied": map[string]any{"rejection": "refused"}}},
		},
		grant: {
			providers.Allow: map[string]any{"permissions": p.Wanted, "scope": "turn"},
			providers.Deny:  map[string]any{"permissions": none, "scope": "turn"}, providers.Fail: map[string]any{"permissions": none, "scope": "turn"},
		},
		consent: {
			providers.Allow: map[string]any{"action": "accept", "content": none, "_meta": nil},
			providers.Deny:  map[string]any{"action": "decline", "content": nil, "_meta": nil},
			providers.Fail:  map[string]any{"action": "cancel", "content": nil, "_meta": nil},
		},
	}
	f.send(map[string]any{"id": p.Request, "result": answers[p.Form][d]})
}

// resolved is that the server wants no answer any more. For what we have answered it says so too.
func (f *fold) resolved(params json.RawMessage) {
	var p struct{ RequestID json.RawMessage }
	_ = json.Unmarshal(params, &p)
	f.lapsed(func(o pending) bool { return equal(o.Request, p.RequestID) })
}

// lapse is for what is asked when the turn ends. Those whom the end does not reach are told.
func (f *fold) lapse() {
	for _, p := range f.Pending {
		if !f.own(ident(p.Thread)) {
			f.reply(p, providers.Fail)
		}
	}
	f.lapsed(func(pending) bool { return true })
}

func (f *fold) lapseOf(thread string) {
	f.lapsed(func(p pending) bool { return p.Thread == thread })
}

// lapsed has permissions not be pending any more.
func (f *fold) lapsed(which func(pending) bool) {
	for _, p := range f.Pending {
		if which(p) {
			f.tell("permission_resolved", map[string]string{"permission": p.ID, "decision": "lapsed"})
		}
	}
	f.Pending = slices.DeleteFunc(f.Pending, which)
}
