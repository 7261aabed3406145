package supervisor

import (
	"context"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
)

// A run takes a slot before anything of its attempt is begun, and keeps it until that has ended: between tries too, and
// while its agent waits for an answer. What waits for its turn or for its environment has none.

// comes has a run that was just taken up, and read, known to those who give slots out. One that had a slot under an earlier
// supervisor has it again at once, also beyond the limit: its process may live.
func (r *run) comes() {
	if r.came || r.s.slots.limit == 0 {
		return
	}
	r.came = true
	if r.ours() { // who waits for it has one
		r.s.slots.pass(r.folder)
		return
	}
	if r.hadSlot() {
		r.s.slots.hold(r.folder)
		return
	}
	r.s.slots.expect(r.place())
}

// hadSlot reports whether the attempt has begun by what is on record.
func (r *run) hadSlot() bool {
	past := []session.Phase{session.Workspace, session.Started, session.Prompted, session.Running, session.Waiting}
	phase := session.Phase(r.st.Phase)
	return slices.Contains(past, phase) || (phase != session.Ended && (r.st.Try > 1 || r.begun()))
}

// admitted reports whether the run may begin. Else it is on record as queued, and waits until it holds a slot or somebody
// wants it to end; the records are looked at anew then.
func (r *run) admitted(ctx context.Context) (bool, error) {
	if r.ours() || r.s.slots.take(r.place(), r.wake) {
		return true, nil
	}
	r.wait(r.s.slots.standing(r.folder))
	defer r.wait(nil)
	for queued := false; ctx.Err() == nil && r.left() > 0 && !r.s.slots.holds(r.folder) && !r.wanted(); {
		var err error
		if !queued {
			queued, err = r.queue()
		}
		if err != nil {
			return false, err
		}
		r.pause(ctx, min(time.Minute, r.left()))
		if spec, err := record.SpecOf(r.s.dir, r.folder); err == nil {
			r.spec = spec
		}
	}
	return false, nil
}

// queue records, once, that the run waits for a slot; not if it has one in an instant. Its place is not recorded: it changes
// with each that ends. The session of an agent is there from then on, for those who are ordered to go on in it.
func (r *run) queue() (queued bool, err error) {
	w := r.s.slots.full(r.place())
	if w == nil {
		return false, nil
	}
	was, phase := r.st.WaitingFor, session.Phase(r.st.Phase)
	if phase == session.Claimed || (phase == session.Queued && (was == nil || was.Kind != w.Kind)) {
		r.st.WaitingFor = w
		if err := r.save(session.Queued); err != nil {
			return false, err
		}
	}
	if goesOn, err := r.goesOn(); goesOn || err != nil || !r.spoken() {
		return true, err
	}
	return true, r.prepareSession()
}

// admittedAlone is admitted for a run with nobody before it in its session. It goes on as claimed.
func (r *run) admittedAlone(ctx context.Context) (bool, error) {
	mine, err := r.admitted(ctx)
	if err != nil || !mine || r.st.Phase != string(session.Queued) {
		return mine, err
	}
	r.st.WaitingFor = nil
	return true, r.save(session.Claimed)
}

// behindOthers reports whether a queued run's turn in its session has not come.
func (r *run) behindOthers(ctx context.Context) (bool, error) {
	if r.st.Phase != string(session.Queued) {
		return false, nil
	}
	goesOn, err := r.goesOn()
	if err != nil || !goesOn {
		return false, err
	}
	mine, err := r.itsTurn(ctx)
	return !mine, err
}
