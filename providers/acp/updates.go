package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/wire"
)

// update is one of a session's, of any kind. Only what is told of it, or kept, is decoded.
type update struct {
	SessionUpdate string
	MessageID     string
	Content       json.RawMessage // a block where something is said, a list where a tool does something
	ToolCallID    string
	Name          string // of the tool
	Title, Kind   string
	Description   string // of a notice
	CurrentModeID string
	ConfigOptions []option
	Status        string
	RawInput      json.RawMessage
	RawOutput     json.RawMessage
	Locations     []struct{ Path string }
	Cost          *struct {
		Amount   float64
		Currency string
	}
	Meta struct {
		Delta  struct{ Data string } `json:"terminal_output_delta"`
		Claude struct{ Kind string } `json:"claudeCode"` // of what the adapter says itself
		Codex  struct {
			ThreadStatus struct{ Type string } `json:"threadStatus"`
			Error        *codexError           `json:"error"`
		} `json:"codex"`
	} `json:"_meta"`
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

// updated takes a notification in. What comes while an earlier conversation is opened is of before.
func (f *fold) updated(m message) {
	u := m.Params.Update
	switch {
	case u.SessionUpdate == "notice": // of before, too
		f.noticed(u)
		return
	case f.Session == "":
		f.preceded(u)
		return
	case m.Params.SessionID != f.Session:
		return
	}
	switch u.SessionUpdate {
	case "agent_message_chunk":
		f.said(u)
	case "agent_thought_chunk":
		f.thought(u)
	case "user_message_chunk", "": // whose message it is was told by whoever gave it
	case "tool_call", "tool_call_update":
		f.tool(m)
	case "usage_update":
		f.priced(u)
	case "plan":
		f.alive()
		f.raw(u, whole(m.line))
	default:
		f.other(m)
	}
}

// whole is an update as it came, without its kind. It is read again for that: most updates are pieces, which are not told so.
func whole(line []byte) map[string]json.RawMessage {
	var m struct {
		Params struct{ Update map[string]json.RawMessage }
	}
	if len(line) > rawLimit || json.Unmarshal(line, &m) != nil {
		return nil
	}
	delete(m.Params.Update, "sessionUpdate")
	return m.Params.Update
}

// preceded is what comes before the session stands: all of it is of before, but that it is at its end.
func (f *fold) preceded(u update) {
	if u.SessionUpdate == "usage_update" {
		f.priced(u)
		f.Base = f.Priced
	}
	if u.SessionUpdate != "available_commands_update" || f.Opening == "" {
		return
	}
	f.Caught = true
	if f.Loaded {
		f.choose(f.Opening)
	}
}

// alive is that something came of the turn.
func (f *fold) alive() {
	if f.Prompt != "" && f.End == nil {
		f.Confirmed, f.Begun, f.Only, f.Trouble = true, true, "", ""
	}
}

// said tells a piece of a message. Where messages have no ids, another one begins behind whatever else there was.
func (f *fold) said(u update) {
	piece, plain := block(u.Content)
	if !plain {
		return
	}
	id := wire.Clip(u.MessageID, wire.IDLimit)
	if u.Meta.Claude.Kind != "" {
		f.Notice(piece)
		return
	}
	if id == "" && f.agent.errorsAreSaid {
		f.Said = wire.Clip(f.Said+piece, wire.WordsLimit)
		if f.Errored || !f.Slash {
			f.Notice(piece)
			return
		}
	}
	f.speaks(piece)
	if id == "" {
		id = f.unnamed()
	}
	f.Message, f.Broken = id, false
	f.Tell("agent_message_chunk", chunk{text{"text", piece}, id})
}

// speaks is that it says something. What it says first, and nothing else, may be an error of the model's.
func (f *fold) speaks(piece string) {
	only := f.Only + piece
	first := !f.Begun || f.Only != ""
	f.alive()
	if first && len(only) <= wire.WordsLimit {
		f.Only = only
	}
}

// unnamed is the id of a message that has none.
func (f *fold) unnamed() string {
	if f.Broken || f.Unnamed == 0 {
		f.Unnamed++
	}
	return fmt.Sprintf("m-%s", wire.Sum(16, f.Order.Turn, f.Unnamed))
}

func (f *fold) thought(u update) {
	if piece, plain := block(u.Content); plain {
		f.alive()
		f.Broken = true
		f.Tell("agent_thought_chunk", chunk{text{"text", piece}, wire.Clip(u.MessageID, wire.IDLimit)})
	}
}

// block is a block's text.
func block(content json.RawMessage) (string, bool) {
	said, begins := bytes.CutPrefix(content, []byte(`{"type":"text","text":"`))
	if said, ends := bytes.CutSuffix(said, []byte(`"}`)); begins && ends && session.Literal(said) {
		return string(said), true // most pieces, of which there are thousands
	}
	var b text
	_ = json.Unmarshal(content, &b)
	return b.Text, b.Type == "text"
}

// rawLimit is how long an update may be that is told as it came, in bytes.
const rawLimit = 1 << 20

// raw tells an update as it came, under its own name.
func (f *fold) raw(u update, fields map[string]json.RawMessage) {
	if fields != nil {
		f.Tell(wire.Clip(u.SessionUpdate, wire.IDLimit), fields)
	}
}

// open is a tool call that has not ended, with what is known of it: who is asked about it is not told all of it again.
type open struct {
	ID      string   `json:"id"`
	Tool    string   `json:"tool,omitempty"`
	Title   string   `json:"title,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Command string   `json:"command,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Input   bool     `json:"input,omitempty"`  // what it is given was told
	Runs    bool     `json:"runs,omitempty"`   // and something in that is run
	Wide    bool     `json:"wide,omitempty"`   // it names more files than can be kept
	Output  string   `json:"output,omitempty"` // the end of what came out of it, where that comes in pieces
}

// tool tells of a tool call. One that was not told of before is.
func (f *fold) tool(m message) {
	u, fields := m.Params.Update, whole(m.line)
	f.alive()
	f.Broken = true
	id := wire.Clip(u.ToolCallID, wire.IDLimit)
	o := f.known(id)
	if fields == nil { // too long to be told as it came
		fields = map[string]json.RawMessage{"toolCallId": wire.Encode(id), "status": wire.Encode(u.Status)}
	}
	if o == nil && !ended(u.Status) || o == nil && u.SessionUpdate == "tool_call_update" {
		o = f.opens(id)
		if u.SessionUpdate == "tool_call_update" {
			o.learn(u)
			f.Tell("tool_call", o.call("in_progress"))
		}
	}
	o.learn(u)
	if out := o.output(u); u.RawOutput == nil && out != "" && ended(u.Status) {
		fields["rawOutput"] = wire.Encode(map[string]string{"output": out})
	}
	f.Tell(u.SessionUpdate, fields)
	f.planned(u)
	if ended(u.Status) {
		f.Items = slices.DeleteFunc(f.Items, func(o open) bool { return o.ID == id })
	}
}

func ended(status string) bool { return status == "completed" || status == "failed" }

// output is what came out of a tool, where it is not said in the field for it: in pieces, or as what is shown of it.
func (o *open) output(u update) string {
	if o != nil && u.Meta.Delta.Data != "" {
		o.Output = wire.Tail(o.Output+u.Meta.Delta.Data, wire.KeptLimit)
	}
	if o != nil && o.Output != "" {
		return o.Output
	}
	var content []struct{ Content json.RawMessage }
	_ = json.Unmarshal(u.Content, &content)
	all := ""
	for _, c := range content {
		piece, _ := block(c.Content)
		all += piece
	}
	return all
}

func (f *fold) known(id string) *open {
	i := slices.IndexFunc(f.Items, func(o open) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &f.Items[i]
}

// opens notes a call. What is over the bound is told, and not counted.
func (f *fold) opens(id string) *open {
	if len(f.Items) == wire.Most {
		return &open{ID: id}
	}
	f.Items = append(f.Items, open{ID: id})
	return &f.Items[len(f.Items)-1]
}

// learn takes in what an update says of a call.
func (o *open) learn(u update) {
	if o == nil {
		return
	}
	set := func(to *string, value string) {
		if value != "" {
			*to = wire.Clip(value, wire.TitleLimit)
		}
	}
	set(&o.Tool, u.Name)
	set(&o.Title, u.Title)
	set(&o.Kind, u.Kind)
	in := readInput(u.RawInput)
	o.Input, o.Runs = o.Input || in.given, o.Runs || in.runs
	if in.runs {
		o.Command = in.command
	}
	o.touches(append(u.paths(), in.paths...))
}

// touches adds files to those that a call is about: it may name some in one place, and others in another.
func (o *open) touches(paths []string) {
	all := slices.Concat(o.Paths, paths)
	slices.Sort(all)
	o.Paths = slices.Compact(all)
	long := func(p string) bool { return len(p) > wire.TitleLimit }
	if o.Wide = o.Wide || len(o.Paths) > wire.Most || slices.ContainsFunc(o.Paths, long); o.Wide {
		o.Paths = nil
	}
}

// call is what is known of it as ACP's tool call.
func (o *open) call(status string) map[string]any {
	return map[string]any{"toolCallId": o.ID, "title": o.Title, "kind": o.Kind, "status": status}
}

// paths are the files that an update names, in places or in differences.
func (u update) paths() (all []string) {
	for _, l := range u.Locations {
		all = append(all, l.Path)
	}
	var content []struct{ Type, Path string }
	_ = json.Unmarshal(u.Content, &content)
	for _, c := range content {
		if c.Type == "diff" {
			all = append(all, c.Path)
		}
	}
	return all
}

// settle ends what is open once the turn has: its end is not told any more.
func (f *fold) settle() {
	for _, o := range f.Items {
		f.Tell("tool_call_update", map[string]any{"toolCallId": o.ID, "status": "failed"})
	}
	f.Items = nil
}

// priced takes in what the session has cost by now, in all its life. One that has cost less than before is counted anew.
func (f *fold) priced(u update) {
	if u.Cost == nil || u.Cost.Currency != "USD" || u.Cost.Amount < 0 {
		return
	}
	if f.Priced != nil && u.Cost.Amount < *f.Priced {
		f.Base = new(float64)
	}
	f.Priced = &u.Cost.Amount
	if f.Prompt != "" {
		f.Tell("usage_update", f.usage())
	}
}
