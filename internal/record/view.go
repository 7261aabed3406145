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
// nothing, and never shows a stored "running" for what is dead.
func View(d *state.Dir, folder string) (api.Execution, error) {
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
	return checked(d, st), nil
}

// claimed is the view of an order that no supervisor has taken up.
func claimed(spec Spec) api.Execution {
	return api.Execution{
		ID: spec.ID, Controller: spec.Controller, Provider: spec.Payload.Provider, Cwd: spec.Payload.Cwd,
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

// checked looks at the runtime of an execution that had not ended when it was recorded.
func checked(d *state.Dir, st Status) api.Execution {
	e := st.Execution
	if st.RuntimeID == "" {
		return e
	}
	boot, err := proc.BootID()
	if d.Moved() || (err == nil && st.BootID != boot) {
		return over(e, session.HostDied, "the host that ran it is gone (reboot, or a copied state directory)")
	}
	unlock, err := shim.Dead(d, st.RuntimeID)
	if err != nil {
		return e // it lives, or cannot be told: as recorded
	}
	defer unlock() // until all is read, so that no shim begins in between
	exit, err := state.Read[shim.Exit](d, shim.ExitFile(st.RuntimeID))
	if err == nil {
		return finished(e, exit)
	}
	agent, err := state.Read[shim.Agent](d, shim.AgentFile(st.RuntimeID))
	switch {
	case err != nil || agent.State == shim.Abandoned:
		return e // nothing was started under it yet
	case agent.Agent == nil:
		return over(e, session.Unknown, "its shim died while it was being started")
	}
	return over(e, session.AgentDied, "its shim was killed")
}

func finished(e api.Execution, exit shim.Exit) api.Execution {
	cancelled := e.Cancel != nil && e.Cancel.DispatchedAt != nil
	outcome := session.Judge(session.Ending{
		Began: true, Proven: true, Identified: true, Exit: exit.Code, Signal: exit.Signal,
		Refused: exit.Error != "", Cancelled: cancelled, Deadline: exit.Deadline,
	})
	return over(e, outcome, "it has ended and its result is not taken in yet")
}

// over is the view of an execution that is over although no supervisor has recorded it.
func over(e api.Execution, outcome session.Outcome, why string) api.Execution {
	code := outcome.Exit()
	e.Phase, e.Outcome, e.ExitCode, e.Runtime = string(session.Ended), string(outcome), &code, nil
	if e.Cause == nil {
		e.Cause = &api.Cause{Message: why}
	}
	e.Next = "pintle wait " + Quote(e.ID)
	return e
}
