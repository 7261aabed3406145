package claude

import (
	"slices"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// due gives the prompt as soon as the agent is at rest. In the midst of a turn of its own it would take it into that one.
func (f *fold) due() {
	if f.Ready && f.Prompt == "" && f.End == nil && !f.Busy {
		f.prompt()
	}
}

// prompt gives the prompt, unless the turn was interrupted before it was given, or there is none to give.
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
	f.say(f.promptID(), f.Order.Prompt)
	f.Order.Prompt = "" // it may be long, and is not needed again
}

// promptID is the name under which the agent tells of the prompt.
func (f *fold) promptID() string { return wire.UUID("prompt", f.Order.Process, f.Order.Turn) }

// say is a message of the user's.
func (f *fold) say(id, text string) {
	f.Send(map[string]any{
		"type": "user", "message": map[string]string{"role": "user", "content": text},
		"parent_tool_use_id": nil, "session_id": "", "uuid": id,
	})
}

// outstanding says that the turn was given and has not ended.
func (f *fold) outstanding() bool { return f.Prompt != "" && f.End == nil }

// ours says that what comes is of the turn. A turn of the agent's own is if it has taken the prompt in.
func (f *fold) ours() bool { return f.outstanding() && (!f.Own || f.Confirmed) }

// confirm is that the agent works on the prompt. What is to be put into the turn can follow.
func (f *fold) confirm() {
	if f.outstanding() && !f.Confirmed {
		f.Confirmed = true
		f.steer()
	}
}

// opening is how a turn begins, whoever has begun it.
type opening struct {
	Model   ident
	Version ident `json:"claude_code_version"`
	Session ident `json:"session_id"`
	Mode    ident `json:"permissionMode"`
	UUIDs   names `json:"user_message_uuids"`
}

// begins takes in that a turn begins. One that is about none of our messages is the agent's own: for something has ended
// that it had begun in the background.
func (f *fold) begins(line []byte) {
	var o opening
	read(line, &o)
	f.Busy, f.Named, f.Model = true, f.Named || len(o.UUIDs) > 0, string(o.Model)
	f.isVersion(string(o.Version))
	f.moved(string(o.Session))
	switch {
	case f.outstanding() && (f.Confirmed || o.UUIDs.have(f.promptID()) || !f.Named):
		f.confirm()
	case !o.UUIDs.have(f.promptID()) && !f.Own:
		f.Own = true
		f.Tell("agent_turn_started", map[string]string{"reason": f.Cause})
		f.Cause = ""
	}
	switch {
	case !f.ours():
	case o.Mode != "" && f.wrong(string(o.Mode)):
		f.giveUp("config", "Claude Code left the permission mode "+mode+" for "+string(o.Mode))
	case gated(f.Order) && !f.Hooked:
		f.giveUp("config", "Claude Code skips hooks, as by --bare or CLAUDE_CODE_SIMPLE, and cannot be held to asking before it uses a tool")
	}
}

// moved is that the conversation has another id by now: a command such as /clear begins another one.
func (f *fold) moved(to string) {
	if to == "" || to == f.Session {
		return
	}
	f.Tell("conversation_replaced", map[string]string{"was": f.Session, "why": "Claude Code went on under another id"})
	f.Session = to
}

// giveUp has a turn break off that cannot come to a good end.
func (f *fold) giveUp(code, why string) {
	if f.Failure == nil {
		f.Failure = &providers.End{Outcome: session.Failed, Code: code, Message: wire.Clip(why, wire.WordsLimit)}
		f.interrupt()
	}
}

// names are ids of messages.
type names []ident

func (n names) have(id string) bool { return slices.Contains(n, ident(id)) }

// Interrupt interrupts the turn, and whatever the agent has begun in the background; until the prompt was given it is
// remembered, and has a turn of the agent's own end that keeps us waiting.
func (f *fold) Interrupt() []providers.Frame {
	if f.End != nil {
		return nil
	}
	f.Stop = true
	frames := f.Made(f.ordered("interrupt"), f.Stops, func() {
		if f.Prompt != "" || f.Busy {
			f.interrupt()
		}
	})
	f.Stops = f.Index()
	return frames
}

// interrupt leaves nothing that goes on: neither messages that wait for their turn, nor commands in the background, which
// an interrupt alone does not reach.
func (f *fold) interrupt() {
	f.call("interrupt", map[string]any{"subtype": "interrupt", "cancel_queued": true})
	for _, t := range f.Tasks {
		f.call("stop", map[string]any{"subtype": "stop_task", "task_id": t.ID})
	}
	if f.Result != nil {
		f.Result = &providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "the turn was interrupted"}
	}
}

// changed takes in whether the agent is at work. "idle" is said once nothing is left to be done, agents that it has started
// included; commands in the background do not count.
func (f *fold) changed(line []byte) {
	var s struct{ State word }
	read(line, &s)
	f.Tells = true
	if f.Busy = s.State != "idle"; f.Busy {
		return
	}
	if f.Own {
		f.ended(nil, providers.Usage{})
	}
	switch {
	case f.Result != nil:
		f.over()
	case f.outstanding() && f.Confirmed && f.Stop:
		f.finish(session.Cancelled, "cancelled", "the turn was interrupted")
	}
	f.due()
}

// ended is the end of a turn of the agent's own.
func (f *fold) ended(end *providers.End, spent providers.Usage) {
	f.Own = false
	if end == nil {
		end = &providers.End{Outcome: session.Cancelled}
	}
	f.Tell("agent_turn_ended", map[string]any{"outcome": end.Outcome, "code": end.Code, "message": end.Message, "usage": spent})
}

// over ends the turn, unless the agent has a message that it will yet answer, or agents at work whose findings it will: it
// does so in turns that are a part of this one.
func (f *fold) over() {
	if f.Result == nil || f.unread() || f.Busy && f.Tells && f.helpers() > 0 {
		return
	}
	f.finish(f.Result.Outcome, f.Result.Code, f.Result.Message)
}

// finish ends the turn; the first end counts. What it asked for and got no answer lapses.
func (f *fold) finish(outcome session.Outcome, code, message string) {
	if f.End != nil {
		return
	}
	f.End = &providers.End{Outcome: outcome, Code: code, Message: wire.Clip(message, wire.WordsLimit)}
	f.lapsed(func(pending) bool { return true })
	f.unsteered()
	f.settle()
}

// fate is what becomes of a message of ours.
func (f *fold) fate(m message) {
	f.Named = true
	switch mine := string(m.Command) == f.promptID(); m.State {
	case "started":
		if mine {
			f.confirm()
		}
	case "cancelled", "discarded", "refused":
		f.unheard(string(m.Command), string(m.State))
		if mine && f.outstanding() && !f.Confirmed {
			f.dropped(string(m.State))
		}
	}
}

// dropped is that the prompt was given and not worked on: there is no result then.
func (f *fold) dropped(how string) {
	if f.Stop {
		f.finish(session.Cancelled, "cancelled", "interrupted before the prompt was worked on")
		return
	}
	f.finish(session.Failed, "protocol", "Claude Code "+how+" the prompt")
}
