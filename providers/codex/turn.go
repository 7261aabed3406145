package codex

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// prompt gives the prompt, unless the turn was interrupted before it was given, or there is none to give.
func (f *fold) prompt() {
	switch {
	case f.Stop || f.Leaves:
		f.finish(session.Cancelled, "cancelled", "interrupted before the prompt was given")
		return
	case f.Order.Open:
		f.finish(session.Completed, "", "")
		return
	}
	f.Prompt = f.next()
	f.await("turn", "turn/start", map[string]any{"threadId": f.Thread, "input": input(f.Order.Prompt)})
	f.Order.Prompt = "" // it may be long, and is not needed again
}

// prompted takes in which turn the prompt is in. A server that is in the middle of a turn puts it into that one, and says
// nothing of it but the turn's id.
func (f *fold) prompted(result json.RawMessage) {
	var r struct{ Turn struct{ ID ident } }
	_ = json.Unmarshal(result, &r)
	id := string(r.Turn.ID)
	switch {
	case id == "":
		f.finish(session.Failed, "protocol", "codex named no turn")
	case slices.Contains(f.Earlier, id) || f.Turn != "" && f.Turn != id:
		f.misled(id)
	}
	f.Turn = id
}

func (f *fold) misled(into string) {
	f.finish(session.Failed, "protocol", fmt.Sprintf("codex put the prompt into a turn that ran already, %s", into))
}

// before notes a turn that is not the newest one of ours.
func (f *fold) before(turn string) {
	if turn == "" || slices.Contains(f.Earlier, turn) {
		return
	}
	f.Earlier = append(f.Earlier, turn)
	f.Earlier = f.Earlier[max(0, len(f.Earlier)-turnsKept):]
}

// turnsKept is how many turns of before are known by their ids.
const turnsKept = 64

// running is a turn of a thread.
type running struct {
	Thread string `json:"thread"`
	Turn   string `json:"turn"`
}

// Interrupt interrupts the turn once it has started; until then it is remembered, since the server refuses it.
func (f *fold) Interrupt() []providers.Frame {
	if f.End != nil {
		return nil
	}
	f.Stop = true
	frames := f.made(f.ordered("interrupt"), f.Stops, f.interrupt)
	f.Stops = f.index
	return frames
}

// interrupt ends the turn, and those of the agents that it has started: they would go on.
func (f *fold) interrupt() {
	if f.Started && f.End == nil {
		f.interrupts()
	}
}

// interrupts does so for all that runs.
func (f *fold) interrupts() {
	if f.Started && f.End == nil {
		f.cut(running{f.Thread, f.Turn})
	}
	for _, r := range f.Others {
		f.cut(r)
	}
}

func (f *fold) cut(r running) {
	f.call(f.request("interrupt"), "turn/interrupt", map[string]string{"threadId": r.Thread, "turnId": r.Turn})
}

// clean ends the commands of a thread. An interrupt alone has them go on in the background.
func (f *fold) clean(thread string) {
	f.call(f.request("clean"), "thread/backgroundTerminals/clean", map[string]string{"threadId": thread})
}

// notified takes a notification in.
func (f *fold) notified(method string, params json.RawMessage) {
	switch method {
	case "turn/started":
		f.started(params)
	case "turn/completed":
		f.completed(params)
	case "thread/closed":
		f.closed(params)
	case "item/started", "item/completed":
		f.item(method == "item/completed", params)
	case "item/agentMessage/delta":
		f.delta(params)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		f.thought(params)
	case "turn/plan/updated":
		f.plan(params)
	case "thread/tokenUsage/updated":
		f.used(params)
	case "serverRequest/resolved":
		f.resolved(params)
	case "error":
		f.failed(params)
	case "configWarning", "warning", "guardianWarning":
		f.warned(params)
	}
}

// started is the turn's confirmation; an interrupt that came before it is due now.
func (f *fold) started(params json.RawMessage) {
	var p struct {
		where
		Turn struct{ ID ident }
	}
	_ = json.Unmarshal(params, &p)
	id := string(p.Turn.ID)
	switch {
	case !f.own(p.ThreadID):
		f.joined(running{string(p.ThreadID), id})
	case slices.Contains(f.Earlier, id):
	case f.Prompt == "" || f.End != nil && id != f.Turn:
		f.before(id) // the server began it by itself
	case f.Turn != "" && f.Turn != id:
		f.before(id)
		f.misled(f.Turn) // the turn that the answer named was none that began after it
	default:
		f.Turn, f.Started = id, true
		if f.Stop {
			f.interrupt()
		}
		f.steer()
	}
}

// joined is a turn of an agent that this one has started. Its notifications come with ours.
func (f *fold) joined(r running) {
	if !slices.Contains(f.Others, r) && len(f.Others) < most {
		f.Others = append(f.Others, r)
	}
	if f.Stop {
		f.cut(r)
	}
}

// left is the end of one.
func (f *fold) left(r running, status string) {
	f.Others = slices.DeleteFunc(f.Others, func(o running) bool { return o == r })
	f.settle(r)
	f.lapseOf(r.Thread)
	if f.Stop && status == "interrupted" {
		f.clean(r.Thread)
	}
}

// completed ends the turn, if it is the newest.
func (f *fold) completed(params json.RawMessage) {
	var p struct {
		where
		Turn struct {
			ID     ident
			Status string
			Error  *turnError
		}
	}
	_ = json.Unmarshal(params, &p)
	id := string(p.Turn.ID)
	if !f.own(p.ThreadID) {
		f.left(running{string(p.ThreadID), id}, p.Turn.Status)
		return
	}
	if id == "" {
		id = f.Turn
	}
	f.settle(running{f.Thread, id})
	f.unsteered(id)
	if f.Prompt == "" || id != f.Turn || f.End != nil {
		return
	}
	switch {
	case p.Turn.Status == "completed":
		f.finish(session.Completed, "", "")
	case p.Turn.Status == "interrupted":
		f.clean(f.Thread)
		f.finish(session.Cancelled, "cancelled", "the turn was interrupted")
	case p.Turn.Error != nil:
		f.fail(*p.Turn.Error)
	case f.Failure != nil:
		f.finish(f.Failure.Outcome, f.Failure.Code, f.Failure.Message)
	default:
		f.finish(session.Failed, "protocol", "the turn ended as "+p.Turn.Status)
	}
}
