package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Handle carries out one request. Hello comes first (C5).
func (s *Supervisor) Handle(ctx context.Context, p *rpc.Peer, method string, params json.RawMessage) (any, error) {
	switch {
	case method == api.MethodPing:
		return struct{}{}, nil
	case method == api.MethodHello:
		return call(ctx, params, func(ctx context.Context, h api.Hello) (any, error) { return s.hello(ctx, p, h) })
	case !p.Greeted():
		p.Close(rpc.CloseHello, "hello expected")
		return nil, api.E(api.CodeHello, "hello expected")
	}
	q := asking{s, p, method, params}
	switch method {
	case api.MethodGoodbye:
		s.goodbye(ctx, p)
		return nil, nil
	case api.MethodCreate:
		return call(ctx, params, s.create)
	case api.MethodGet:
		return call(ctx, params, s.get)
	case api.MethodList:
		return call(ctx, params, s.list)
	case api.MethodWait:
		return call(ctx, params, s.wait)
	case api.MethodStop, api.MethodInterrupt:
		return call(ctx, params, func(ctx context.Context, c api.Control) (any, error) {
			return q.about(ctx, c.ID, c.Operation, func(ctx context.Context) (any, error) { return s.control(ctx, method, c) })
		})
	case api.MethodArchive:
		return call(ctx, params, func(ctx context.Context, c api.Archive) (any, error) {
			return q.about(ctx, c.ID, c.Operation, func(ctx context.Context) (any, error) { return s.archiveRun(ctx, c) })
		})
	case api.MethodWsCreate:
		return call(ctx, params, s.createWorkspace)
	case api.MethodWsList:
		return call(ctx, params, s.listWorkspaces)
	case api.MethodWsGet:
		return call(ctx, params, s.getWorkspace)
	case api.MethodWsArchive:
		return call(ctx, params, s.archiveWorkspace)
	case api.MethodWsRestore:
		return call(ctx, params, s.restoreWorkspace)
	case api.MethodRecover:
		return call(ctx, params, func(ctx context.Context, c api.Recover) (any, error) {
			return q.about(ctx, c.ID, c.Operation, func(ctx context.Context) (any, error) { return s.recover(ctx, c) })
		})
	case api.MethodAnswer:
		return call(ctx, params, q.answer)
	case api.MethodSessCreate, api.MethodSessAttach, api.MethodSessDetach, api.MethodSessSend, api.MethodSessInterrupt:
		return q.drive(ctx)
	case api.MethodSessList, api.MethodSessGet, api.MethodSessHistory, api.MethodSessSubscribe, api.MethodSessUnsubscribe, api.MethodSessRecover:
		return q.look(ctx)
	case api.MethodProviders:
		return s.providers(), nil
	case api.MethodStatus:
		return s.status(), nil
	case api.MethodSupervisor:
		return call(ctx, params, s.stop)
	}
	return nil, api.E(api.CodeNoMethod, "no method called %q", method)
}

// call decodes the parameters strictly: an unknown field is a mistake that must not pass for done.
func call[T any](ctx context.Context, params json.RawMessage, f func(context.Context, T) (any, error)) (any, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, api.E(api.CodeParams, "parameters: %w", err)
	}
	result, err := f(ctx, v)
	return result, coded(err)
}

// coded gives errors of the state directory their codes, which are all that crosses the wire.
func coded(err error) error {
	for sentinel, code := range map[error]api.Code{
		state.ErrDamaged: api.CodeCorrupt, state.ErrNewer: api.CodeNewer, state.ErrFull: api.CodeFull,
	} {
		if errors.Is(err, sentinel) && api.CodeOf(err) == api.CodeInternal {
			return api.E(code, "%w", err).WithNext("pintle doctor")
		}
	}
	return err
}

// create has a recorded order carried out. It answers once the attempt has its ids on record (X1), or waits for
// somebody, or cannot go on: the order stands, whoever crashes.
func (s *Supervisor) create(ctx context.Context, c api.Create) (any, error) {
	folder, err := record.Find(s.dir, c.ID)
	if err != nil {
		return nil, err
	}
	if s.isStopping() {
		return nil, api.E(api.CodeStopping, "the supervisor is being stopped; the order of %s stands", c.ID)
	}
	if c.Environment != nil {
		if err := s.bring(folder, c); err != nil {
			return nil, err
		}
	}
	open, err := s.unended(folder)
	if err != nil {
		return nil, err
	}
	if !open { // fifty repeats of what has ended are fifty looks and no more
		return s.look(folder)
	}
	if err := s.answered(ctx, folder); err != nil {
		return nil, err
	}
	return s.look(folder)
}

// bring keeps the values that came with an order, for an attempt that has not begun.
func (s *Supervisor) bring(folder string, c api.Create) error {
	spec, err := record.SpecOf(s.dir, folder)
	if err != nil {
		return err
	}
	env, err := environmentOf(c.Environment, c.Secrets)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.envs[folder]
	if ok && was.attempt == spec.Desired.Attempt && len(was.Lacks(spec.Environment.Names)) == 0 {
		return nil // it may have begun with that one
	}
	s.envs[folder] = brought{env, spec.Desired.Attempt}
	if id := spec.Payload.Session; id != "" { // others that wait in its session for values have them now
		s.homes[id] = env
	}
	return nil
}

