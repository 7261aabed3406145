package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// wish is what is to be chosen for a session before it is prompted.
type wish struct {
	Category string `json:"category"` // mode or model
	Value    string `json:"value"`
}

// choice is something that the session offers to choose. There may be thousands of models: those that are kept are for words.
type choice struct {
	Category string   `json:"category"`
	Config   string   `json:"config,omitempty"` // the option's id; "" where it has a method of its own
	Current  string   `json:"current"`
	Has      bool     `json:"has,omitempty"` // what is wished is among them
	Some     []string `json:"some,omitempty"`
}

// named is how many of what a session offers are named to who wished for something else.
const named = 32

// Begin takes an order in: the first one opens the session; a later one is a turn in it.
func (f *fold) Begin(o providers.Order) []providers.Frame {
	f.Order, f.newest = o, newest{Base: f.Priced}
	return f.Made(wire.Ordered(o.Turn, "begin"), 0, func() {
		switch {
		case !f.Greeted:
			f.greet()
		case f.Session == "":
			f.open()
		default:
			f.prompt()
		}
	})
}

// greet says what we are. The version is the first, which all speak; of what a client can do for an agent nothing is offered:
// agents then use their own tools, whose processes end with them. That we take notices keeps warnings from being told as messages.
func (f *fold) greet() {
	f.await("initialize", "initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false, "session": map[string]any{"notices": struct{}{}},
		},
		"clientInfo": map[string]string{"name": "pintle", "title": "pintle", "version": "1"},
	})
}

func (f *fold) greeted(result json.RawMessage) {
	var r struct {
		ProtocolVersion   int
		AgentInfo         struct{ Version string }
		AgentCapabilities struct {
			LoadSession         bool
			SessionCapabilities struct{ Resume json.RawMessage }
		}
		Meta struct{ Steering struct{ Supported bool } } `json:"_meta"`
	}
	_ = json.Unmarshal(result, &r)
	if r.ProtocolVersion != 1 {
		f.finish(session.Failed, "protocol", fmt.Sprintf("%s speaks version %d of the protocol, and not the first", f.agent.title, r.ProtocolVersion))
		return
	}
	f.Greeted, f.Takes, f.Version = true, r.Meta.Steering.Supported, wire.Clip(r.AgentInfo.Version, wire.IDLimit)
	caps := r.AgentCapabilities
	f.Resumes = len(caps.SessionCapabilities.Resume) > 0 && string(caps.SessionCapabilities.Resume) != "null"
	if !f.Resumes && !caps.LoadSession && f.Order.Conversation != "" && !f.Order.Lost {
		f.finish(session.Failed, "config", f.agent.title+" cannot go on with a conversation: it has neither session/resume nor session/load")
		return
	}
	f.open()
}

// open opens the session. One that is loaded tells all that was, which is of before.
func (f *fold) open() {
	params := map[string]any{"cwd": f.Order.Cwd, "mcpServers": []any{}}
	if f.Order.Conversation == "" || f.Order.Lost {
		if f.Order.Lost {
			f.replaced("it has nothing of it on disk")
		}
		f.await("open", "session/new", params)
		return
	}
	f.Opening, f.Priced, f.Base = f.Order.Conversation, f.Order.Priced, f.Order.Priced
	params["sessionId"] = f.Opening
	method := "session/load"
	if f.Resumes {
		method = "session/resume"
	}
	f.await("open", method, params)
}

// replaced tells that a fresh conversation comes in place of one that is gone (B1).
func (f *fold) replaced(why string) {
	f.Tell("conversation_replaced", map[string]string{"was": f.Order.Conversation, "why": wire.Clip(why, wire.WordsLimit)})
}

// option is one of a session's, in the newer form.
type option struct {
	ID           string          `json:"id"`
	Category     string          `json:"category"`
	CurrentValue json.RawMessage `json:"currentValue"`
	Options      []optionValue   `json:"options"`
}

// optionValue is a value, or a group of them.
type optionValue struct {
	Value   string        `json:"value"`
	Options []optionValue `json:"options"`
}

// offers are what a session offers to choose.
type offers struct {
	ConfigOptions []option
	Modes         struct {
		CurrentModeID  string
		AvailableModes []struct{ ID string }
	}
	Models struct {
		CurrentModelID  string
		AvailableModels []struct{ ModelID string }
	}
}

// opened takes the session in, and has chosen what is wanted.
func (f *fold) opened(result json.RawMessage) {
	var r struct {
		SessionID string
		offers
	}
	_ = json.Unmarshal(result, &r)
	id := r.SessionID
	switch {
	case f.Opening != "" && id != "" && id != f.Opening:
		f.finish(session.Failed, "protocol", fmt.Sprintf("%s opened the session %s in place of %s", f.agent.title, id, f.Opening))
		return
	case f.Opening != "":
		id, f.Fresh = f.Opening, false
	case id == "" || wire.Clip(id, wire.IDLimit) != id:
		f.finish(session.Failed, "protocol", f.agent.title+" opened no session")
		return
	default:
		f.Fresh = true
	}
	f.offered(r.offers)
	f.Wishes = f.wishes()
	if f.Loaded = f.Opening != "" && !f.Resumes && f.agent.replaysLate; f.Loaded && !f.Caught {
		return
	}
	f.choose(id)
}

