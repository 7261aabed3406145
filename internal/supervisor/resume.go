package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// adoptLimit is how long a shim may take to answer. One that has its lock and does not answer is neither
// alive for us nor dead: uncertain (R8).
const adoptLimit = 5 * time.Second

// resume goes on with an attempt whose runtime has its intent on record. The shim's lock decides between
// the living and the dead.
func (r *run) resume(ctx context.Context) (bool, error) {
	unlock, err := r.dead()
	switch {
	case errors.Is(err, state.ErrLocked):
		return r.adopt(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return r.settleGone(session.Ending{}, "its runtime's directory is gone")
	case err != nil:
		return false, err
	}
	// From here on no shim can begin under this runtime: the lock is ours until it is settled.
	defer unlock()
	return r.settleDead()
}

// adopt takes a living shim over and stays with it.
func (r *run) adopt(ctx context.Context) (bool, error) {
	exit, err := r.takeOver(ctx)
	var silent *silence
	switch {
	case errors.As(err, &silent):
		return false, r.uncertain(ctx, err)
	case err != nil:
		return false, err
	}
	r.s.log.Printf("run %s: adopted runtime %s", r.name(), r.st.RuntimeID)
	err = r.recallAnswers()
	if err == nil {
		err = r.regain()
	}
	if err != nil {
		r.rt.release()
		r.rt = nil
		return false, err
	}
	if exit != nil {
		return r.settleExit(*exit)
	}
	r.rt.flush()
	return r.attend(ctx)
}

// silence is why a shim that lives could not be taken over: it does not answer.
type silence struct{ why error }

func (s *silence) Error() string { return s.why.Error() }

func (s *silence) Unwrap() error { return s.why }

// takeOver makes this supervisor the controller of the runtime's shim, and takes in what that has. exit is the agent's end,
// if it has ended.
func (r *run) takeOver(ctx context.Context) (exit *shim.Exit, err error) {
	rec, err := state.Read[record.Runtime](r.s.dir, record.RuntimeFile(r.st.RuntimeID))
	if err != nil {
		return nil, err
	}
	control, hello, err := r.hold(ctx, rec)
	if err != nil {
		return nil, &silence{err}
	}
	env, err := control.Environment(time.After(adoptLimit))
	if err != nil {
		control.Close()
		return nil, &silence{err}
	}
	rt, err := r.openRuntime(environ.Restore(env, r.spec.Environment.Secrets))
	if err != nil {
		control.Close()
		return nil, err
	}
	rt.spool(rec.Spool)
	rt.control, r.rt = control, rt
	if !r.kept {
		_ = control.Deadline(r.spec.Desired.Deadline) // the process may have served another run before
	}
	rt.reopen(rec)
	if err := r.catchUp(hello); err != nil {
		rt.release()
		r.rt = nil
		return nil, err
	}
	return hello.Exit, nil
}

// recallAnswers brings back which answers count: an earlier supervisor may have died before the agent heard one.
func (r *run) recallAnswers() error {
	if !r.spoken() {
		return nil
	}
	m, err := r.remember()
	r.recallDelivery(m)
	answers := slices.SortedFunc(maps.Values(m.answered), func(a, b api.Answered) int { return a.At.Compare(b.At) })
	for _, a := range answers {
		if !slices.ContainsFunc(r.st.Resolved, func(b api.Answered) bool { return a.Permission == b.Permission }) {
			r.resolved(a)
		}
		r.rt.resolved[a.Permission] = a
	}
	return err
}

// greet dials the shim's socket, which it makes soon after it has its lock.
func (r *run) greet(ctx context.Context, socket string) (*shim.Control, error) {
	until := time.Now().Add(adoptLimit)
	for {
		conn, err := rpc.Dial(ctx, socket)
		if err == nil {
			_ = conn.SetDeadline(until) // a frozen shim accepts and says nothing
			control, err := shim.Adopt(conn, r.s.self.Epoch)
			if err == nil {
				_ = conn.SetDeadline(time.Time{})
			}
			return control, err
		}
		if time.Now().After(until) || ctx.Err() != nil || r.shimGone() {
			return nil, err
		}
		r.pause(ctx, 5*time.Millisecond)
	}
}

func (r *run) shimGone() bool {
	unlock, err := shim.Dead(r.s.dir, r.st.RuntimeID)
	if err != nil {
		return false
	}
	unlock()
	return true
}

// catchUp takes in what the shim's hello says.
func (r *run) catchUp(hello *shim.Event) error {
	if hello.Started != nil {
		if err := r.started(hello.Started); err != nil {
			return err
		}
	}
	if err := r.rt.take(providers.Stdout, hello.Out, false); err != nil {
		return err
	}
	return r.rt.take(providers.Stderr, hello.Err, false)
}

// uncertain waits for a shim that lives and does not answer, until it does, dies, or the user says that it
// is dead. Nothing else ends it: an owner counts as dead only on proof (R8). A stop cannot be told to it, so that
// ends the shim itself.
func (r *run) uncertain(ctx context.Context, why error) error {
	if r.shimGone() || ctx.Err() != nil {
		return nil
	}
	r.s.log.Printf("run %s: runtime %s is uncertain: %v", r.name(), r.st.RuntimeID, why)
	if want := r.unwanted(); want != nil {
		now := time.Now().UTC()
		want.DispatchedAt, r.st.Cancel = &now, want
		if err := r.save(session.Phase(r.st.Phase)); err != nil {
			return err
		}
		return r.endShim(ctx)
	}
	if r.spec.Desired.AssertDead == r.st.RuntimeID {
		return r.endShim(ctx)
	}
	r.wait(&api.WaitingFor{Kind: "uncertain", Detail: "its shim lives and does not answer: " + why.Error()})
	r.pause(ctx, adoptLimit)
	return nil
}

// endShim ends a shim that the user asserted to be dead, or that cannot be told to stop. The sweep after its death takes what is below it.
func (r *run) endShim(ctx context.Context) error {
	r.s.forcing(r.st.RuntimeID)
	return r.s.endShim(ctx, r.st.RuntimeID)
}

// settleDead settles a runtime whose shim is proven dead: its lock is held by us.
func (r *run) settleDead() (bool, error) {
	exit, err := state.Read[shim.Exit](r.s.dir, shim.ExitFile(r.st.RuntimeID))
	if err == nil {
		return r.settleRecorded(exit)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	agent, err := state.Read[shim.Agent](r.s.dir, shim.AgentFile(r.st.RuntimeID))
	switch {
	case errors.Is(err, fs.ErrNotExist) || (err == nil && agent.State == shim.Abandoned):
		return r.neverStarted()
	case err != nil:
		return false, err
	}
	var left []proc.Identity
	if agent.State != shim.Refused {
		left = r.s.sweep(r.token(), agent.Pipes...)
	}
	return r.settleLost(record.JudgeLost(agent, r.st.Cancel), left)
}

// neverStarted is for a runtime under which nothing was begun: another one begins in its place.
func (r *run) neverStarted() (bool, error) {
	if r.orphaned {
		r.orphaned = false
		return r.failLaunch(errors.New("the shim ended before it had started anything (see supervisor.log)"))
	}
	return false, r.again()
}
