package session

import (
	"fmt"
	"slices"
	"time"
)

// Mode is how a lease is held.
type Mode string

// The modes.
const (
	Shared    Mode = "shared"    // others may drive the session, too
	Exclusive Mode = "exclusive" // nobody else may
)

// Lease is a client's right to drive a session. Operation is the one that got it, so that its repeat finds
// it, also when a crash left the lease on disk and no receipt.
type Lease struct {
	Client    string    `json:"client"`
	Mode      Mode      `json:"mode"`
	Since     time.Time `json:"since"`
	Operation string    `json:"operation,omitempty"`
}

// Leases are the clients' leases on one session: either one exclusive, or any number of shared ones, one a
// client. The methods leave the receiver as it is; what they return shares nothing with it that is written.
type Leases []Lease

// Busy is an execution in the session's queue. It counts as a shared lease of its own until it ends, which
// no take-over takes from it.
type Busy struct {
	Execution string
	Since     time.Time
}

// Refusal names who holds what stands against a request: a client, or else an execution (L1).
type Refusal struct {
	Client    string
	Execution string
	Mode      Mode
	Since     time.Time
}

// Error says who holds the session.
func (r *Refusal) Error() string {
	who := "client " + r.Client
	if r.Execution != "" {
		who = "execution " + r.Execution
	}
	return fmt.Sprintf("the session is held by %s (%s, since %s)", who, r.Mode, r.Since.UTC().Format(time.RFC3339))
}

func refusedBy(l Lease) *Refusal { return &Refusal{Client: l.Client, Mode: l.Mode, Since: l.Since} }

// Ask is what an attach asks for. Every mode but Shared is Exclusive.
type Ask struct {
	Client    string
	Mode      Mode
	TakeOver  bool
	At        time.Time
	Operation string
}

func (a Ask) lease() Lease {
	mode := Exclusive
	if a.Mode == Shared {
		mode = Shared
	}
	return Lease{Client: a.Client, Mode: mode, Since: a.At, Operation: a.Operation}
}

// Attachment is what an attach that was not refused did.
type Attachment struct {
	Leases  Leases
	Lease   Lease   // the asker's, new or as it was
	Evicted []Lease // of others, who are to be told
	Changed bool    // otherwise nothing is written and no event is told
	Bumps   bool    // the fence goes up by one
}

// Attach is L1 and L9. An attach that names the operation of the lease that its client holds is that
// attach again, and so is a shared one of a client that shares already: neither changes anything.
//
// Killed between the record and the receipt: the repeat finds its lease here, and a take-over's fence went up
// in the same record.
func (ls Leases) Attach(ask Ask, busy []Busy) (Attachment, *Refusal) {
	own, held := ls.Of(ask.Client)
	want := ask.lease()
	switch {
	case ls.Begun(ask):
		return Attachment{Leases: ls, Lease: own}, nil
	case ask.TakeOver:
		return Attachment{Leases: Leases{want}, Lease: want, Evicted: ls.Without(ask.Client), Changed: true, Bumps: true}, nil
	}
	if refusal := ls.against(want, busy); refusal != nil {
		return Attachment{}, refusal
	}
	if held {
		return Attachment{Leases: ls, Lease: own}, nil
	}
	return Attachment{Leases: append(slices.Clone(ls), want), Lease: want, Changed: true}, nil
}

// Begun reports whether the lease that ask would get is there, got by the same operation.
func (ls Leases) Begun(ask Ask) bool {
	own, held := ls.Of(ask.Client)
	return held && ask.Operation != "" && own.Operation == ask.Operation && own.Mode == ask.lease().Mode
}

// against is who stands against a new lease: an exclusive one against any, any against an exclusive one, the
// same client's, too.
func (ls Leases) against(want Lease, busy []Busy) *Refusal {
	if l, ok := ls.exclusive(); ok {
		return refusedBy(l)
	}
	switch {
	case want.Mode == Shared:
		return nil
	case len(ls) > 0:
		return refusedBy(ls[0])
	case len(busy) > 0:
		return &Refusal{Execution: busy[0].Execution, Mode: Shared, Since: busy[0].Since}
	}
	return nil
}

func (ls Leases) exclusive() (Lease, bool) {
	i := slices.IndexFunc(ls, func(l Lease) bool { return l.Mode == Exclusive })
	if i < 0 {
		return Lease{}, false
	}
	return ls[i], true
}

// Of is the lease of a client.
func (ls Leases) Of(client string) (Lease, bool) {
	i := slices.IndexFunc(ls, func(l Lease) bool { return l.Client == client })
	if i < 0 {
		return Lease{}, false
	}
	return ls[i], true
}

// Without is what is left when a client is gone; nil if that is nothing.
func (ls Leases) Without(client string) Leases {
	var rest Leases
	for _, l := range ls {
		if l.Client != client {
			rest = append(rest, l)
		}
	}
	return rest
}

// MayWrite says who stands against a client's write, nil if nobody does: a client without a lease takes one
// for the length of its write (L2), which another's exclusive lease refuses.
func (ls Leases) MayWrite(client string) *Refusal {
	if l, ok := ls.exclusive(); ok && l.Client != client {
		return refusedBy(l)
	}
	return nil
}
