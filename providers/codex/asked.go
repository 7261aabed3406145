package codex

import (
	"encoding/json"
	"fmt"
)

// asked answers what the server asks of us. There is nobody to ask: as ordered, the agent is refused and its turn goes
// on, or the turn ends and the run with it.
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
	id := fmt.Sprintf("p-%s", m.ID)
	f.tell("permission_requested", map[string]any{
		"permission": id, "toolCall": map[string]string{"toolCallId": p.ItemID, "title": what, "kind": kind}, "reason": p.Reason,
	})
	decision := "cancel"
	if f.Order.Unattended == "deny" {
		decision = "decline"
	} else {
		f.Denied = "it asked " + what + ", and nobody was there to allow it"
	}
	f.send(map[string]any{"id": m.ID, "result": map[string]string{"decision": decision}})
	f.tell("permission_resolved", map[string]string{"permission": id, "decision": decision})
}
