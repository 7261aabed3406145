package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// view shows what happens in a session at a terminal, briefly. What an agent says is the agent's: none of it speaks to the
// terminal.
type view struct {
	t      *attachment
	out    io.Writer
	talk   talk
	steers map[string]bool // executions that have no turn of their own
	asked  map[string]bool // what was asked already when one came
}

func newView(t *attachment) *view {
	return &view{t: t, out: t.a.stdout, talk: talk{spoken: true}, steers: map[string]bool{}, asked: map[string]bool{}}
}

// flush ends the line of what an agent said, before something else is shown.
func (v *view) flush() {
	if w, ok := v.out.(*whole); ok {
		w.end()
	}
}

// show shows an event.
func (v *view) show(e journal.Event) error {
	if e.Type == "agent_message_chunk" {
		said, _, err := session.Heard(e.Data)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if v.talk.turns(e) {
			v.flush()
		}
		_, err = io.WriteString(v.out, legible(string(said)))
		return err
	}
	if text := v.line(e); text != "" {
		v.flush()
		_, err := io.WriteString(v.out, legible(text)+"\n")
		v.flush()
		return err
	}
	return nil
}

// line is what an event is shown as; "" for most.
func (v *view) line(e journal.Event) string {
	switch e.Type {
	case "user_message_chunk":
		return v.told(e)
	case "message_stored":
		return v.stored(e)
	case "turn_ended":
		if v.steers[e.Execution] && session.Outcome(endOf(e)) == session.Completed {
			return "" // it is a part of another turn
		}
	case "permission_requested":
		p, ruled, err := requested(e)
		switch {
		case err == nil && ruled:
			return fmt.Sprintf("-- %s asks %s", v.t.talk.Provider, asks(p.Title, p.Reason))
		case err == nil && !v.asked[p.ID]:
			return v.question(p.ID, p.Title, p.Reason)
		}
	case "permission_resolved":
		r, err := resolved(e)
		if err == nil {
			return "-- " + verdict(r)
		}
	case "lease_changed":
		return v.leased(e)
	case "runtime_started":
		return "-- the agent's process was started"
	case "runtime_exited":
		return "-- the agent's process has ended"
	case "recovery_scheduled", "conversation_replaced":
		return "-- " + news(e)
	case "session_parked":
		return "-- parked: " + parked(e)
	}
	return done(e)
}

// question is what the agent asks for, and how it is answered.
func (v *view) question(id, title, reason string) string {
	v.asked[id] = true
	return fmt.Sprintf("-- %s asks %s: /allow %s, or /deny %s", v.t.talk.Provider, asks(title, reason), id, id)
}

// open is what nobody has answered when one comes: no row of the history tells of it.
func (v *view) open() (questions []string) {
	sess, err := state.Read[record.Session](v.t.d, record.SessionFile(v.t.talk.Session))
	if err != nil {
		return nil // it is the supervisor who complains of it
	}
	for _, turn := range sess.Queue {
		e, err := record.View(v.t.d, turn.Folder)
		if err != nil {
			continue
		}
		for _, p := range approvalsOf(e) {
			questions = append(questions, v.question(p.Permission, p.Title, p.Reason))
		}
	}
	return questions
}

// parked is why nothing starts the agent any more, and what does.
func parked(e journal.Event) string {
	var data struct{ Code, Message, Next string }
	_ = json.Unmarshal(e.Data, &data)
	return mute(data.Code + ": " + oneLine(data.Message) + ": " + data.Next)
}

func endOf(e journal.Event) string {
	var data struct{ Outcome string }
	_ = json.Unmarshal(e.Data, &data)
	return data.Outcome
}

// told is what the agent was told, unless it was typed here. What is put into a turn has the turn's execution, and its own
// one is its message.
func (v *view) told(e journal.Event) string {
	said, of, _ := session.Heard(e.Data)
	if _, own := v.t.own[cmp.Or(of, e.Execution)]; own {
		return ""
	}
	text := quote(string(said))
	return text[:len(text)-1]
}

// stored is that somebody else has sent a message.
func (v *view) stored(e journal.Event) string {
	var data struct{ When, Client string }
	_ = json.Unmarshal(e.Data, &data)
	v.steers[e.Execution] = data.When == "steer"
	if _, own := v.t.own[e.Execution]; own {
		return ""
	}
	return fmt.Sprintf("-- %s has sent a message (%s)", record.Quote(data.Client), data.When)
}

// leased is how others hold the session.
func (v *view) leased(e journal.Event) string {
	var change leaseChange
	if json.Unmarshal(e.Data, &change) != nil || change.Client == v.t.link.hello.Client {
		return ""
	}
	who := record.Quote(change.Client)
	switch {
	case change.Change == "given_back":
		return "-- " + who + " has left"
	case len(change.Evicted) > 0:
		return "-- " + who + " has taken the session over, " + change.Mode
	}
	return "-- " + who + " has come, " + change.Mode
}

// legible is what somebody else wrote, as it is shown above a line that is being typed.
func legible(s string) string { return mute(strings.ReplaceAll(s, "\t", "    ")) }
