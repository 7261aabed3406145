package claude

import (
	"maps"
	"slices"

	"github.com/pintle/pintle/providers"
)

// tokens are a count of the model's server. What it has from its cache, or puts there, is counted beside the rest.
type tokens struct {
	Input   int64 `json:"input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

func (t tokens) usage() providers.Usage {
	return providers.Usage{InputTokens: t.Input + t.Created + t.Read, OutputTokens: t.Output, CachedTokens: t.Read}
}

// modelUsage is what a model has cost since the result before, agents that were started included.
type modelUsage struct {
	Input   int64   `json:"inputTokens"`
	Created int64   `json:"cacheCreationInputTokens"`
	Read    int64   `json:"cacheReadInputTokens"`
	Output  int64   `json:"outputTokens"`
	USD     float64 `json:"costUSD"`
}

// spend is what a turn has cost by its result. The sum in dollars is of the process, and of those before it in the same
// conversation if they ended well: only what it grew by is told, and the first one only of a conversation that is new.
func (f *fold) spend(r result) providers.Usage {
	before := f.Paid
	if r.TotalUSD != nil {
		f.Paid = dollars(*r.TotalUSD)
	}
	if r.Models != nil {
		return r.ofModels()
	}
	spent := r.Usage.usage()
	if fresh := before > 0 || f.Order.Conversation == "" || f.Order.Lost; r.TotalUSD != nil && fresh {
		usd := max(0, f.Paid-before)
		spent.USD = &usd
	}
	return spent
}

func (r result) ofModels() (sum providers.Usage) {
	usd := 0.0
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		m := r.Models[name]
		t := tokens{m.Input, m.Created, m.Read, m.Output}
		sum, usd = plus(sum, t.usage()), usd+dollars(m.USD)
	}
	sum.USD = &usd
	return sum
}

// dollars is a sum that can be added to.
func dollars(sum float64) float64 { return min(max(0, sum), 1e12) }

func plus(a, b providers.Usage) providers.Usage {
	sum := providers.Usage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CachedTokens: a.CachedTokens + b.CachedTokens, USD: a.USD,
	}
	if b.USD != nil {
		usd := *b.USD
		if a.USD != nil {
			usd += *a.USD
		}
		sum.USD = &usd
	}
	return sum
}

// starts counts what a message is made from, as it begins.
func (f *fold) starts(t tokens) {
	u := t.usage()
	f.Running = plus(f.Running, providers.Usage{InputTokens: u.InputTokens, CachedTokens: u.CachedTokens})
}

// grows counts what there is of a message by now. The result will say what all has cost.
func (f *fold) grows(t tokens) {
	f.Running.OutputTokens += t.Output - f.Stream.Output
	f.Stream.Output = t.Output
	f.Tell("usage_update", plus(f.Spent, f.Running))
}
