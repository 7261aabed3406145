//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
)

// acpClient is a client of the Agent Client Protocol, no larger than a turn needs.
type acpClient struct {
	*peer
	session string
}

// acpLine is one of an agent's: a notification or request if it has a method, an answer otherwise.
type acpLine struct {
	ID     json.RawMessage
	Method string
	Result struct{ SessionID, StopReason string }
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	Params struct {
		Update  acpUpdate
		Options []struct{ OptionID, Kind string }
	}
}

type acpUpdate struct {
	SessionUpdate, ToolCallID, MessageID string
	Content                              json.RawMessage // a block where something is said, a list of them where a tool has done something
}

// meetACP shakes hands with an agent and opens a session.
func meetACP(l *agentLab, p *peer) converser {
	c := &acpClient{peer: p}
	none := object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false}
	c.answer(c.request("initialize", object{"protocolVersion": 1, "clientCapabilities": none, "clientInfo": object{"name": "pintle", "version": "0"}}), nil)
	c.session = c.answer(c.request("session/new", object{"cwd": l.dir, "mcpServers": []object{}}), nil).Result.SessionID
	return c
}

func (c *acpClient) request(method string, params object) (id string) {
	c.t.Helper()
	c.lastID++
	c.write(object{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params})
	return fmt.Sprint(c.lastID)
}

// answer is that to a request. What comes before it is told, but for what the agent asks for: that is allowed.
func (c *acpClient) answer(id string, tell func(acpUpdate)) acpLine {
	c.t.Helper()
	for {
		switch l := next[acpLine](c.peer); {
		case l.Method == "session/update" && tell != nil:
			tell(l.Params.Update)
		case l.Method == "session/request_permission":
			c.allow(l)
		case l.Method == "" && string(l.ID) == id:
			return l
		}
	}
}

func (c *acpClient) allow(l acpLine) {
	c.t.Helper()
	for _, o := range l.Params.Options {
		if o.Kind == "allow_once" {
			c.write(object{"jsonrpc": "2.0", "id": l.ID, "result": object{"outcome": object{"outcome": "selected", "optionId": o.OptionID}}})
			return
		}
	}
	c.t.Fatalf("it cannot be allowed: %+v", l.Params)
}

func (c *acpClient) turn(prompt string) (o outcome) {
	c.t.Helper()
	tools := map[string]bool{}
	end := c.answer(c.request("session/prompt", object{"sessionId": c.session, "prompt": []object{{"type": "text", "text": prompt}}}), func(u acpUpdate) {
		switch u.SessionUpdate {
		case "agent_message_chunk":
			var block struct{ Text string }
			if err := json.Unmarshal(u.Content, &block); err != nil {
				c.t.Errorf("%s: %v", u.Content, err)
			}
			o.text += block.Text
			if u.MessageID == "" {
				o.beside += block.Text
			}
		case "tool_call", "tool_call_update":
			tools[u.ToolCallID] = true
		}
	})
	o.tools = len(tools)
	if end.Error != nil {
		o.failure = fmt.Sprintf("%d %s %s", end.Error.Code, end.Error.Message, end.Error.Data)
	} else if end.Result.StopReason != "end_turn" {
		o.failure = end.Result.StopReason
	}
	return o
}
