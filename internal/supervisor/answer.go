package supervisor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
)

// question is an answer on its way to the run that asked.
type question struct {
	permission string
	decision   providers.Decision
	by         string
	operation  string
	always     bool
	reply      chan<- reply // of capacity 1
}

type reply struct {
	answered api.Answered
	err      error
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
	if a.Always && d != providers.Allow {
		return nil, api.E(api.CodeParams, "always goes with allow alone")
	}
	if utf8.RuneCountInString(a.By) > maxBy || strings.ContainsFunc(a.By, unicode.IsControl) { // it is printed
		return nil, api.E(api.CodeParams, "by: over %d characters, or one that is no character to read", maxBy)
	}
	folder, permission, err := s.asked(a.ID)
	if err != nil {
		return nil, err
	}
	st, err := record.StatusOf(s.dir, folder)
	if err != nil {
		return nil, err
	}
	known := slices.ContainsFunc(st.Resolved, func(a api.Answered) bool { return a.Permission == permission })
	if known || session.Phase(st.Phase) == session.Ended {
		return nil, settled(st, permission)
	}
	return s.ensure(folder).deliver(ctx, question{permission: permission, decision: d, by: a.By, operation: a.OperationID, always: a.Always})
}

// answeredBefore is the answer that counts, if this very operation gave it: killed before its receipt, it is what its
// repeat gets.
func answeredBefore(err error, operation string) (api.Answered, bool) {
	var refusal *api.Error
	if operation == "" || !errors.As(err, &refusal) {
		return api.Answered{}, false
	}
	winner, ok := refusal.Data["winner"].(api.Answered)
	return winner, ok && winner.Operation == operation
}

const (
	// maxBy is the longest name of who answers, in characters.
	maxBy = 200
	// deliverLimit is how long the run that asks may take to hear an answer.
	deliverLimit = 10 * time.Second
)

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
		st, err := record.StatusOf(r.s.dir, r.folder)
		if err := cmp.Or(r.failure(), err); err != nil {
			return nil, err
		}
		return nil, settled(st, q.permission)
	case <-time.After(deliverLimit):
		return nil, api.E(api.CodeBusy, "%s: its agent cannot be told now", r.name()).WithNext("pintle show " + record.Quote(r.name()))
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
		st, err := record.StatusOf(s.dir, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		st.ID = cmp.Or(st.ID, id)
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

// forgetAsked is for what was answered, or has lapsed: the record knows that.
func (s *Supervisor) forgetAsked(permission string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks, permission)
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
		st, err := record.StatusOf(s.dir, folder)
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
