package supervisor

import (
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

// wait says for whom the run waits, or, with nil, that it goes on.
func (r *run) wait(w *api.WaitingFor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = w
	if w != nil {
		r.s.slots.pass(r.folder)
		r.tellChange()
	}
}

// tellChange wakes those who look at the run. Its mutex is held.
func (r *run) tellChange() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// view is the execution as it is known now.
func (r *run) view() (api.Execution, error) {
	r.mu.Lock()
	waiting := r.waiting
	r.mu.Unlock()
	return r.viewWaiting(waiting)
}

// viewWaiting is the execution with the reason for which it was seen to wait.
func (r *run) viewWaiting(w *api.WaitingFor) (api.Execution, error) {
	e, err := record.View(r.s.dir, r.folder)
	if err == nil && e.Phase == string(session.Ended) && e.EndedAt == nil { // a guess for who has no supervisor: we are at it
		if st, readErr := record.StatusOf(r.s.dir, r.folder); readErr == nil {
			e = st.Execution
		}
	}
	if err == nil && e.Phase != string(session.Ended) {
		e.Delivery = r.delivery(e.Delivery)
	}
	if err != nil || w == nil || e.Phase == string(session.Ended) {
		return e, err
	}
	if e.Phase != string(session.Queued) {
		e.Phase = string(session.Waiting)
	}
	if now := r.s.slots.standing(r.folder); now != nil && now.Kind == w.Kind {
		w = now // its place in the line is on no record
	}
	e.WaitingFor, e.Next = w, record.Next(e.ID, w)
	return e, nil
}
