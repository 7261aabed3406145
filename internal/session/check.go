package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Expected is what a request says of the session's fence. The zero value says nothing.
type Expected struct {
	Given bool
	None  bool  // null: the session must not exist yet
	Fence int64 // otherwise
}

// ParseExpected reads the member expectedFence of a request: absent (nil), null or a number.
func ParseExpected(raw json.RawMessage) (Expected, error) {
	raw = bytes.TrimSpace(raw)
	switch string(raw) {
	case "":
		return Expected{}, nil
	case "null":
		return Expected{Given: true, None: true}, nil
	}
	fence, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || fence < 0 {
		return Expected{}, fmt.Errorf("%w: the expected fence %.40s is neither null nor an integer from 0", ErrParams, raw)
	}
	return Expected{Given: true, Fence: fence}, nil
}

// Mutation is what a mutating request says of itself.
type Mutation struct {
	Operation   string // "" without: then there is no receipt
	Fingerprint string // that came with it, "" without
	Computed    string // Fingerprint's
	Expected    Expected
}

// Standing is what a request finds.
type Standing struct {
	Exists bool // the session; one that is not there has no fence and no leases
	Fence  int64
	Lease  error // what refuses it (MayWrite, Attach), nil if nothing does
	// Begun says that a record has the effect of this very operation, and no receipt: a crash came in between. Its
	// repeat is carried to the end and answered. Neither lease nor fence, which it may have raised itself, nor its
	// age stand against it.
	Begun bool
}

// Check says what becomes of a mutating request, in F2's order: fingerprint, receipts, lease, fence. The receipt
// that it returns is the answer; neither receipt nor error means that the request is carried out. A refusal
// by lease or fence leaves no receipt, and so do all the others here.
//
// While the session is reserved its fence is the new runtime's already: a request that names it passes, and
// waits for that runtime (F7); one that names an older fence is stale.
func Check(m Mutation, receipts *Receipts, s Standing, now time.Time) (*Receipt, error) {
	if m.Fingerprint != "" && m.Fingerprint != m.Computed {
		return nil, fmt.Errorf("%w: the fingerprint of this request is %s, not %.64q", ErrOperation, m.Computed, m.Fingerprint)
	}
	receipt, err := checkReceipt(m, receipts, s.Begun, now)
	switch {
	case receipt != nil || err != nil:
		return receipt, err
	case s.Begun:
		return nil, nil
	case s.Exists && s.Lease != nil:
		return nil, s.Lease
	}
	return nil, checkFence(m.Expected, s)
}

func checkReceipt(m Mutation, receipts *Receipts, begun bool, now time.Time) (*Receipt, error) {
	if m.Operation == "" {
		return nil, nil
	}
	receipt, ok := receipts.Find(m.Operation)
	switch {
	case !ok && begun:
		return nil, nil
	case !ok:
		return nil, CheckOperation(m.Operation, now, receipts.Mark())
	case receipt.Fingerprint != m.Computed:
		return nil, fmt.Errorf("%w: %s was another request (%s)", ErrOperationConflict, m.Operation, receipt.Method)
	}
	return &receipt, nil
}

func checkFence(expected Expected, s Standing) error {
	switch {
	case expected.None && s.Exists:
		return fmt.Errorf("%w: it exists already, at %d", ErrStaleFence, s.Fence)
	case expected.None:
		return nil
	case !s.Exists:
		return ErrNoSession
	case expected.Given && expected.Fence != s.Fence:
		return fmt.Errorf("%w: %d was expected, it is %d", ErrStaleFence, expected.Fence, s.Fence)
	}
	return nil
}
