package pi

import (
	"cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// outstanding says that the turn was given and has not ended.
func (f *fold) outstanding() bool { return f.Prompt != "" && f.End == nil }

// ours says that what comes is of the turn: all of the run that the prompt has started, or of an extension's run from when it
// has taken the prompt in.
func (f *fold) ours() bool { return f.outstanding() && (f.Taken == started || f.Confirmed) }

// breaking says that the turn is to be broken off.
func (f *fold) breaking() bool { return f.Stop || f.Denied != "" || f.Failure != nil }

// starts takes in that a run begins. Only an extension begins one without a prompt.
// What was to be broken off before it began is broken off now: pi may not have taken notice.
func (f *fold) starts() {
	f.Busy = true
	switch {
	case f.ours() && f.breaking():
		f.abort()
		return
	case f.ours() || f.Own:
		return
	}
	f.Own = true
	f.Tell("agent_turn_started", map[string]string{"reason": "an extension of pi's has begun it"})
}

// confirm is that the agent has the prompt in the conversation. What is to be put into the turn can follow.
func (f *fold) confirm() {
	if !f.outstanding() || f.Confirmed {
		return
	}
	f.Confirmed = true
	if f.Own {
		f.ownEnds(session.Completed)
	}
	f.steer()
}

// ownEnds tells the end of an extension's run.
func (f *fold) ownEnds(outcome session.Outcome) {
	f.Own = false
	f.Tell("agent_turn_ended", map[string]any{"outcome": outcome})
}

// settled takes in that a run has ended, and nothing of it is left to be done.
func (f *fold) settled(aborted bool) {
	f.Busy = false
	mine := f.ours()
	if f.Own {
		f.ownEnds(ownOutcome(aborted))
	}
	switch end := f.verdict(aborted); {
	case mine:
		f.Settled = &end
		f.over()
	case f.outstanding() && f.Taken == queued: // and was not taken in
		f.Settled = &providers.End{Outcome: session.Failed, Code: "transient", Message: "pi ended the run of an extension's in which it was to take the prompt in"}
		if f.Stop {
			f.Settled = &providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "interrupted before the prompt was worked on"}
		}
		f.await("clear_queue")
	default:
		f.due()
	}
}

func ownOutcome(aborted bool) session.Outcome {
	if aborted {
		return session.Cancelled
	}
	return session.Completed
}

// over ends the turn, unless pi may have a message still that was put into it. What is in its queue when a run has ended it
// would take into the next one, whatever that is about; so we wait for its answer, and have it forget the message.
func (f *fold) over() {
	switch {
	case f.Settled == nil || f.Waiting != "" || f.Busy || f.unanswered():
	case f.unread():
		f.await("clear_queue")
	default:
		f.finish(f.Settled.Outcome, f.Settled.Code, f.Settled.Message)
	}
}

// cleared is that nothing is left in the agent's queue.
func (f *fold) cleared() {
	f.unsteered()
	f.over()
}

// verdict is how a run ended: as the model's last message did, unless it was broken off.
func (f *fold) verdict(aborted bool) providers.End {
	switch {
	case f.Failure != nil:
		return *f.Failure
	case aborted && f.Stop:
		return providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "the turn was interrupted"}
	case aborted:
		return providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "an extension of pi's broke the turn off"}
	case f.Last == nil:
		return failed("", "pi ended the turn without an answer")
	}
	return *f.Last
}

func failed(code, message string) providers.End {
	return providers.End{Outcome: session.Failed, Code: code, Message: wire.Clip(message, wire.WordsLimit)}
}

// verdictOf is how a message of the model's ended.
func verdictOf(m message) *providers.End {
	end := providers.End{Outcome: session.Completed}
	switch m.Stop {
	case "stop", "toolUse":
	case "aborted":
		end = providers.End{Outcome: session.Cancelled, Code: "cancelled", Message: "the turn was broken off"}
	case "length":
		end = failed("", "the model's answer was cut off at its limit of tokens")
	case "error":
		end = failed(cause(string(m.Error)), cmp.Or(string(m.Error), "the model failed, and pi does not say why"))
	default:
		end = failed("protocol", "the model's answer ended as "+wire.Clip(cmp.Or(string(m.Stop), "nothing"), wire.IDLimit))
	}
	return &end
}

// giveUp has a turn break off that cannot come to a good end.
func (f *fold) giveUp(code, why string) {
	if f.Failure == nil {
		end := failed(code, why)
		f.Failure = &end
		f.abort()
	}
}

// Interrupt interrupts the turn, or the run of an extension's that keeps us waiting. Until the prompt was given it is
// remembered.
func (f *fold) Interrupt() []providers.Frame {
	if f.End != nil {
		return nil
	}
	f.Stop = true
	frames := f.Made(f.ordered("interrupt"), f.Stops, func() {
		if f.Prompt != "" || f.Busy {
			f.abort()
		}
	})
	f.Stops = f.Index()
	return frames
}

// abort has the run break off. What is in the queue would be taken into the next one. An extension that waits for an answer would
// have it wait; answered before, it would have the model asked again.
func (f *fold) abort() {
	f.call("clear_queue", "forget/"+f.Next(), nil)
	f.call("abort", "abort/"+f.Next(), nil)
	for _, p := range f.Pending {
		f.cancel(p.Request)
	}
}

// finish ends the turn; the first end counts. What it asked for and got no answer lapses, and what it began has ended.
func (f *fold) finish(outcome session.Outcome, code, message string) {
	if f.End != nil {
		return
	}
	f.End = &providers.End{Outcome: outcome, Code: code, Message: wire.Clip(message, wire.WordsLimit)}
	f.lapse()
	f.unsteered()
	f.settle()
}
