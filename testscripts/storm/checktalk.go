package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// calm lets everything come to its end that clients have begun. They have all said goodbye.
func (r *round) calm(fault func(string, ...any)) {
	_ = os.WriteFile(filepath.Join(r.agents(), "shared", "go"), nil, 0o600)
	for n := range r.talk.made {
		_ = os.WriteFile(filepath.Join(r.agents(), fmt.Sprint(n+1), "go"), nil, 0o600)
	}
	none := int64(0)
	last := &visitor{r: r, name: "last", grace: &none}
	all := sync.WaitGroup{} // all at once: one waits for another
	for _, m := range r.talk.messages {
		if m.refused != "" {
			continue
		}
		all.Go(func() {
			if !last.ends(m) {
				r.hung(fmt.Sprintf("message %s (%q) of %s has not ended in %v", m.id, m.text, m.session, restLimit))
			}
		})
	}
	all.Wait()
	d := newDice(r.o.seed, r.n, 300)
	for _, was := range r.talk.done {
		if d.IntN(3) == 0 {
			last.doAgain(d, was)
		}
	}
	for _, id := range r.talk.sessions {
		last.rests(id, fault)
	}
	last.goodbye()
}

// restLimit is how long a message may take to come to its end when nobody disturbs it any more.
const restLimit = 90 * time.Second

// ends waits for a message's end, and leads out of what it waits for.
func (v *visitor) ends(m *message) bool {
	for limit := time.Now().Add(restLimit); time.Now().Before(limit); {
		answer, err := v.call(context.Background(), time.Second, api.MethodWait, api.Wait{ID: m.id})
		var e api.Execution
		if err == nil && json.Unmarshal(answer, &e) == nil && e.EndedAt != nil {
			return true
		}
		v.r.say("waiting for %s of %s: %v %+v", m.id, m.session, err, e.WaitingFor)
		switch {
		case err == nil && e.WaitingFor != nil && e.WaitingFor.Kind == "needs_approval":
			_, _ = v.call(context.Background(), callLimit, api.MethodAnswer, api.Answer{ID: m.id, Decision: "deny"})
		case err == nil && e.WaitingFor != nil && e.WaitingFor.Kind == "crash_looping":
			v.recover(m.session)
		case err == nil:
			sleep(context.Background(), 20*time.Millisecond)
		case strings.Contains(m.text, "steer"):
			_, _ = v.call(context.Background(), 10*time.Second, api.MethodInterrupt, api.Control{ID: m.id})
		}
	}
	return false
}

// rests waits until a session is nobody's.
func (v *visitor) rests(id string, fault func(string, ...any)) {
	var s api.Session
	var answer json.RawMessage
	var err error
	for limit := time.Now().Add(patience); time.Now().Before(limit); sleep(context.Background(), 20*time.Millisecond) {
		answer, err = v.call(context.Background(), callLimit, api.MethodSessGet, api.SessionTarget{Session: id})
		s = api.Session{}
		if err == nil && json.Unmarshal(answer, &s) == nil && len(s.Leases) == 0 && len(s.Queue) == 0 && s.Ownership.State == "free" {
			return
		}
	}
	fault("session %s does not come to rest: %v %s", id, err, answer)
}

// checkTalk looks at what has become of all that clients did.
func (r *round) checkTalk(d *state.Dir, c *counts, fault func(string, ...any)) {
	had := r.heard()
	for _, m := range r.talk.messages {
		c.messages++
		r.checkMessage(d, m, had[m.text], c, fault)
	}
	seen := map[string]bool{}
	for _, named := range r.talk.sessions {
		conv, err := record.FindConversation(d, named)
		id := conv.Session
		if err != nil {
			id = named
		}
		if !seen[id] {
			seen[id] = true
			c.sessions++
			r.checkSession(d, id, fault)
		}
	}
	c.repeats += r.talk.repeats
	r.checkClients(d, fault)
}

// heard counts what reached the agents, by its text.
func (r *round) heard() map[string]int {
	had := map[string]int{}
	for _, name := range []string{"prompts", "steers"} {
		files, _ := filepath.Glob(filepath.Join(r.agents(), "*", name))
		for _, file := range files {
			data, _ := os.ReadFile(file)
			for line := range strings.Lines(string(data)) {
				var text string
				_ = json.Unmarshal([]byte(line), &text)
				had[text]++
			}
		}
	}
	return had
}

// checkMessage: it came to the agent once at most, and what is told of it fits.
func (r *round) checkMessage(d *state.Dir, m *message, had int, c *counts, fault func(string, ...any)) {
	wrong := func(why string) {
		fault("message %s (%q, %s) of %s came to the agent %d times: %s", m.id, m.text, m.when, m.session, had, why)
	}
	if had > 1 {
		c.duplicates += had - 1
		wrong("once at most")
	}
	if m.refused != "" {
		if had > 0 {
			wrong("it was refused: " + string(m.refused))
		}
		return
	}
	st, err := record.StatusOf(d, record.FolderOf(m.id))
	if err != nil || st.EndedAt == nil || st.Delivery == nil {
		c.lost++
		wrong(fmt.Sprintf("no end is on record: %v %+v", err, st))
		return
	}
	told := fmt.Sprintf("%s, delivery %+v, %v", st.Outcome, *st.Delivery, st.Cause)
	switch state := st.Delivery.State; {
	case state == "accepted" && had == 0, st.Outcome == "completed" && had == 0 && m.when != "steer":
		c.lost++
		wrong(told)
	case state == "rejected" && had > 0, state != "accepted" && state != "rejected" && state != "unknown":
		wrong(told)
	}
}

// checkSession looks at a session's record and its journal.
func (r *round) checkSession(d *state.Dir, id string, fault func(string, ...any)) {
	sess, err := state.Read[record.Session](d, record.SessionFile(id))
	if err != nil {
		fault("session %s: %v", id, err)
		return
	}
	if len(sess.Queue) > 0 || len(sess.Leases) > 0 {
		fault("session %s has a queue %+v and leases %+v", id, sess.Queue, sess.Leases)
	}
	l := ledger{id: id, once: map[string]int{}, held: map[string]bool{}, fault: fault}
	for e, err := range events(d, id) {
		if err != nil {
			fault("journal of session %s: %v", id, err)
			return
		}
		l.take(e)
	}
	for client, held := range l.held {
		if held {
			fault("session %s: the lease of %s was never told to be given back", id, client)
		}
	}
	if ok, why := sess.Restart.MayStart(); !ok && l.exits < 3 && r.disk == "" {
		fault("session %s is parked after %d exits: %s", id, l.exits, why)
	}
}

// checkClients: no record of a client is left but of those that nobody can be any more.
func (r *round) checkClients(d *state.Dir, fault func(string, ...any)) {
	for _, name := range record.IDs(d, "clients") {
		rec, err := record.ReadClient(d, "clients/"+name+".json")
		if err != nil || !r.talk.stranded[rec.ID] || len(rec.Sessions) > 0 {
			fault("the client %q is left: %+v, %v", rec.ID, rec, err)
		}
	}
}

// onceEach are events that an execution has once at most.
var onceEach = []string{"message_stored", "message_confirmed", "turn_ended", "message_ended", "session_opened"}
