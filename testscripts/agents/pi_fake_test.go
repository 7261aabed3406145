//go:build agents

package agents

import (
	"encoding/json"
	"testing"
)

func TestPi_Fake(t *testing.T) { converses(t, "pi", "the script says 400") }

// piClient speaks to pi's rpc mode.
type piClient struct{ *peer }

// piLine is a line of pi's, as far as these tests look.
type piLine struct {
	ID, Type, Command string
	Success           bool
	Error             string
	Message           struct {
		Role, StopReason, ErrorMessage string
		Content                        json.RawMessage
	}
}

// meetPi waits for it to be ready.
func meetPi(_ *agentLab, p *peer) converser {
	p.write(object{"id": "ready", "type": "get_state"})
	for next[piLine](p).Type != "response" {
	}
	return piClient{p}
}

func (c piClient) turn(prompt string) (o outcome) {
	c.t.Helper()
	c.write(object{"id": "prompt", "type": "prompt", "message": prompt})
	for {
		switch l := next[piLine](c.peer); l.Type {
		case "response":
			if !l.Success {
				c.t.Fatal(l.Error)
			}
		case "tool_execution_start":
			o.tools++
		case "message_end":
			if l.Message.Role == "assistant" {
				o.text, o.failure = c.text(l.Message.Content), l.Message.ErrorMessage
			}
		case "agent_settled":
			return o
		}
	}
}

func (c piClient) text(content json.RawMessage) (text string) {
	c.t.Helper()
	var parts []struct{ Text string }
	if err := json.Unmarshal(content, &parts); err != nil {
		c.t.Errorf("%s: %v", content, err)
	}
	for _, part := range parts {
		text += part.Text
	}
	return text
}
