package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
)

// busy sees to a conversation that another process has (case 32). What is left of ours and has no run any more is ended,
// and then it can be tried again at once; of anybody else's it is said in the cause whose it is.
func (r *run) busy(v record.Verdict) (ended bool) {
	var others []string
	for _, p := range r.writers() {
		who, stale := r.whose(p)
		if stale {
			ended = true
			continue
		}
		others = append(others, who)
	}
	if len(others) > 0 {
		v.Cause.Message = strings.Join(others, ", ") + ": " + v.Cause.Message
		return false
	}
	return ended
}

// writers are the processes that have the conversation, by the agent's own lock.
func (r *run) writers() []proc.Identity {
	o, err := r.order()
	if err != nil || r.rt.provider.Writer == nil || o.Conversation == "" {
		return nil
	}
	found, err := proc.LockHolders(r.rt.provider.Writer(r.rt.env.Vars, o.Conversation))
	if err != nil {
		r.s.log.Printf("run %s: who has conversation %s: %v", r.name(), o.Conversation, err)
	}
	return found
}

// whose says to whom a process belongs. One of this state directory that no record knows is ended, by its token; so is one
// that is only kept.
func (r *run) whose(p proc.Identity) (who string, stale bool) {
	token, ours := proc.TokenOf(p, shim.TokenVariable)
	runtime, here := strings.CutPrefix(token, r.s.dir.HomeID()+".")
	switch {
	case p.Liveness() == proc.Dead:
		return "", true // ended with the one before
	case !ours:
		return fmt.Sprintf("process %d, which is not pintle's, has it", p.PID), false
	case !here:
		return fmt.Sprintf("process %d, of another state directory of pintle's, has it", p.PID), false
	}
	t, err := r.s.tenureOf(runtime, r.st.Session)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", len(r.s.sweep(token)) == 0
	case errors.Is(err, errApart):
		return fmt.Sprintf("process %d, which sessions share, has it", p.PID), false
	case err == nil && t.Idle != nil:
		return "", r.s.closeKeptOf(r.s.ctx, t.Folder) == nil
	}
	name := t.Folder
	if spec, err := record.SpecOf(r.s.dir, t.Folder); err == nil {
		name = spec.ID
	}
	return fmt.Sprintf("run %s has it (process %d)", record.Quote(name), p.PID), false
}
