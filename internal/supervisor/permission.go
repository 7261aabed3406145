package supervisor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
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
	pending = r.rt.about().Pending
	if err := r.showPending(pending); err != nil {
		return err
	}
	if len(pending) == 0 || r.spec.Payload.Unattended == "park" || time.Since(r.aloneSince()) < attendGrace {
		return nil
	}
	d := providers.Fail
	if r.spec.Payload.Unattended == "deny" {
		d = providers.Deny
	}
	for _, p := range pending {
		if _, err := r.answer(p.ID, d, "unattended"); err != nil {
			return err
		}
	}
	return r.showPending(r.rt.about().Pending)
}

// showPending puts what is asked on record, and then has those told who wait.
func (r *run) showPending(pending []providers.Permission) error {
	same := slices.EqualFunc(pending, r.st.Permissions, func(p providers.Permission, q api.Permission) bool { return p.ID == q.ID })
	if !same {
		r.lapse(pending)
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
		shown = append(shown, api.Permission{ID: p.ID, ToolCall: p.ToolCall, Title: p.Title, Kind: p.Kind, Reason: p.Reason, AskedAt: now})
	}
	return shown
}

// lapse notes what was asked, is not asked any more, and was not answered: the agent gave it up itself.
func (r *run) lapse(pending []providers.Permission) {
	for _, q := range r.st.Permissions {
		still := slices.ContainsFunc(pending, func(p providers.Permission) bool { return p.ID == q.ID })
		if _, answered := r.rt.resolved[q.ID]; !still && !answered {
			r.resolved(api.Answered{Permission: q.ID, Execution: r.st.ID, Decision: "lapsed", By: "the agent", At: time.Now().UTC()})
		}
	}
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
	parked := len(pending) > 0 && r.spec.Payload.Unattended == "park" && time.Since(r.aloneSince()) >= 0
	r.mu.Lock()
	was := r.waiting
	r.mu.Unlock()
	switch {
	case parked && (was == nil || len(was.Names) != len(pending) || was.Names[0] != pending[0].ID):
		w := &api.WaitingFor{Kind: "needs_approval", Detail: pending[0].Title}
		for _, p := range pending {
			w.Names = append(w.Names, p.ID)
		}
		r.wait(w)
	case !parked && was != nil && was.Kind == "needs_approval":
		r.wait(nil)
	}
}

// answer has an answer count. It is on record before the agent hears it, and the record decides (R11).
func (r *run) answer(permission string, d providers.Decision, by string) (api.Answered, error) {
	a := api.Answered{Permission: permission, Execution: r.st.ID, Decision: string(d), By: by, At: time.Now().UTC()}
	e := event("permission_resolved", map[string]any{"permission": permission, "decision": d, "by": by})
	e.Time = a.At
	if err := r.rt.note(true, e); err != nil {
		return a, err
	}
	crash.At("supervisor.answered")
	r.resolved(a)
	return a, r.tellAgent(permission, d)
}

// tellAgent has the agent hear an answer.
func (r *run) tellAgent(permission string, d providers.Decision) error {
	return r.rt.act(func(a providers.Agent) []providers.Frame { return a.Answer(permission, d) })
}

// maxResolved is how many answers a record names.
const maxResolved = 256

