package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pintle/pintle/providers"
)

// asked takes in what the server asks of us: permissions wait for their answer.
func (f *fold) asked(m message) {
	switch m.Method {
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
		f.permission(m)
	default:
		f.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "not available here"}})
	}
}

func (f *fold) permission(m message) {
	var p struct {
		ItemID, Command, Reason string
	}
	_ = json.Unmarshal(m.Params, &p)
	what := "to change files"
	kind := "edit"
	if p.Command != "" {
		what, kind = "to run "+p.Command, "execute"
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", f.Order.Turn, m.ID))
	id := "p-" + hex.EncodeToString(sum[:8])
	f.tell("permission_requested", map[string]any{
		"permission": id, "toolCall": map[string]string{"toolCallId": p.ItemID, "title": what, "kind": kind}, "reason": p.Reason,
	})
	f.Pending = append(f.Pending, pending{providers.Permission{
		ID: id, ToolCall: p.ItemID, Title: what, Kind: kind, Reason: p.Reason,
	}, m.ID})
}

// pending is a permission that nobody has answered, with the server's own id of the question.
type pending struct {
	providers.Permission
	Request json.RawMessage `json:"request"`
}

// Answer answers what was asked.
func (f *fold) Answer(permission string, d providers.Decision) []providers.Frame {
	i := slices.IndexFunc(f.Pending, func(p pending) bool { return p.ID == permission })
	if i < 0 {
		return nil
	}
	p := f.Pending[i]
	f.Pending = slices.Delete(f.Pending, i, i+1)
	if d == providers.Fail {
		f.Denied = "it asked " + p.Title + ", and nobody was there to allow it"
	}
	word := map[providers.Decision]string{providers.Allow: "accept", providers.Deny: "decline", providers.Fail: "cancel"}[d]
	return f.made("answer."+permission, func() {
		f.send(map[string]any{"id": p.Request, "result": map[string]string{"decision": word}})
	})
}
