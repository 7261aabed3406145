package supervisor

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
)

// A prompt is stored when its order is, handed over when the shim has written it to the agent, confirmed when the agent has
// named the turn (F6). The shim's record and the agent's words decide; the journal tells when that was. Waiting long makes
// none of it unknown: only that the agent is gone does.

// steers reports whether a kind of agent takes a message into a turn that runs.
func steers(p providers.Provider) bool { return p.Steers }

// handedOver notes that the agent may have the prompt.
func (r *run) handedOver() error { return r.come("message_handed_over", handedOver) }

// confirmed notes that the agent has named the turn. So it has the prompt, whether the shim has told that already or not.
func (r *run) confirmed() error {
	if err := r.handedOver(); err != nil {
		return err
	}
	return r.come("message_confirmed", confirmed)
}

func handedOver(d *api.Delivery) **time.Time { return &d.HandedOverAt }
func confirmed(d *api.Delivery) **time.Time  { return &d.ConfirmedAt }

// come notes one of the facts, once.
func (r *run) come(kind string, which func(*api.Delivery) **time.Time) error {
	r.mu.Lock()
	known := *which(&r.handing) != nil
	r.mu.Unlock()
	if known || r.kept {
		return nil
	}
	if err := r.rt.note(false, event(kind, nil)); err != nil {
		return err
	}
	now := time.Now().UTC()
	r.note(which, &now)
	return nil
}

func (r *run) note(which func(*api.Delivery) **time.Time, at *time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*which(&r.handing) = at
	r.tellChange()
}

// recallDelivery brings back what an earlier supervisor knew of it.
func (r *run) recallDelivery(m memory) {
	r.mu.Lock()
	if r.spec.When != whenSteer { // which has its fate from another turn
		r.handing.HandedOverAt, r.handing.ConfirmedAt = m.handedOver, m.confirmed
		r.tellChange() // who waits for it may have come before us
	}
	r.mu.Unlock()
	for _, message := range m.fated {
		r.fated[message] = true
	}
}

// recallHandedOver is for a runtime that is dead: what only its shim knew.
func (r *run) recallHandedOver() {
	if r.handing.HandedOverAt == nil && r.rt.handedOver() {
		now := time.Now().UTC()
		r.note(handedOver, &now)
	}
}

// regain tells what an earlier supervisor had not come to: that the shim has handed the prompt over, and what the agent has
// said since, which was taken in and is not said again.
func (r *run) regain() error {
	if r.spoken() && !r.opens() && !r.kept && r.rt.handedOver() {
		if err := r.handedOver(); err != nil {
			return err
		}
	}
	return r.learn()
}

// delivery is how the prompt of a run that goes on is; nil of one that has none.
func (r *run) delivery(recorded *api.Delivery) *api.Delivery {
	r.mu.Lock()
	d := r.handing
	r.mu.Unlock()
	if d.StoredAt == nil {
		return recorded
	}
	d.State = "pending"
	if d.ConfirmedAt != nil {
		d.State = "accepted"
	}
	return &d
}

// delivered is how the prompt of a run that has ended was.
func (r *run) delivered(v record.Verdict) *api.Delivery {
	d := r.delivery(nil)
	if d == nil || d.State == "accepted" {
		return d
	}
	end := r.rt.about().End
	refused := end != nil && end.Outcome != session.Cancelled // by the agent's own words
	d.State = "rejected"
	if v.Outcome == session.Unknown || d.HandedOverAt != nil && !refused {
		d.State = "unknown"
	}
	return d
}

// store notes that there is a prompt, which a run of an agent that is spoken to has.
func (r *run) store() {
	at := r.spec.Desired.At
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.spoken() || r.opens():
	case r.handing.StoredAt == nil || !r.handing.StoredAt.Equal(at): // another attempt
		r.handing = api.Delivery{StoredAt: &at}
	}
}

// anew is for a try from the beginning, which hands the prompt over itself.
func (r *run) anew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handing.HandedOverAt, r.handing.ConfirmedAt = nil, nil
}

// reach returns when the delivery has come so far, or the run has ended.
func (r *run) reach(ctx context.Context, far func(api.Delivery, *api.WaitingFor) bool) error {
	for {
		r.mu.Lock()
		d, waiting, changed := r.handing, r.waiting, r.changed
		r.mu.Unlock()
		if far(d, waiting) {
			return nil
		}
		select {
		case <-changed:
		case <-r.done:
			if r.s.ctx.Err() != nil {
				return api.E(api.CodeStopping, "the supervisor leaves") // what was waited for may come with the next one
			}
			return r.failure()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliveredOrWaits is when a send to an idle session is answered. The conversation that is being opened is no reason to wait
// for anybody: it comes, or fails (F7).
func deliveredOrWaits(d api.Delivery, w *api.WaitingFor) bool {
	return d.HandedOverAt != nil || w != nil && w.Kind != "session"
}

// untils are what execution/wait may wait for (F6).
var untils = map[string]func(api.Delivery) bool{
	"stored":      func(d api.Delivery) bool { return d.StoredAt != nil },
	"handed_over": func(d api.Delivery) bool { return d.HandedOverAt != nil },
	"confirmed":   func(d api.Delivery) bool { return d.ConfirmedAt != nil },
}

// farOf is what is waited for; nil for the end.
func farOf(until string) (func(api.Delivery) bool, error) {
	far, ok := untils[until]
	if !ok && until != "" && until != "ended" {
		return nil, api.E(api.CodeParams, "until %q: stored, handed_over, confirmed or ended", until)
	}
	return far, nil
}