func (s *Supervisor) get(_ context.Context, t api.Target) (any, error) {
	folder, err := record.Find(s.dir, t.ID)
	if err != nil {
		return nil, err
	}
	return s.look(folder)
}

// look is the execution with what only the one who drives it knows.
func (s *Supervisor) look(folder string) (api.Execution, error) {
	s.mu.Lock()
	r, ok := s.runs[folder]
	s.mu.Unlock()
	if ok {
		return r.view()
	}
	return record.View(s.dir, folder)
}

func (s *Supervisor) list(_ context.Context, l api.List) (any, error) {
	rows, err := record.List(s.dir)
	if err == nil && l.All {
		var archived []record.Listed
		archived, err = record.Archived(s.dir)
		rows = append(archived, rows...)
	}
	if err != nil {
		return nil, err
	}
	all := []api.Execution{}
	for _, row := range rows {
		if row.Err == nil && Matches(row.Execution.Labels, l.Labels) {
			all = append(all, row.Execution)
		}
	}
	return all, nil
}

// Matches reports whether labels has all of want.
func Matches(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// control records a stop or an interrupt and answers once it is proven: nothing of the run is left.
func (s *Supervisor) control(ctx context.Context, method string, c api.Control) (any, error) {
	action := "stop"
	if method == api.MethodInterrupt {
		action = "interrupt"
	}
	folder, err := record.Find(s.dir, c.ID)
	if err != nil {
		return nil, err
	}
	if _, err := record.View(s.dir, folder); err != nil {
		return nil, err // what cannot be carried out is not recorded either (K2)
	}
	open, err := s.unended(folder)
	if err != nil {
		return nil, err
	}
	if open {
		if _, err := record.Cancel(ctx, s.dir, folder, api.Cancel{Action: action, Reason: c.Reason, RequestedAt: time.Now().UTC()}); err != nil {
			return nil, err
		}
		if err := s.ended(ctx, folder); err != nil {
			return nil, err
		}
	}
	if action == "stop" {
		if err := s.closeKeptOf(ctx, folder); err != nil {
			return nil, err
		}
	}
	return api.Controlled{ExecutionID: c.ID, Action: action, Success: true}, nil
}

// recover looks again at an execution whose owner is uncertain, or has it taken for dead.
func (s *Supervisor) recover(ctx context.Context, c api.Recover) (any, error) {
	folder, err := record.Find(s.dir, c.ID)
	if err != nil {
		return nil, err
	}
	return s.recoverRun(ctx, folder, c)
}

func (s *Supervisor) recoverRun(ctx context.Context, folder string, c api.Recover) (any, error) {
	st, err := record.StatusOf(s.dir, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return s.ensure(folder).view() // nothing of it was begun that could be uncertain
	}
	if err != nil {
		return nil, fmt.Errorf("recover %s: %w", c.ID, err)
	}
	if session.Phase(st.Phase) == session.Ended {
		return s.look(folder)
	}
	if c.AssertDead {
		err := state.Update(ctx, s.dir, record.SpecFile(folder), func(sp *record.Spec) error {
			sp.Desired.AssertDead = st.RuntimeID
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	r := s.ensure(folder)
	if !c.AssertDead {
		return r.view()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.look(folder)
}

// providers are the agents that can be named without a program of one's own, by name.
func (s *Supervisor) providers() []api.Provider {
	list := []api.Provider{}
	for _, name := range slices.Sorted(maps.Keys(s.o.Providers)) {
		if p := s.o.Providers[name]; p.Program != "" || p.Launch == nil {
			list = append(list, api.Provider{Name: name, Enabled: true})
		}
	}
	return list
}

func (s *Supervisor) status() api.Supervisor {
	started := s.self.StartedAt
	st := api.Supervisor{
		Running: true, PID: s.self.PID, Epoch: s.self.Epoch, Socket: s.self.Socket, Version: s.o.Version,
		StartedAt: &started, Runtimes: Runtimes(s.dir),
	}
	for _, r := range st.Runtimes {
		st.Sessions += len(r.Sessions)
	}
	return st
}

// Runtimes lists the runtimes that are not settled, from the records.
func Runtimes(d *state.Dir) []api.RuntimeSummary {
	list := []api.RuntimeSummary{}
	s := &Supervisor{dir: d}
	for _, r := range s.runtimes() {
		a, err := state.Read[shim.Agent](d, shim.AgentFile(r.ID))
		if err != nil {
			continue
		}
		row := api.RuntimeSummary{ID: r.ID, ShimPID: a.Shim.PID, PGID: a.PGID, StartedAt: a.StartedAt, Sessions: s.sessionsOf(r)}
		if a.Agent != nil {
			row.PID, row.StartTicks, row.BootID = a.Agent.PID, a.Agent.StartTicks, a.Agent.BootID
		}
		list = append(list, row)
	}
	return list
}

// stop has the supervisor leave, after all runtimes have ended if that is asked.
func (s *Supervisor) stop(ctx context.Context, l api.Leave) (any, error) {
	if l.Runtimes {
		if err := s.endAll(ctx); err != nil {
			return nil, err
		}
	}
	// The answer goes out first: Serve ends a connection only once its handlers have returned.
	time.AfterFunc(20*time.Millisecond, s.leave)
	return struct{}{}, nil
}
