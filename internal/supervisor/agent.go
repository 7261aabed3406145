package supervisor

import (
	"cmp"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
)

// about is what an agent's fold knows; nothing for a command.
func (rt *runtime) about() providers.About {
	if rt == nil {
		return providers.About{}
	}
	if a, ok := rt.fold.(providers.Agent); ok {
		return a.About()
	}
	return providers.About{}
}

// begin gives an agent its order. The fold that has it is on disk before the agent is started: all that follows is made
// of that and of what the agent says.
func (rt *runtime) begin() error {
	a, ok := rt.fold.(providers.Agent)
	if !ok {
		return nil
	}
	o, err := rt.r.order()
	if err != nil {
		return err
	}
	t := tenure{Since: time.Now().UTC()}
	if rt.tenure != nil {
		t = *rt.tenure
	}
	t.Folder, t.Attempt, t.Runs, t.Idle = rt.r.folder, rt.r.st.Attempt, t.Runs+1, nil
	t.Secrets = rt.r.spec.Environment.Secrets
	if s := rt.seat(); s != nil {
		s.belong(rt.r.folder)
	}
	if rt.shared {
		t.Fence, o.Shared, o.Joins = rt.r.st.Fence, true, t.Joined && t.Runs == 1
	}
	if o.Lost = rt.r.lost(o.Conversation, rt.env.Vars); o.Lost && rt.r.st.Resume != "" {
		o.Prompt = rt.r.spec.Payload.Prompt // there is nothing to go on with: the turn died before the agent had kept its prompt
	}
	rt.tenure, rt.order = &t, o
	rt.outbox = append(rt.outbox, a.Begin(o)...)
	return rt.save()
}

// flush has the next frame written, if none is being written. Each is written once, by its operation, over any number
// of supervisors.
func (rt *runtime) flush() {
	if rt.control == nil || rt.writing || len(rt.outbox) == 0 {
		return
	}
	rt.writing = true
	_ = rt.control.Write(rt.outbox[0].Op, rt.at.Out, rt.outbox[0].Data) // a broken connection shows in Events
}

// written takes in that a frame was. What the agent does not read any more is not for it.
func (rt *runtime) written(w *shim.Written) {
	if !rt.writing || len(rt.outbox) == 0 || w.Op != rt.outbox[0].Op {
		return
	}
	rt.writing, rt.outbox = false, rt.outbox[1:]
	if w.Error != "" {
		rt.outbox = nil
	}
	rt.flush()
}

// interrupt asks the agent to end its turn.
func (rt *runtime) interrupt() error { return rt.act(providers.Agent.Interrupt) }

// act has the fold do what is no answer to the agent's own words: no replay of those would bring it back, so its state is
// on disk before the agent hears of it.
func (rt *runtime) act(do func(providers.Agent) []providers.Frame) error {
	a, ok := rt.fold.(providers.Agent)
	if !ok {
		return nil
	}
	rt.outbox = append(rt.outbox, do(a)...)
	if err := rt.save(); err != nil {
		return err
	}
	rt.flush()
	return nil
}

// learn puts what the fold has learned of the conversation on record, once it stands.
func (r *run) learn() error {
	about := r.rt.about()
	if about.Confirmed && r.spoken() {
		if err := r.confirmed(); err != nil {
			return err
		}
	}
	if about.Conversation == r.st.Conversation && about.Model == r.st.Model {
		return nil
	}
	r.st.Conversation, r.st.Model, r.st.AgentVersion = about.Conversation, about.Model, r.rt.version()
	if r.st.Runtime == nil {
		return nil // it goes with the start
	}
	return r.save(session.Phase(r.st.Phase))
}

// judgeAgent is the verdict on an agent's end: what it said of its turn, unless somebody wanted it to end. An agent that
// leaves before it said so has died; one that never came to a conversation could not be used (exit 10).
func (r *run) judgeAgent(exit shim.Exit, about providers.About) record.Verdict {
	end := about.End
	cancelled := r.st.Cancel != nil && r.st.Cancel.DispatchedAt != nil
	switch {
	case exit.Busy:
		v := record.JudgeExit(exit, nil)
		v.Cause, v.ExitCode = record.Cause("busy", exit.Error), api.CodeOwned.Exit()
		return v
	case exit.Error != "":
		return record.JudgeExit(exit, nil)
	case cancelled && (end == nil || end.Outcome == session.Cancelled || r.rt.broken != nil):
		exit.Signalled = true // by a frame, or by the end of its input
		v := record.JudgeExit(exit, r.st.Cancel)
		if r.st.Cancel.Action == "start" {
			v.ExitCode = api.CodeNoAgent.Exit()
		}
		return v
	case end == nil && exit.Deadline:
		return record.JudgeExit(exit, nil)
	case end == nil:
		return r.deserted(exit, about)
	}
	v := record.Verdict{Outcome: end.Outcome, ExitCode: end.Outcome.Exit()}
	if end.Code != "" || end.Message != "" {
		v.Cause = record.Cause(end.Code, end.Message)
	}
	switch end.Code {
	case "auth":
		v.ExitCode = api.CodeNoAgent.Exit()
	case "busy":
		v.ExitCode = api.CodeOwned.Exit()
	}
	return v
}

// deserted is the verdict on an agent that left in the middle.
func (r *run) deserted(exit shim.Exit, about providers.About) record.Verdict {
	why := record.JudgeExit(exit, nil).Cause
	message, code := cmp.Or(why.Message, "exit status 0")+" in the middle of its turn", "agent_exited"
	if !about.Ready {
		message = cmp.Or(why.Message, "exit status 0") + " before it was ready"
	}
	if s := r.rt.seat(); s != nil && s.endedByOther() {
		message = "a sibling's stop ended the process that the sessions share: " + message
	}
	if log := strings.TrimSpace(about.Log); log != "" {
		message += ": " + log
	}
	outcome, exitCode := session.AgentDied, session.AgentDied.Exit()
	switch {
	case !about.Ready:
		outcome, exitCode = session.Failed, api.CodeNoAgent.Exit()
		if exit.Signal == "" && !r.rt.tenure.joined() {
			code = "config" // it left by itself: that does not pass
		}
	case !about.Confirmed && r.rt.handedOver():
		outcome, exitCode = session.Unknown, session.Unknown.Exit() // it may have the prompt (B2)
		message += ", before it named the turn: it may have begun it"
	}
	return record.Verdict{Outcome: outcome, ExitCode: exitCode, Cause: record.Cause(code, message)}
}
