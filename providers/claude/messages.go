package claude

import (
	"encoding/json"

	"github.com/pintle/pintle/providers/wire"
)

// text is ACP's block of text.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// chunk is a piece of a message.
type chunk struct {
	Content   text   `json:"content"`
	MessageID string `json:"messageId,omitempty"`
}

// stream is the message that comes in pieces, or the last one that did.
type stream struct {
	ID     string `json:"id,omitempty"`
	Open   bool   `json:"open,omitempty"` // it has not said why it ends
	Output int64  `json:"output,omitempty"`
}

// cut says that the message has no end: the connection broke, and nothing came in place of it.
func (s stream) cut() bool { return s.Open }

// piece is an event of the model's server, handed on.
type piece struct {
	Type    word
	Message struct {
		ID    ident
		Usage tokens
	}
	Delta struct {
		Type     word
		Text     word
		Thinking word
		Stop     word `json:"stop_reason"`
	}
	Usage tokens
}

// streamed takes in a piece of what the model says. An agent that was started says nothing in this one's name.
func (f *fold) streamed(m message) {
	if m.Parent != "" {
		return
	}
	switch p := m.Event; p.Type {
	case "message_start":
		f.Stream = stream{ID: string(p.Message.ID), Open: true}
		if f.ours() {
			f.Trouble = ""
			f.starts(p.Message.Usage)
		}
	case "message_delta":
		f.Stream.Open = f.Stream.Open && p.Delta.Stop == ""
		if f.ours() {
			f.grows(p.Usage)
		}
	case "content_block_delta":
		f.chunk("agent_message_chunk", string(p.Delta.Text), f.Stream.ID)
		f.chunk("agent_thought_chunk", string(p.Delta.Thinking), f.Stream.ID)
	}
}

// chunk tells a piece of a text. What is said in a turn of the agent's own has another name: it is no part of an answer.
func (f *fold) chunk(kind, piece, id string) {
	if piece == "" {
		return
	}
	f.alive()
	switch {
	case kind != "agent_message_chunk":
	case f.ours():
		f.Message = id
	default:
		kind = "agent_turn_chunk"
	}
	f.Tell(kind, chunk{text{"text", piece}, id})
}

// alive is that something came of the turn: what was the trouble is over.
func (f *fold) alive() {
	if f.ours() {
		f.Begun, f.Trouble = true, ""
	}
}

// content is what a message is made of.
type content struct {
	ID      ident
	Content blocks
}

// block is a piece of a message that is of one kind.
type block struct {
	Type     word
	Text     word
	Thinking word
	ID       ident
	Name     ident
	Input    json.RawMessage
	Call     ident `json:"tool_use_id"`
	Content  blocks
	IsError  bool `json:"is_error"`
}

// blocks are a message's, which may be a text alone.
type blocks []block

// UnmarshalJSON takes either form.
func (b *blocks) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*b = blocks{{Type: "text", Text: word(s)}}
		return nil
	}
	var list []json.RawMessage
	_ = json.Unmarshal(data, &list)
	*b = nil
	for _, raw := range list {
		var one block
		read(raw, &one)
		*b = append(*b, one)
	}
	return nil
}

// text is all of the text in them.
func (b blocks) text() (s string) {
	for _, one := range b {
		s += string(one.Text)
	}
	return s
}

// said takes in a block of a message that is whole. Its text was told by its pieces, if it came in pieces. What the agent
// itself says in the model's place of an error is in the result too.
func (f *fold) said(m message) {
	if m.Faulty || m.Fault != "" {
		f.Fault = wire.Clip(string(m.Fault), wire.IDLimit)
		return
	}
	var c content
	read(m.Message, &c)
	whole := m.Parent == "" && (c.ID == "" || string(c.ID) != f.Stream.ID)
	if whole {
		f.Stream = stream{} // the message that came in pieces was given up
	}
	for _, b := range c.Content {
		switch {
		case b.Type == "tool_use":
			f.alive()
			f.opens(b, string(m.Parent))
		case whole:
			f.chunk("agent_message_chunk", string(b.Text), string(c.ID))
			f.chunk("agent_thought_chunk", string(b.Thinking), string(c.ID))
		}
	}
}

// heard takes in what the model is told: a message of ours, which the agent says again once it has it, or what came of
// tools.
func (f *fold) heard(m message) {
	if m.Replay {
		if string(m.UUID) == f.promptID() {
			f.confirm()
		}
		f.confirmed(string(m.UUID))
		return
	}
	var c content
	read(m.Message, &c)
	var results []block
	for _, b := range c.Content {
		if b.Type == "tool_result" {
			results = append(results, b)
		}
	}
	for _, b := range results {
		outcome := m.Outcome
		if len(results) > 1 {
			outcome = nil // which of them it is of is not told
		}
		f.closes(b, outcome, string(m.Parent))
	}
}
