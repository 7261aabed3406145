package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// tell says on standard error, with -v, how the run moves. Without -v nothing is told, on a terminal either,
// but that a next try is waited for: standard error is the command's, and whoever gave the order knows what runs.
func (f *follower) tell(format string, args ...any) {
	if f.v.Verbose {
		f.breakLine()
		f.a.say("%s: %s", f.c.Spec.ID, fmt.Sprintf(format, args...))
	}
}

// taken says what became of the order.
func (f *follower) taken() {
	word := "claimed"
	switch {
	case f.c.Verdict == session.Replay:
		word = "ended before"
	case !f.creator():
		word = "joined"
	}
	f.tell("%s, attempt %d", word, f.c.Spec.Desired.Attempt)
}

// watchEvery is how often -v looks for what the journal does not say: that the command runs, and for what the
// supervisor waits.
const watchEvery = 100 * time.Millisecond

// watch gives a line for each stage at which the run is seen, until the context ends; without -v none, ever.
func (f *follower) watch(ctx context.Context) <-chan string {
	if !f.v.Verbose {
		return nil
	}
	lines := make(chan string)
	go func() {
		last := ""
		for ctx.Err() == nil {
			if line := f.stage(ctx); line != "" && line != last {
				select {
				case lines <- line:
					last = line
				case <-ctx.Done():
				}
			}
			pause(ctx, watchEvery)
		}
	}()
	return lines
}

// stage is where the attempt is now, as its supervisor knows it; "" if that tells nothing.
func (f *follower) stage(ctx context.Context) string {
	e, err := sight(ctx, f.d, f.c.Folder, f.c.Spec.ID)
	switch {
	case err != nil || e.Attempt != f.c.Spec.Desired.Attempt:
		return ""
	case e.WaitingFor != nil && slices.Contains([]string{"needs_approval", "retry"}, e.WaitingFor.Kind) && f.spokenTo():
		return "" // its events tell it
	case session.Phase(e.Phase) == session.Running && e.Runtime != nil:
		return fmt.Sprintf("running, pid %d", e.Runtime.PID)
	case e.WaitingFor != nil:
		return "waiting: " + reason(e)
	}
	return ""
}

// sight asks the supervisor, or looks at the record if none answers. It starts none: await does.
func sight(ctx context.Context, d *state.Dir, folder, id string) (api.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	c, _, err := dial(ctx, d)
	if err != nil {
		return record.View(d, folder)
	}
	defer c.Close()
	var e api.Execution
	err = c.Call(ctx, api.MethodGet, api.Target{ID: id}, &e)
	return e, err
}

// moved tells of an event, and has what the agent asks for put to whoever sits there.
func (f *follower) moved(e journal.Event) error {
	switch e.Type {
	case "permission_requested":
		p, ruled, err := requested(e)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s asks %s", f.c.Spec.Payload.Provider, asks(p.Title, p.Reason))
		if ruled {
			f.tell("%s", line)
			break
		}
		f.tell("waiting: %s", line)
		f.ask.add(p)
	case "permission_resolved":
		r, err := resolved(e)
		if err != nil {
			return err
		}
		f.tell("%s", verdict(r))
		f.ask.settle(r)
	}
	line := news(e)
	switch {
	case line == "":
	case e.Type == "recovery_scheduled" && f.watched():
		f.breakLine()
		f.a.say("%s: %s", f.c.Spec.ID, line)
	default:
		f.tell("%s", line)
	}
	return nil
}

// watched reports whether somebody at a terminal would wonder why for long nothing comes.
func (f *follower) watched() bool { return !f.v.Quiet && !f.v.JSON && terminal(f.a.stderr) }

// news is what an event says of how the run moves; "" if that is nothing.
func news(e journal.Event) string {
	if e.Type == "agent_message_chunk" { // of which there are thousands
		return ""
	}
	var data struct {
		Message, Why string
		At           time.Time
		Cause        struct{ Message string }
	}
	_ = json.Unmarshal(e.Data, &data) // what is not there tells nothing
	switch e.Type {
	case "turn_started":
		return "starting"
	case "runtime_reused":
		return "in the process that was kept"
	case "recovery_scheduled":
		return "waiting: tries again at " + data.At.Local().Format(time.DateTime) + ": " + oneLine(data.Cause.Message)
	case "conversation_replaced":
		return "in a new conversation: " + oneLine(data.Why)
	case "agent_notice":
		return oneLine(data.Message)
	}
	return ""
}

// reason says in a few words for what a run waits.
func reason(e api.Execution) string {
	w := *e.WaitingFor
	switch {
	case len(e.Permissions) > 0:
		var all []string
		for _, p := range e.Permissions {
			all = append(all, asks(p.Title, p.Reason))
		}
		return e.Provider + " asks " + strings.Join(all, ", and ")
	case w.Kind == "session" && len(w.Names) == 1:
		return "behind " + w.Names[0]
	case w.Kind == "limit":
		return w.Detail + " (limits.running)"
	}
	line := w.Kind
	if len(w.Names) > 0 {
		line += fmt.Sprintf(" %v", w.Names)
	}
	if w.Until != nil {
		line += " at " + w.Until.Local().Format(time.DateTime)
	}
	if w.Detail != "" {
		line += ": " + w.Detail
	}
	return strings.TrimSpace(line)
}
