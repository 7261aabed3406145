package session

import (
	"encoding/json"
	"slices"
	"sort"
	"time"
)

// The bounds of one session's receipts.
const (
	// ReceiptAge is how long a receipt is found at least: until an unseen id that was as far ahead as it may be
	// is too old to be accepted.
	ReceiptAge = OperationAge + OperationAhead
	// MaxReceipts and MaxReceiptBytes bound the index; what goes beyond is evicted, the oldest ids first.
	MaxReceipts     = 10_000
	MaxReceiptBytes = 16 << 20
)

// Receipt is the recorded answer of a mutating request: an answer, or a refusal with code and message.
type Receipt struct {
	Operation   string          `json:"operation"`
	Method      string          `json:"method"`
	Fingerprint string          `json:"fingerprint"`
	Seq         int64           `json:"-"` // the journal's number of it
	At          time.Time       `json:"at"`
	Answer      json.RawMessage `json:"answer,omitempty"`
	Code        string          `json:"code,omitempty"`
	Message     string          `json:"message,omitempty"`
}

func (r Receipt) size() int { return len(r.Answer) + len(r.Message) }

// Receipts is the index of one session's receipts. The journal has the receipts; adding them again in its
// order gives the same index and the same mark, since what Add evicts follows from what was added alone.
// The zero value is empty and usable. It has no lock of its own.
type Receipts struct {
	found map[string]Receipt
	order []string // the ids sorted, so by the time in them
	added []string // the ids as they came
	bytes int
	mark  time.Time
}

// Add takes in a receipt. One that is there already stays as it is: the first answer is the answer. A
// receipt that is too big for the index raises the mark at once, so that its repeat is at least not done again.
func (r *Receipts) Add(receipt Receipt) {
	r.Expire(receipt.At) // first: what was begun may be answered anew when its first receipt is gone
	if _, ok := r.found[receipt.Operation]; ok {
		return
	}
	if receipt.size() > MaxReceiptBytes {
		r.raise(receipt.Operation)
		return
	}
	if r.found == nil {
		r.found = map[string]Receipt{}
	}
	r.found[receipt.Operation] = receipt
	r.order = slices.Insert(r.order, sort.SearchStrings(r.order, receipt.Operation), receipt.Operation)
	r.added = append(r.added, receipt.Operation)
	r.bytes += receipt.size()
	for len(r.order) > MaxReceipts || r.bytes > MaxReceiptBytes {
		r.evict(r.order[0])
	}
}

// Find returns the receipt of an operation.
func (r *Receipts) Find(operation string) (Receipt, bool) {
	receipt, ok := r.found[operation]
	return receipt, ok
}

// Mark is the newest time in the ids that were evicted: unseen ids up to it are expired.
func (r *Receipts) Mark() time.Time { return r.mark }

// Len is how many receipts are held.
func (r *Receipts) Len() int { return len(r.found) }

// Expire drops what is older than ReceiptAge. It raises the mark, too, which refuses nothing that its age
// would not refuse, unless the clock is set back: then the dropped ids would look new.
func (r *Receipts) Expire(now time.Time) {
	for len(r.added) > 0 && now.Sub(r.found[r.added[0]].At) > ReceiptAge {
		r.evict(r.added[0])
	}
}

func (r *Receipts) evict(operation string) {
	r.raise(operation)
	r.bytes -= r.found[operation].size()
	delete(r.found, operation)
	r.order = without(r.order, sort.SearchStrings(r.order, operation))
	r.added = without(r.added, slices.Index(r.added, operation))
}

func (r *Receipts) raise(operation string) {
	if at, ok := OperationTime(operation); ok && at.After(r.mark) {
		r.mark = at
	}
}

// without drops an element. Nearly always it is the first, which needs no copy.
func without(ids []string, i int) []string {
	if i == 0 {
		return ids[1:]
	}
	return slices.Delete(ids, i, i+1)
}
