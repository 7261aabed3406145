package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

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
	f.Prompt, f.Slash = f.Next(), strings.HasPrefix(f.Order.Prompt, "/")
	f.await("prompt", "session/prompt", map[string]any{"sessionId": f.Session, "prompt": prompt(f.Order.Prompt)})
	f.Order.Prompt = "" // it may be long, and is not needed again
	f.steer()
}

// prompt is a text as agents take it.
func prompt(words string) []text { return []text{{"text", words}} }

// Interrupt cancels the turn. Before the prompt was given it is remembered.
func (f *fold) Interrupt() []providers.Frame {
	if f.End != nil {
		return nil
	}
	f.Stop = true
	frames := f.Made(wire.Ordered(f.Order.Turn, "interrupt"), f.Stops, f.cancel)
	f.Stops = f.Index()
	return frames
}

// cancel has the turn end. What is asked is to be answered as cancelled then.
func (f *fold) cancel() {
	if f.Prompt == "" || f.End != nil {
		return
	}
	f.Send(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]string{"sessionId": f.Session}})
	for _, p := range f.Pending {
		f.reply(p, nil)
	}
}

// counts are tokens as agents tell them. Those of inputs that were cached are counted apart.
type counts struct {
	InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens int64
}

// answer is that to a prompt.
type answer struct {
	StopReason string
	Usage      *counts
	Meta       struct {
		Quota struct {
			Count struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// prompted is the turn's end, by the agent's word.
func (f *fold) prompted(result json.RawMessage) {
	var r answer
	_ = json.Unmarshal(result, &r)
	f.Confirmed = true
	f.counted(r)
	nothing := f.Tokens == providers.Usage{}
	switch r.StopReason {
	case "cancelled":
		f.cancelled()
	case "end_turn":
		f.ended(r, nothing)
	case "max_turn_requests":
		f.finish(session.Budget, "budget", f.agent.title+" has used up the requests of a turn")
	case "max_tokens":
		f.finish(session.Failed, "", "the model's answer was cut off at its limit of tokens")
	case "refusal":
		f.finish(session.Failed, "", "the model refused to answer")
	default:
		f.finish(session.Failed, "protocol", "the turn ended as "+cmp.Or(r.StopReason, "nothing"))
	}
}

// cancelled is an end that we wanted; or some agents end their turn so when they are refused something.
func (f *fold) cancelled() {
	if !f.Stop && f.Refused != "" {
		f.finish(session.Denied, "", "it asked "+f.Refused+", was refused, and ended its turn")
		return
	}
	f.finish(session.Cancelled, "cancelled", "the turn was interrupted")
}

// ended is an end that passes for a good one.
func (f *fold) ended(r answer, nothing bool) {
	switch failed := f.agent.errorsAreSaid && f.Said != "" && r.Usage == nil && !f.Slash; {
	case f.Errored || failed:
		message := cmp.Or(strings.TrimSpace(f.Said), f.agent.title+" says that the turn failed, and not why")
		f.finish(session.Failed, cmp.Or(saidCause(message), f.Retried), message)
	case f.Stop && nothing: // a cancel between two tries of a request ends it so
		f.finish(session.Cancelled, "cancelled", "the turn was interrupted")
	default:
		f.finish(session.Completed, "", "")
	}
}

func (f *fold) counted(r answer) {
	if u := r.Usage; u != nil {
		cached := u.CachedReadTokens + u.CachedWriteTokens
		f.Tokens = providers.Usage{InputTokens: u.InputTokens + cached, OutputTokens: u.OutputTokens, CachedTokens: u.CachedReadTokens}
	} else if q := r.Meta.Quota.Count; q.Input+q.Output > 0 {
		f.Tokens = providers.Usage{InputTokens: q.Input, OutputTokens: q.Output}
	}
	if f.Tokens != (providers.Usage{}) {
		f.Tell("usage_update", f.usage())
	}
}

// usage is what the turn has cost. The price is told for all of the session's life, also of what other processes had of it.
func (f *fold) usage() providers.Usage {
	u := f.Tokens
	switch {
	case f.Priced != nil && f.Base != nil:
		usd := *f.Priced - *f.Base
		u.USD = &usd
	case f.Priced != nil && f.Fresh:
		usd := *f.Priced
		u.USD = &usd
	}
	return u
}
