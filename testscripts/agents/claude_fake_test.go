//go:build agents

package agents

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
)

func TestClaude_Fake(t *testing.T) { converses(t, "claude", "400") }

// claudeClient speaks stream-json.
type claudeClient struct{ *peer }

// claudeLine is a line of Claude Code's, as far as these tests look.
type claudeLine struct {
	Type      string
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string
		Input   json.RawMessage
	}
	Message struct {
		Content json.RawMessage
	}
	Subtype, Result string
	IsError         bool `json:"is_error"`
}

// meetClaude waits for it to be ready.
func meetClaude(_ *agentLab, p *peer) converser {
	p.write(object{"type": "control_request", "request_id": "ready", "request": object{"subtype": "initialize", "hooks": nil}})
	for next[claudeLine](p).Type != "control_response" {
	}
	return claudeClient{p}
}

func (c claudeClient) turn(prompt string) (o outcome) {
	c.t.Helper()
	c.write(object{"type": "user", "message": object{"role": "user", "content": prompt}, "parent_tool_use_id": nil, "session_id": ""})
	for {
		switch l := next[claudeLine](c.peer); {
		case l.Type == "control_request":
			allowed := object{"behavior": "allow", "updatedInput": l.Request.Input}
			c.write(object{"type": "control_response", "response": object{"subtype": "success", "request_id": l.RequestID, "response": allowed}})
		case l.Type == "assistant" && strings.Contains(string(l.Message.Content), `"tool_use"`):
			o.tools++
		case l.Type == "result" && (l.IsError || l.Subtype != "success"):
			o.failure = cmp.Or(l.Result, l.Subtype)
			return o
		case l.Type == "result":
			o.text = l.Result
			return o
		}
	}
}
