package supervisor

import (
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// attendGrace is how long who has said that he answers may be away: his verb comes back after its supervisor died.
const attendGrace = 10 * time.Second

// presence is who will answer what one execution's agent asks for.
type presence struct {
	n    int
	left time.Time // when the last one went
}

// attend says that somebody answers, until the returned function is called.
func (s *Supervisor) attend(folder string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.attends[folder]
	p.n++
	s.attends[folder] = p
	return func() { s.unattend(folder) }
}

func (s *Supervisor) unattend(folder string) {
	s.mu.Lock()
	p := s.attends[folder]
	p.n, p.left = p.n-1, time.Now()
	s.attends[folder] = p
	r := s.runs[folder]
	if r == nil && p.n == 0 {
		delete(s.attends, folder)
	}
	s.mu.Unlock()
	if r != nil {
		r.wake()
	}
}

// aloneSince is since when nobody answers; in the future while somebody does.
func (r *run) aloneSince() time.Time {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	p := r.s.attends[r.folder]
	switch {
	case p.n > 0:
		return time.Now().Add(attendGrace)
	case !p.left.IsZero():
		return p.left
	case r.spec.Limits.Attended:
		return r.since
	}
	return time.Time{}
}

// permissions sees to what the agent asks for: it is shown, and answered as ordered when nobody is there to do it.
func (r *run) permissions() error {
	pending := r.rt.about().Pending
	for _, p := range pending {
		if was, ok := r.rt.resolved[p.ID]; ok { // by an earlier supervisor, which died before the agent heard of it
			if err := r.tellAgent(p.ID, providers.Decision(was.Decision)); err != nil {
				return err
			}
		}
	}
	if err := r.ruled(); err != nil {
		return err
	}
	pending = r.rt.about().Pending
	if err := r.showPending(pending); err != nil {
		return err
	}
	if len(pending) == 0 || r.spec.Payload.Unattended == "park" || r.held() || time.Since(r.aloneSince()) < attendGrace {
		return nil
	}
	d := providers.Fail
	if r.spec.Payload.Unattended == "deny" {
		d = providers.Deny
	}
	for _, p := range pending {
		if _, err := r.answer(api.Answered{Permission: p.ID, Decision: string(d), By: "unattended"}); err != nil {
			return err
		}
	}
	return r.showPending(r.rt.about().Pending)
}

// showPending puts what is asked on record, and then has those told who wait.
func (r *run) showPending(pending []providers.Permission) error {
	same := slices.EqualFunc(pending, r.st.Permissions, func(p providers.Permission, q api.Permission) bool { return p.ID == q.ID })
	gone := r.gone(pending)
	if !same || len(gone) > 0 {
		for _, name := range gone {
			r.resolved(api.Answered{Permission: name, Execution: r.st.ID, Decision: "lapsed", By: "the agent", At: time.Now().UTC()})
		}
		r.st.Permissions = r.shown(pending)
		phase := session.Running
		if r.st.WaitingFor = nil; len(pending) > 0 {
			phase, r.st.WaitingFor = session.Waiting, approval(r.st.Permissions)
		}
		if err := r.save(phase); err != nil {
			return err
		}
	}
	r.waitApproval(pending)
	return nil
}

// shown is what is asked as everybody sees it.
func (r *run) shown(pending []providers.Permission) (shown []api.Permission) {
	now := time.Now().UTC()
	for _, p := range pending {
		i := slices.IndexFunc(r.st.Permissions, func(q api.Permission) bool { return q.ID == p.ID })
		if i >= 0 {
			shown = append(shown, r.st.Permissions[i])
			continue
		}
		shown = append(shown, api.Permission{
			ID: p.ID, ToolCall: p.ToolCall, Title: p.Title, Kind: p.Kind, Reason: p.Reason, Tool: p.Tool, Command: p.Command, Paths: p.Paths, AskedAt: now,
		})
	}
	return shown
}

// gone are those that were asked, are not asked any more, and were not answered: the agent gave them up itself.
func (r *run) gone(pending []providers.Permission) (names []string) {
	asked := r.s.askedBy(r.folder)
	for _, q := range r.st.Permissions {
		asked = append(asked, q.ID)
	}
	for _, name := range asked {
		still := slices.ContainsFunc(pending, func(p providers.Permission) bool { return p.ID == name })
		if _, answered := r.rt.resolved[name]; !still && !answered && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func approval(asked []api.Permission) *api.WaitingFor {
	w := &api.WaitingFor{Kind: "needs_approval"}
	for _, p := range asked {
		w.Names = append(w.Names, p.ID)
		w.Detail = p.Title
	}
	return w
}

// waitApproval has those who wait for the run told that it waits for them, if it is parked.
func (r *run) waitApproval(pending []providers.Permission) {
	parked := len(pending) > 0 && (r.spec.Payload.Unattended == "park" || r.held()) && time.Since(r.aloneSince()) >= 0
	r.mu.Lock()
	was := r.waiting
	r.mu.Unlock()
	switch {
	case parked && (was == nil || !slices.EqualFunc(was.Names, pending, func(n string, p providers.Permission) bool { return n == p.ID })):
		r.wait(approval(r.st.Permissions))
	case !parked && was != nil && was.Kind == "needs_approval":
		r.wait(nil)
	}
}

// answer has an answer count. It is on record before the agent hears it, and the record decides (R11).
func (r *run) answer(a api.Answered) (api.Answered, error) {
	a.Execution, a.At = r.st.ID, time.Now().UTC()
	data := map[string]any{"permission": a.Permission, "decision": a.Decision, "by": a.By}
	for key, value := range map[string]string{"operation": a.Operation, "reason": a.Reason} {
		if value != "" {
			data[key] = value
		}
	}
	e := event("permission_resolved", data)
	e.Time = a.At
	if err := r.rt.note(true, e); err != nil {
		return a, err
	}
	crash.At("supervisor.answered")
	r.resolved(a)
	return a, r.tellAgent(a.Permission, providers.Decision(a.Decision))
}

// tellAgent has the agent hear an answer.
func (r *run) tellAgent(permission string, d providers.Decision) error {
	return r.rt.act(func(a providers.Agent) []providers.Frame { return a.Answer(permission, d) })
}

// maxResolved is how many answers a record names.
const maxResolved = 256

func (r *run) resolved(a api.Answered) {
	r.rt.resolved[a.Permission] = a
	r.s.forgetAsked(a.Permission)
	r.st.Resolved = append(r.st.Resolved, a)
	r.st.Resolved = r.st.Resolved[max(0, len(r.st.Resolved)-maxResolved):]
}

// lapsed are the events of what was asked and will not be answered any more.
func (r *run) lapsed(why string) (events []journal.Event) {
	for _, p := range r.rt.about().Pending {
		if _, ok := r.rt.resolved[p.ID]; ok {
			continue
		}
		r.resolved(api.Answered{Permission: p.ID, Execution: r.st.ID, Decision: "lapsed", By: why, At: time.Now().UTC()})
		events = append(events, event("permission_resolved", map[string]any{"permission": p.ID, "decision": "lapsed", "by": why}))
	}
	return events
}

// hearAnswer decides on an answer: of several the first that comes here counts.
func (r *run) hearAnswer(q question) error {
	i := slices.IndexFunc(r.rt.about().Pending, func(p providers.Permission) bool { return p.ID == q.permission })
	if _, answered := r.rt.resolved[q.permission]; i < 0 || answered {
		q.reply <- reply{err: settled(r.st, q.permission)}
		return nil
	}
	if q.always {
		if err := r.always(q.permission, q.by); err != nil {
			q.reply <- reply{err: err}
			return nil
		}
		crash.At("supervisor.always")
	}
	a, err := r.answer(api.Answered{Permission: q.permission, Decision: string(q.decision), By: q.by, Operation: q.operation})
	if err == nil {
		err = r.showPending(r.rt.about().Pending)
	}
	q.reply <- reply{a, err} // who waits for the run now does not find it waiting for this
	return err
}
