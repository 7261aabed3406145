package record

import (
	"encoding/json"
	"maps"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state/journal"
)

const turnStarted = "turn_started"

// single are the events that begin a row each, whatever is around them.
var single = []string{"tool_call", "plan", "turn_ended", "agent_notice", "output_lost"}

// entry is a row in the making.
type entry struct {
	Row
	kept    bool                       // it may be of the page; of others there is no data
	said    bool                       // it is a message
	message string                     // its id
	text    []byte                     // up to what fits a page
	more    bool                       // there is more text
	fields  map[string]json.RawMessage // of a tool call that was updated
	weight  int                        // about its size as JSON, and never more
}

// gathering makes rows of events in their order. Nothing is put together over the beginning of a turn, or of another try
// of one: an agent may give ids again.
type gathering struct {
	window  *window
	message *entry          // the last row, if it is a message
	tools   map[tool]*entry // of this turn, the rows of tool calls
	open    int             // how many of them were kept
}

// tool is a tool call of a turn. Executions may be interleaved, as when a message comes while another's turn runs.
type tool struct{ execution, turn, id string }

func (g *gathering) take(e journal.Event) {
	switch e.Type {
	case turnStarted:
		g.message, g.tools, g.open = nil, nil, 0
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		g.hear(e)
	case "tool_call":
		g.call(e)
	case "tool_call_update":
		g.update(e)
	case "plan", "turn_ended", "agent_notice", "output_lost":
		g.begin(e)
	}
}

// settled reports whether no row that was kept can change any more.
func (g *gathering) settled() bool { return g.open == 0 && (g.message == nil || !g.message.kept) }

func (g *gathering) begin(e journal.Event) *entry {
	row := &entry{weight: len(e.Data), Row: Row{
		Seq: e.Seq, Last: e.Seq, Time: e.Time, Execution: e.Execution, Turn: e.Turn, Fence: e.Fence, Type: e.Type, Data: e.Data,
	}}
	g.message = nil
	if g.window.keep(row); !row.kept {
		row.drop()
	}
	return row
}

func (m *entry) drop() { m.kept, m.Data, m.text, m.fields = false, nil, nil, nil }

// hear takes a part of a message. One that says nothing readable is a row as it is.
func (g *gathering) hear(e journal.Event) {
	text, id, err := session.Heard(e.Data)
	if err != nil {
		g.begin(e)
		return
	}
	m := g.message
	if m == nil || m.message != id || m.Type != e.Type || m.Execution != e.Execution || m.Turn != e.Turn {
		m = g.begin(e)
		m.said, m.message, m.Data, m.weight = true, id, nil, 0
		g.message = m
	}
	m.Last = e.Seq
	if m.kept {
		m.add(text, g.window.bytes)
	}
}

func (m *entry) add(text []byte, most int) {
	room := most - len(m.text)
	m.more = m.more || len(text) > room
	m.text = append(m.text, text[:min(len(text), room)]...)
	m.weight = len(m.text)
}

func toolOf(e journal.Event) (tool, bool) {
	var data struct {
		ID json.RawMessage `json:"toolCallId"`
	}
	err := json.Unmarshal(e.Data, &data)
	return tool{e.Execution, e.Turn, string(data.ID)}, err == nil && data.ID != nil
}

func (g *gathering) call(e journal.Event) {
	row := g.begin(e)
	t, ok := toolOf(e)
	if !ok {
		return
	}
	if g.tools == nil {
		g.tools = map[tool]*entry{}
	}
	g.tools[t] = row
	if row.kept {
		g.open++
	}
}

// update puts what a tool call has become into its row: fields that are given replace those that were. An agent may tell the
// end of what it has not told the beginning of: that is a row, too.
func (g *gathering) update(e journal.Event) {
	t, ok := toolOf(e)
	row := g.tools[t]
	if !ok || row == nil {
		g.call(e)
		return
	}
	row.Last = e.Seq
	if row.kept {
		row.merge(e.Data)
	}
}

func (m *entry) merge(data json.RawMessage) {
	if m.fields == nil {
		_ = json.Unmarshal(m.Data, &m.fields) // toolOf has read it
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields)
	maps.Copy(m.fields, fields)
	m.weight = 0
	for _, value := range m.fields {
		m.weight += len(value)
	}
}
