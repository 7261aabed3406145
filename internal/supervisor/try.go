package supervisor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// retryable are the causes that may be gone the next time (B1).
var retryable = []string{"transient", "capacity", "transport", "agent_exited", "shim_exited"}

// another is the next try that follows from how this one ended, nil if none does (B2). What has begun nothing is tried
// from the beginning, a few times; what had begun goes on in its conversation if that was asked for, and only if the
// agent had named the turn: else nobody knows whether it has the prompt.
//
// It completes the verdict's cause.
func (r *run) another(v record.Verdict) *next {
	about, c := r.rt.about(), v.Cause
	if !r.spoken() || r.wanted() || r.opens() || c == nil || v.Outcome == session.Completed {
		return nil
	}
	own := c.Code == "busy" && r.busy(v)
	if !own && !slices.Contains(retryable, c.Code) {
		return nil
	}
	n := &next{Try: r.st.Try + 1, Resume: r.st.Resume, At: time.Now().Add(time.Duration(r.s.o.Config.Recovery.Delay)).UTC()}
	used, most := r.st.Try-r.st.Retried, r.s.o.Config.Recovery.Tries
	if begun := r.rt.handedOver() && (about.End == nil || about.Begun); begun {
		if !about.Confirmed {
			return nil
		}
		n.Resume, n.Retried, used, most = about.Conversation, 1, r.st.Retried, r.spec.Limits.Retries
	}
	if own {
		n.At = time.Now().UTC()
	}
	c.Try, c.Retryable, c.Disposition = r.st.Try, used < most, "exhausted"
	if used >= most {
		if most == 0 {
			c.Disposition, c.Retryable = "", true // with --retries it would be
		}
		return nil
	}
	c.Disposition, c.NextTryAt = "retryable", &n.At
	return n
}

// next is a try that was decided on. It is in the journal before anything follows from it.
type next struct {
	Try     int        `json:"try"`
	At      time.Time  `json:"at"`
	Resume  string     `json:"resume,omitempty"` // the conversation whose turn goes on; "" for a try from the beginning
	Retried int        `json:"-"`
	Cause   *api.Cause `json:"cause,omitempty"`
}

// wanted reports whether somebody has this attempt end.
func (r *run) wanted() bool {
	return r.st.Cancel != nil || r.cancelled() != nil || r.s.isStopping()
}

// handedOver reports whether the agent may have the prompt: its frame is in the shim's record, which is written first.
// Where that is gone by now, the end was being taken in.
func (rt *runtime) handedOver() bool {
	op := rt.about().Prompt
	if op == "" {
		return false
	}
	inputs, err := shim.ReadInputs(rt.r.s.dir.Path(shim.StdinFile(rt.at.Runtime)))
	if err != nil || inputs == nil {
		return true
	}
	return slices.ContainsFunc(inputs, func(in shim.Input) bool { return in.Op == op && in.Error == "" })
}

// tryAgain ends a try, and has the next one on record. Its time stands, whoever dies meanwhile.
func (r *run) tryAgain(v record.Verdict, n *next, left []proc.Identity) error {
	m, err := r.remember()
	if err != nil {
		return err
	}
	if was, ok := m.scheduled[n.Try]; ok {
		n.At = was.At // it was told already
		v.Cause.NextTryAt = &n.At
	} else if err := r.schedule(v, n, left); err != nil {
		return err
	}
	crash.At("supervisor.scheduled")
	about, old := r.rt.about(), r.st.RuntimeID
	r.st.Spent = spend(r.st.Spent, about.Usage)
	r.st.Try, r.st.Resume, r.st.Retried, r.st.Cause = n.Try, n.Resume, r.st.Retried+n.Retried, v.Cause
	r.st.RuntimeID, r.st.Runtime, r.st.StartedAt, r.st.Permissions = newID("x"), nil, nil, nil
	r.st.WaitingFor = &api.WaitingFor{Kind: "retry", Until: v.Cause.NextTryAt}
	if err := r.save(session.Waiting); err != nil {
		return err
	}
	if n.Resume == "" {
		r.anew()
	}
	if err := r.noteExit(about); err != nil {
		return err
	}
	crash.At("supervisor.another")
	return r.quit(old)
}

// noteExit has the session's record know that a process has exited in whose place the run itself has another one.
func (r *run) noteExit(about providers.About) error {
	e, now := r.s.endingOf(r.rt.at.Runtime, true, ""), time.Now().UTC()
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		price(s, about)
		e.note(s, false, now)
		return nil
	})
}

func (r *run) schedule(v record.Verdict, n *next, left []proc.Identity) error {
	events := append(r.lapsed("the agent died"), r.exited(left))
	return r.rt.note(true, append(events, event("recovery_scheduled", map[string]any{
		"try": n.Try, "at": n.At, "resume": n.Resume, "cause": v.Cause,
	}))...)
}

// due waits for the time of the next try, or until somebody wants an end.
func (r *run) due(ctx context.Context) bool {
	c := r.st.Cause
	if c == nil || c.NextTryAt == nil || !time.Now().Before(*c.NextTryAt) {
		return true
	}
	r.wait(&api.WaitingFor{Kind: "retry", Until: c.NextTryAt})
	defer r.wait(nil)
	for ctx.Err() == nil && time.Now().Before(*c.NextTryAt) && r.left() > 0 {
		r.pause(ctx, min(time.Until(*c.NextTryAt), r.left()))
		if spec, err := record.SpecOf(r.s.dir, r.folder); err == nil {
			r.spec = spec
		}
		if r.wanted() {
			break
		}
	}
	return false // the records are looked at anew
}

func spend(a api.Usage, b providers.Usage) api.Usage {
	return api.Usage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens, CachedTokens: a.CachedTokens + b.CachedTokens,
		USD: dollars(a.USD, b.USD),
	}
}

// dollars is what two tries have cost, as far as it is known: of one that told nothing, nothing is.
func dollars(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// exited is the event of a process's end.
func (r *run) exited(left []proc.Identity, more ...string) journal.Event {
	data := map[string]any{"runtime": r.st.RuntimeID}
	for pair := range slices.Chunk(more, 2) {
		if data[pair[0]] = pair[1]; pair[1] == "" {
			delete(data, pair[0])
		}
	}
	if len(left) > 0 {
		data["left"] = left
	}
	if r.rt.left {
		return event("runtime_left", data)
	}
	return event("runtime_exited", data)
}
