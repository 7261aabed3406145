package codex

import (
	"encoding/json"

	"github.com/pintle/pintle/providers"
)

// meter is what a thread has cost: before the newest turn, and by now.
type meter struct {
	Thread string          `json:"thread"`
	Base   providers.Usage `json:"base"`
	Now    providers.Usage `json:"now"`
}

// tokens are a count of the server's.
type tokens struct{ InputTokens, CachedInputTokens, OutputTokens int64 }

func (t tokens) usage() providers.Usage {
	return providers.Usage{InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedInputTokens}
}

// used takes in what a thread has cost in all its life, and by its last request. The first count in a turn is of its first
// request: what is in it besides is of before. One that thread/resume brings is of before altogether.
// A thread that this one has started is counted by itself; it is not in ours.
func (f *fold) used(params json.RawMessage) {
	var p struct {
		where
		TokenUsage struct {
			Total tokens
			Last  *tokens
		}
	}
	_ = json.Unmarshal(params, &p)
	if f.Prompt == "" || f.own(p.ThreadID) && !f.mine(p.where) {
		return
	}
	total := p.TokenUsage.Total.usage()
	base := providers.Usage{}
	if last := p.TokenUsage.Last; last != nil {
		base = minus(total, last.usage())
	}
	if f.mine(p.where) {
		f.Retried = "" // the request came through
	}
	m := f.meter(string(p.ThreadID), base)
	if m == nil {
		return
	}
	m.Now = total
	f.tell("usage_update", f.usage())
}

// meter is the one of a thread; nil if there are too many.
func (f *fold) meter(thread string, base providers.Usage) *meter {
	for i := range f.Meters {
		if f.Meters[i].Thread == thread {
			return &f.Meters[i]
		}
	}
	if len(f.Meters) == most {
		return nil
	}
	f.Meters = append(f.Meters, meter{Thread: thread, Base: base})
	return &f.Meters[len(f.Meters)-1]
}

// usage is what the turn has cost.
func (f *fold) usage() (sum providers.Usage) {
	for _, m := range f.Meters {
		cost := minus(m.Now, m.Base)
		sum.InputTokens += cost.InputTokens
		sum.OutputTokens += cost.OutputTokens
		sum.CachedTokens += cost.CachedTokens
	}
	return sum
}

func minus(a, b providers.Usage) providers.Usage {
	return providers.Usage{
		InputTokens: max(0, a.InputTokens-b.InputTokens), OutputTokens: max(0, a.OutputTokens-b.OutputTokens),
		CachedTokens: max(0, a.CachedTokens-b.CachedTokens),
	}
}