func (r *run) resolved(a api.Answered) {
	r.rt.resolved[a.Permission] = a
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

// question is an answer on its way to the run that asked.
type question struct {
	permission string
	decision   providers.Decision
	by         string
	reply      chan<- reply // of capacity 1
}

type reply struct {
	answered api.Answered
	err      error
}

// hearAnswer decides on an answer: of several the first that comes here counts.
func (r *run) hearAnswer(q question) error {
	i := slices.IndexFunc(r.rt.about().Pending, func(p providers.Permission) bool { return p.ID == q.permission })
	if i < 0 {
		q.reply <- reply{err: settled(r.st, q.permission)}
		return nil
	}
	a, err := r.answer(q.permission, q.decision, q.by)
	if err == nil {
		err = r.showPending(r.rt.about().Pending)
	}
	q.reply <- reply{a, err} // who waits for the run now does not find it waiting for this
	return err
}

// settled is the refusal of an answer to what is not asked any more.
func settled(st record.Status, permission string) error {
	i := slices.IndexFunc(st.Resolved, func(a api.Answered) bool { return a.Permission == permission })
	if i < 0 {
		return api.E(api.CodeNotFound, "nothing is asked under the name %s", permission).WithNext("pintle approvals")
	}
	w := st.Resolved[i]
	e := api.E(api.CodeResolved, "%s was answered before: %s, by %s, at %s", permission, w.Decision, w.By, w.At.Format(time.RFC3339))
	if w.Decision == "lapsed" {
		e = api.E(api.CodeResolved, "%s cannot be answered any more: it lapsed at %s (%s)", permission, w.At.Format(time.RFC3339), w.By)
	}
	e.Data = map[string]any{"winner": w}
	return e.WithNext("pintle show " + record.Quote(st.ID))
}

// answerTo answers a permission, by its own name or that of a run that asks for just one.
func (s *Supervisor) answerTo(ctx context.Context, a api.Answer) (any, error) {
	d := providers.Decision(a.Decision)
	if d != providers.Allow && d != providers.Deny {
		return nil, api.E(api.CodeParams, "the decision %q is none: allow or deny", a.Decision)
	}
	folder, permission, err := s.asked(a.ID)
	if err != nil {
		return nil, err
	}
	st, err := state.Read[record.Status](s.dir, record.StatusFile(folder))
	if err != nil {
		return nil, err
	}
	if session.Phase(st.Phase) == session.Ended {
		return nil, settled(st, permission)
	}
	return s.ensure(folder).deliver(ctx, question{permission: permission, decision: d, by: a.By})
}

// deliver brings an answer to the run, which has the permission or knows what became of it.
func (r *run) deliver(ctx context.Context, q question) (any, error) {
	answer := make(chan reply, 1)
	q.reply = answer
	select {
	case r.answers <- q:
	case <-r.done:
		if r.s.ctx.Err() != nil {
			return nil, api.E(api.CodeStopping, "the supervisor leaves")
		}
		st, err := state.Read[record.Status](r.s.dir, record.StatusFile(r.folder))
		if err != nil {
			return nil, err
		}
		return nil, settled(st, q.permission)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	got := <-answer
	if got.err != nil {
		return nil, got.err
	}
	return got.answered, nil
}

// isPermission reports whether a word is, or begins, the name of one.
func isPermission(id string) bool {
	digits, ok := strings.CutPrefix(id, "p-")
	return ok && len(digits) >= 4 && len(digits) <= 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// asked finds the execution and the permission that are meant.
func (s *Supervisor) asked(id string) (folder, permission string, err error) {
	folder, err = record.Find(s.dir, id)
	switch {
	case err == nil:
		st, err := state.Read[record.Status](s.dir, record.StatusFile(folder))
		if err != nil {
			return "", "", err
		}
		permission, err := onlyPending(st, s.askedBy(folder))
		return folder, permission, err
	case !isPermission(id) || !errors.Is(err, api.E(api.CodeNotFound, "")):
		return "", "", err
	}
	return s.named(id)
}

// askedBy are the permissions that an execution's agent has asked for, as far as it is told already: the journal says so
// before the record does.
func (s *Supervisor) askedBy(folder string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, by := range s.asks {
		if by == folder {
			names = append(names, name)
		}
	}
	return names
}

// noteAsked notes permissions that are about to be told.
func (s *Supervisor) noteAsked(folder string, pending []providers.Permission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range pending {
		s.asks[p.ID] = folder
	}
}

// onlyPending is the one permission that is meant by the name of its execution; asked are those that were just told.
func onlyPending(st record.Status, asked []string) (string, error) {
	for _, name := range asked {
		known := func(id string) bool { return id == name }
		if !slices.ContainsFunc(st.Permissions, func(p api.Permission) bool { return known(p.ID) }) &&
			!slices.ContainsFunc(st.Resolved, func(a api.Answered) bool { return known(a.Permission) }) {
			st.Permissions = append(st.Permissions, api.Permission{ID: name})
		}
	}
	switch n := len(st.Permissions); {
	case n == 1:
		return st.Permissions[0].ID, nil
	case n == 0 && len(st.Resolved) > 0:
		return "", settled(st, st.Resolved[len(st.Resolved)-1].Permission)
	case n == 0:
		return "", api.E(api.CodeNotFound, "%s asks for nothing", st.ID).WithNext("pintle approvals")
	}
	var names []string
	for _, p := range st.Permissions {
		names = append(names, p.ID)
	}
	return "", api.E(api.CodeAmbiguous, "%s asks for %s", st.ID, strings.Join(names, ", ")).WithNext("pintle approvals")
}

// named finds a permission by its name, or by a prefix that only it has.
func (s *Supervisor) named(prefix string) (folder, permission string, err error) {
	folders, err := record.Folders(s.dir)
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	found := maps.Clone(s.asks)
	s.mu.Unlock()
	for _, folder := range folders {
		st, err := state.Read[record.Status](s.dir, record.StatusFile(folder))
		if err != nil {
			continue // what it says nobody knows
		}
		for _, p := range st.Permissions {
			found[p.ID] = folder
		}
		for _, a := range st.Resolved {
			found[a.Permission] = folder
		}
	}
	var names []string
	for name := range found {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "", "", api.E(api.CodeNotFound, "nothing is asked under the name %s", prefix).WithNext("pintle approvals")
	case 1:
		return found[names[0]], names[0], nil
	}
	return "", "", api.E(api.CodeAmbiguous, "%s may be %s", prefix, strings.Join(names, ", "))
}
