package pi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// Begin takes an order in: the first one opens the conversation, as the process was started for it (launch); a later one
// is its next turn.
func (f *fold) Begin(o providers.Order) []providers.Frame {
	f.Order, f.newest = o, newest{}
	return f.Made(f.ordered("begin"), 0, func() {
		switch {
		case f.Waiting != "": // what it opens with is under way
		case !f.Ready:
			f.Session = conversation(o)
			f.await("get_state")
		case gated(o) && !f.Gated:
			f.finish(session.Failed, "config", "pi was started without being told to ask")
		default:
			f.due()
		}
	})
}

// answered goes on with what the answer to one of our requests allows.
func (f *fold) answered(r record) {
	switch id := string(r.ID); {
	case id == "":
	case id == f.Waiting && strings.HasPrefix(id, "get_state/"):
		f.Waiting = ""
		f.greeted(r)
	case id == f.Waiting:
		f.Waiting = ""
		f.cleared()
	case id == f.promptID():
		f.accepted(r)
	default:
		f.steerAnswered(r)
	}
}

// condition is the answer to get_state. It comes once the extensions are loaded, and have been told of the session.
type condition struct {
	Session ident `json:"sessionId"`
	Count   int   `json:"messageCount"`
	Model   model
}

type model struct{ ID, Name, Provider ident }

// none is what pi has for a model that it has not.
var none = model{ID: "unknown", Name: "unknown", Provider: "unknown"}

// String is a model's name as --model takes it.
func (m model) String() string { return wire.Clip(string(m.Provider+"/"+m.ID), wire.IDLimit) }

// greeted checks that the agent is what was asked for, and gives the prompt.
func (f *fold) greeted(r record) {
	var c condition
	_ = wire.Read(r.Data, &c)
	switch {
	case !r.Success:
		f.finish(session.Failed, "protocol", "pi did not open the conversation: "+string(r.Error))
	case string(c.Session) != f.Session:
		f.finish(session.Failed, "protocol", fmt.Sprintf("pi opened the conversation %q in place of %s", c.Session, f.Session))
	case gated(f.Order) && !f.Gated:
		f.finish(session.Failed, "config", "pi did not load the extension that has it ask before it uses a tool")
	case c.Model.ID == "", c.Model == none:
		f.finish(session.Failed, "config", "pi has no model: sign in to a provider of models, or name a model")
	case !c.Model.fits(f.Order.Model):
		f.finish(session.Failed, "config", fmt.Sprintf("pi chose the model %s for %s", c.Model, f.Order.Model))
	default:
		f.stands(c)
	}
}

// fits says that a model is what was wished for: pi takes parts of a name for it, with how hard to think behind a colon.
func (m model) fits(wish string) bool {
	if at := strings.LastIndexByte(wish, ':'); at >= 0 && slices.Contains(levels, wish[at+1:]) {
		wish = wish[:at]
	}
	has := strings.ToLower(m.String() + " " + string(m.Name))
	for part := range strings.FieldsFuncSeq(strings.ToLower(wish), func(r rune) bool { return strings.ContainsRune("/-_ ", r) }) {
		if !strings.Contains(has, part) {
			return false
		}
	}
	return true
}

// levels are how hard a model can be told to think.
var levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// stands is that the conversation does. One that was to go on and of which pi has nothing begins anew under the same id: what
// was said in it is not there any more, which somebody should know.
func (f *fold) stands(c condition) {
	f.Ready, f.Model = true, c.Model.String()
	if f.Order.Conversation != "" && c.Count == 0 {
		f.Tell("conversation_replaced", map[string]string{"was": f.Session, "why": "pi has nothing of it"})
	}
	f.due()
}

// due gives the prompt as soon as the agent is at rest. In the midst of a run of an extension's it would be taken into that.
func (f *fold) due() {
	if f.Ready && f.Prompt == "" && f.End == nil && !f.Busy {
		f.prompt()
	}
}

// prompt gives the prompt, unless the turn was interrupted before it was given, or there is none to give. Should a run have
// begun meanwhile, the prompt is taken in at its end; without being told that, pi would refuse it.
func (f *fold) prompt() {
	switch {
	case f.Stop:
		f.finish(session.Cancelled, "cancelled", "interrupted before the prompt was given")
		return
	case f.Order.Open:
		f.finish(session.Completed, "", "")
		return
	}
	f.Prompt = f.Next()
	if !strings.HasPrefix(f.Order.Prompt, "/") {
		f.Sum = wire.Sum(16, f.Order.Prompt)
	}
	f.call("prompt", f.promptID(), map[string]any{"message": f.Order.Prompt, "streamingBehavior": "followUp"})
	f.Order.Prompt = "" // it may be long, and is not needed again
}

func (f *fold) promptID() string { return "prompt/" + f.Order.Turn }

// What pi answers to a prompt.
const (
	started = "started" // a run
	queued  = "queued"  // to be taken in at the end of the run that there is
	handled = "handled" // it was a command of an extension's, or one has taken it
)

// accepted takes in that the agent has the prompt. An interrupt that came before it had found no run, and did nothing.
func (f *fold) accepted(r record) {
	var d struct{ Disposition word }
	_ = wire.Read(r.Data, &d)
	if !f.outstanding() || f.Taken != "" {
		return
	}
	switch {
	case !r.Success && f.Stop:
		f.finish(session.Cancelled, "cancelled", "interrupted before the prompt was worked on")
	case !r.Success:
		f.finish(session.Failed, refusalCause(string(r.Error)), "pi did not take the prompt: "+string(r.Error))
	case d.Disposition == "":
		f.abort()
		f.finish(session.Failed, "config", "this version of pi is too old: it does not say what becomes of a prompt")
	case d.Disposition == handled && !f.Busy:
		f.Confirmed, f.Begun = true, true
		f.finish(session.Completed, "", "")
	case d.Disposition == handled: // the command has begun a run
		f.Taken, f.Begun = started, true
		f.confirm()
	default:
		f.Taken = started
		if d.Disposition == queued {
			f.Taken = queued
		}
	}
	if f.Stop && f.Taken != "" {
		f.abort()
	}
}
