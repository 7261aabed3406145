package pi

import (
	"encoding/json"
	"math"

	"github.com/pintle/pintle/providers/wire"
)

// message is one of the conversation's, as far as it is understood.
type message struct {
	Role    word
	Content json.RawMessage
	Usage   tokens
	Stop    word `json:"stopReason"`
	Error   word `json:"errorMessage"`
}

// block is a piece of a message that is of one kind.
type block struct{ Type, Text, Thinking word }

// blocks are what a message is made of; a text alone is one too.
func (m message) blocks() (all []block) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []block{{Type: "text", Text: word(text)}}
	}
	return blocks(m.Content)
}

func blocks(content json.RawMessage) (all []block) {
	var list []json.RawMessage
	_ = json.Unmarshal(content, &list)
	for _, raw := range list {
		var b block
		_ = wire.Read(raw, &b)
		all = append(all, b)
	}
	return all
}

// textOf is all of the text in content.
func textOf(all []block) (s string) {
	for _, b := range all {
		s += string(b.Text)
	}
	return s
}

// message takes in the beginning of a message, or its end.
func (f *fold) message(r record) {
	var m message
	_ = wire.Read(r.Message, &m)
	switch begins := r.Type == "message_start"; {
	case begins && m.Role == "assistant":
		f.Said++
		f.Spoken = false
	case begins:
	case m.Role == "user":
		f.heard(textOf(m.blocks()))
	case m.Role == "assistant":
		f.whole(m)
		f.ends(m)
	default:
		f.spend(m.Usage) // of a tool that asks models
	}
}

// heard is that a message is in the conversation: the prompt, or one that was put into the turn. The prompt of a run that was
// started for it is the first, whatever a template has made of it; in an extension's run there are other messages too.
func (f *fold) heard(text string) {
	switch {
	case f.Taken == "" || f.Confirmed:
		f.confirmed(text)
	case f.Taken == started || f.Sum == "" || f.Sum == wire.Sum(16, text):
		f.confirm()
	}
}

// whole tells what was not told in pieces.
func (f *fold) whole(m message) {
	if f.Spoken {
		return
	}
	for _, b := range m.blocks() {
		f.chunk("agent_message_chunk", string(b.Text))
		f.chunk("agent_thought_chunk", string(b.Thinking))
	}
}

// ends takes in how a message of the model's ended. With an error the run goes on if pi tries again.
func (f *fold) ends(m message) {
	if !f.ours() {
		return
	}
	f.Last = verdictOf(m)
	if m.Stop != "error" {
		f.Trouble = ""
	}
	f.spend(m.Usage)
}

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

// piece is one of the model's message.
type piece struct{ Type, Delta word }

func (f *fold) streamed(p piece) {
	switch p.Type {
	case "text_delta":
		f.chunk("agent_message_chunk", string(p.Delta))
	case "thinking_delta":
		f.chunk("agent_thought_chunk", string(p.Delta))
	}
}

// chunk tells a piece of a text. pi's messages have no ids. What is said in a run of an extension's has another name: it is no
// part of an answer.
func (f *fold) chunk(kind, piece string) {
	if piece == "" {
		return
	}
	f.Spoken = true
	f.alive()
	id := "m-" + wire.Sum(16, f.Order.Process, f.Said)
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

// tokens are what a message has cost. What the model's server has from its cache, or puts there, is counted beside the rest.
type tokens struct {
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 struct{ Total float64 }
}

// spend counts what the turn has cost. A price of nothing says that pi knows none.
func (f *fold) spend(t tokens) {
	if !f.ours() || t == (tokens{}) {
		return
	}
	u := &f.Spent
	u.InputTokens += t.Input + t.CacheRead + t.CacheWrite
	u.OutputTokens += t.Output
	u.CachedTokens += t.CacheRead
	if t.Cost.Total > 0 && t.Cost.Total < math.MaxInt32 {
		usd := t.Cost.Total
		if u.USD != nil {
			usd += *u.USD
		}
		u.USD = &usd
	}
	f.Tell("usage_update", f.Spent)
}
