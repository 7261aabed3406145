package record

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// View is an execution as it is now: the record, checked against what lives. It writes nothing and starts
// nothing, and never shows a stored "running" for what is dead. With an error from a file of its runtime, which
// leaves untold how it is, come its ids as they are on record.
func View(d *state.Dir, folder string) (api.Execution, error) {
	return moving(d, folder, func(folder string) (api.Execution, error) { return look(d, folder) })
}

func look(d *state.Dir, folder string) (api.Execution, error) {
	if IsArchived(folder) {
		t, err := state.Read[Tombstone](d, TombstoneFile(folder))
		if !errors.Is(err, fs.ErrNotExist) {
			return t.execution(), err
		}
	}
	st, err := state.Read[Status](d, StatusFile(folder))
	if errors.Is(err, fs.ErrNotExist) {
		spec, err := SpecOf(d, folder)
		return claimed(spec), err
	}
	if err != nil {
		return api.Execution{}, err
	}
	if session.Phase(st.Phase) == session.Ended {
		return renewed(d, folder, st)
	}
	return checked(d, st)
}

// claimed is the view of an order that no supervisor has taken up.
func claimed(spec Spec) api.Execution {
	return api.Execution{
		ID: spec.ID, Controller: spec.Controller, Session: spec.Payload.Session, Provider: spec.Payload.Provider, Cwd: spec.Payload.Cwd,
		Phase: string(session.Claimed), Attempt: spec.Desired.Attempt, Labels: spec.Labels, CreatedAt: spec.CreatedAt,
		Next: "pintle wait " + Quote(spec.ID),
	}
}

// slack is how much a file's time may lag behind the clock, generously.
const slack = time.Second

// renewed is the view of an ended attempt, unless a newer one was ordered. The spec is only read when it may
// have been changed after the end.
func renewed(d *state.Dir, folder string, st Status) (api.Execution, error) {
	info, err := os.Stat(d.Path(SpecFile(folder)))
	if err != nil || (st.EndedAt != nil && info.ModTime().Before(st.EndedAt.Add(-slack))) {
		return st.Execution, nil
	}
	spec, err := SpecOf(d, folder)
	if err != nil || spec.Desired.Attempt <= st.Attempt {
		return st.Execution, err
	}
	e := claimed(spec)
	e.Session, e.Workspace, e.Fence = st.Session, st.Workspace, st.Fence
	e.Attempts = append(slices.Clone(st.Attempts), Past(st))
	return e, nil
}

// Past is the entry that an ended attempt leaves in the list of attempts.
func Past(st Status) api.Attempt {
	code := 0
	if st.ExitCode != nil {
		code = *st.ExitCode
	}
	return api.Attempt{Attempt: st.Attempt, Outcome: st.Outcome, ExitCode: code, StartedAt: st.StartedAt, EndedAt: st.EndedAt}
}

// checked looks at the runtime of an execution that had not ended when it was recorded. Only what is not there
// means that there was none yet: of what cannot be read nobody knows what it says (case 18).
func checked(d *state.Dir, st Status) (api.Execution, error) {
	e := st.Execution
	if e.WaitingFor != nil && e.Next == "" {
		e.Next = Next(e.ID, e.WaitingFor)
	}
	if st.RuntimeID == "" {
		return e, nil
	}
	exit, exited := state.Read[shim.Exit](d, shim.ExitFile(st.RuntimeID))
	boot, err := proc.BootID()
	switch {
	case exited == nil && !d.Moved():
		return over(e, unsettled(e, exit)), nil // whether its shim is still there or not
	case !d.Moved() && !errors.Is(exited, fs.ErrNotExist):
		return e, exited
	case d.Moved() || (err == nil && st.BootID != boot):
		why := Cause("host_died", "the host that ran it is gone: a reboot, or a copied state directory")
		return over(e, Judge(session.Ending{HostDied: true, Began: true}, why, e.Cancel)), nil
	}
	unlock, err := shim.SeenDead(d, st.RuntimeID)
	switch {
	case errors.Is(err, state.ErrLocked) || errors.Is(err, fs.ErrNotExist):
		return e, nil // it lives, or is not there yet: as recorded
	case err != nil:
		return e, err
	}
	defer unlock() // until all is read, so that no shim begins in between
	return lost(d, st)
}

// lost is the view of an execution whose shim is dead, by our holding its lock.
func lost(d *state.Dir, st Status) (api.Execution, error) {
	exit, err := state.Read[shim.Exit](d, shim.ExitFile(st.RuntimeID))
	if err == nil {
		return over(st.Execution, unsettled(st.Execution, exit)), nil // it ended just now
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return st.Execution, err
	}
	agent, err := state.Read[shim.Agent](d, shim.AgentFile(st.RuntimeID))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return st.Execution, err
	case err != nil || agent.State == shim.Abandoned:
		return st.Execution, nil // nothing was started under it yet
	}
	v := JudgeLost(agent, st.Cancel)
	if agent.State != shim.Refused {
		v.Cause.Message = "its shim was killed; what it started may go on until somebody takes the end in"
	}
	return over(st.Execution, v), nil
}

// over is the view of an execution that is over although no supervisor has recorded it.
func over(e api.Execution, v Verdict) api.Execution {
	e.Phase, e.Outcome, e.ExitCode, e.Cause, e.Runtime = string(session.Ended), string(v.Outcome), &v.ExitCode, v.Cause, nil
	e.Permissions, e.WaitingFor, e.Next = nil, nil, "pintle wait "+Quote(e.ID)
	return e
}

// AsOf is the execution as attempt n left it, if that one has ended and is not the newest any more.
func AsOf(e api.Execution, n int) (api.Execution, bool) {
	for _, was := range e.Attempts {
		if was.Attempt != n {
			continue
		}
		e.Attempt, e.Phase, e.Outcome, e.ExitCode = n, string(session.Ended), was.Outcome, &was.ExitCode
		e.StartedAt, e.EndedAt = was.StartedAt, was.EndedAt
		e.Cause, e.Cancel, e.Runtime, e.Permissions, e.WaitingFor, e.Next = nil, nil, nil, nil, nil, ""
		return e, true
	}
	return e, false
}

// unsettled is the verdict on an end that nobody has taken in. A command's exit tells it; what an agent said of its turn is
// only known once its output was folded.
func unsettled(e api.Execution, exit shim.Exit) Verdict {
	if e.Provider == "command" || exit.Error != "" {
		return JudgeExit(exit, e.Cancel)
	}
	why := Cause("agent_exited", "the agent has left; how its turn ended is known once that was taken in")
	return Verdict{Outcome: session.Unknown, ExitCode: session.Unknown.Exit(), Cause: why}
}