// offered notes what can be chosen. Where it is offered in two forms, the newer one counts.
func (f *fold) offered(o offers) {
	f.Choices = nil
	for _, c := range o.ConfigOptions {
		f.offer(choice{Category: c.Category, Config: c.ID, Current: name(c.CurrentValue)}, values(c.Options))
	}
	var modes, models []string
	for _, m := range o.Modes.AvailableModes {
		modes = append(modes, m.ID)
	}
	for _, m := range o.Models.AvailableModels {
		models = append(models, m.ModelID)
	}
	f.offer(choice{Category: "mode", Current: o.Modes.CurrentModeID}, modes)
	f.offer(choice{Category: "model", Current: o.Models.CurrentModelID}, models)
	if c := f.choice("model"); c != nil {
		f.Model = c.Current
	}
}

func (f *fold) offer(c choice, values []string) {
	if c.Category != "mode" && c.Category != "model" || len(values) == 0 || len(c.Config) > wire.IDLimit || f.choice(c.Category) != nil {
		return
	}
	c.Current = wire.Clip(c.Current, wire.IDLimit)
	c.Has = slices.Contains(values, f.wished(c.Category))
	for _, v := range values[:min(len(values), named)] {
		c.Some = append(c.Some, wire.Clip(v, wire.IDLimit))
	}
	f.Choices = append(f.Choices, c)
}

func values(options []optionValue) (all []string) {
	for _, o := range options {
		if o.Value != "" {
			all = append(all, o.Value)
		}
		all = append(all, values(o.Options)...)
	}
	return all
}

// wished is what is wanted of a category, "" if that is left as it is.
func (f *fold) wished(category string) string {
	for _, w := range f.wishes() {
		if w.Category == category {
			return w.Value
		}
	}
	return ""
}

func (f *fold) choice(category string) *choice {
	i := slices.IndexFunc(f.Choices, func(c choice) bool { return c.Category == category })
	if i < 0 {
		return nil
	}
	return &f.Choices[i]
}

// wishes are what the order wants to be otherwise than it is. With rules of pintle's the agent is to ask for all that it can.
func (f *fold) wishes() (all []wish) {
	approve, mode := f.Order.Approve, f.Order.Mode
	if f.Order.Policy {
		approve = "none"
	}
	if mode = cmp.Or(mode, f.agent.modes[approve]); mode != "" {
		all = append(all, wish{"mode", mode})
	}
	if f.Order.Model != "" && f.agent.modelArg == "" {
		all = append(all, wish{"model", f.Order.Model})
	}
	return all
}

// choose has the next wish fulfilled. The session stands once all are.
func (f *fold) choose(id string) {
	for len(f.Wishes) > 0 {
		w := f.Wishes[0]
		c := f.choice(w.Category)
		switch {
		case c == nil:
			f.finish(session.Failed, "config", fmt.Sprintf("%s offers no choice of a %s, and not %s", f.agent.title, w.Category, w.Value))
			return
		case c.Current == w.Value:
			f.Wishes = f.Wishes[1:]
			continue
		case !c.Has:
			f.finish(session.Failed, "config", fmt.Sprintf("%s does not offer the %s %s, but %s", f.agent.title, w.Category, w.Value, strings.Join(c.Some, ", ")))
			return
		}
		f.Opening = id
		f.request(*c, w)
		return
	}
	f.Session, f.Opening, f.Choices = id, "", nil
	f.prompt()
}

// request chooses by the way that the session has for it.
func (f *fold) request(c choice, w wish) {
	params := map[string]any{"sessionId": f.Opening}
	switch {
	case c.Config != "":
		params["configId"], params["value"] = c.Config, w.Value
		f.await("choose", "session/set_config_option", params)
	case w.Category == "mode":
		params["modeId"] = w.Value
		f.await("choose", "session/set_mode", params)
	default:
		params["modelId"] = w.Value
		f.await("choose", "session/set_model", params)
	}
}

// chosen holds the agent to it, where it says what is chosen now.
func (f *fold) chosen(result json.RawMessage) {
	w := f.Wishes[0]
	var o offers
	_ = json.Unmarshal(result, &o)
	if len(o.ConfigOptions) > 0 {
		f.offered(o)
	} else if c := f.choice(w.Category); c != nil {
		c.Current = w.Value
	}
	if w.Category == "model" {
		f.Model = w.Value
	}
	if c := f.choice(w.Category); c == nil || c.Current != w.Value {
		f.finish(session.Failed, "config", fmt.Sprintf("%s did not take the %s %s", f.agent.title, w.Category, w.Value))
		return
	}
	f.Wishes = f.Wishes[1:]
	f.choose(f.Opening)
}

// refused is an error in answer to one of our requests.
func (f *fold) refused(id string, e rpcError) {
	if s := f.steering(id); s != nil {
		s.Refuse(e.words())
		return
	}
	if id == "" || id != f.Waiting {
		return
	}
	f.Waiting = ""
	what, _, _ := strings.Cut(id, "/")
	switch code, message := f.cause(e), e.words(); {
	case what == "open" && f.Opening != "" && e.gone():
		f.Opening, f.Priced, f.Base = "", nil, nil
		f.replaced(message)
		f.await("open", "session/new", map[string]any{"cwd": f.Order.Cwd, "mcpServers": []any{}})
	case what == "prompt" && f.Stop && code == "":
		f.finish(session.Cancelled, "cancelled", message)
	case what == "prompt":
		if f.Only != "" && strings.Contains(message, strings.TrimSpace(f.Only)) {
			f.Begun = false // all that it said is the error
		}
		f.finish(session.Failed, code, message)
	case code == "auth":
		f.finish(session.Failed, code, message)
	default:
		f.finish(session.Failed, "config", message)
	}
}
