package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// memory is what the journal has of one attempt.
type memory struct {
	text record.Tail
	// message is the id of the message that text is of; "" for a command, whose output is one.
	message   string
	asked     bool                    // what it was asked was told
	said      *record.Verdict         // the verdict, if one was told
	began     map[string]bool         // the runtimes that were about to start
	gone      map[string]bool         // those whose end was told
	given     giving                  // the newest of them, with its try
	used      providers.Usage         // of the newest try, as it was told last
	scheduled map[int]next            // by number, the tries that were decided on
	answered  map[string]api.Answered // by permission, what was answered
	// handedOver and confirmed are when the prompt of the newest try was.
	handedOver, confirmed *time.Time
	fated                 []string // messages that were put into the turn, and whose fate was told
	// dispatched are the actions of cancels whose first step was due.
	dispatched map[string]bool
}

// giving is a try that was given to a runtime.
type giving struct {
	runtime string
	try     int
}

// remember reads the journal for the run's attempt.
func (r *run) remember() (memory, error) {
	m := memory{began: map[string]bool{}, gone: map[string]bool{}, dispatched: map[string]bool{}, scheduled: map[int]next{}, answered: map[string]api.Answered{}}
	m.text.All = r.spoken()
	reader := journal.NewReader(r.s.dir.Path(record.JournalDir(r.st.Session)), r.st.Since)
	defer reader.Close()
	turn := fmt.Sprintf("t%d", r.st.Attempt)
	for {
		events, err := reader.Next()
		if err != nil || len(events) == 0 {
			return m, err
		}
		for _, e := range events {
			if e.Turn != turn || e.Execution != r.st.ID {
				continue
			}
			if err := m.take(e); err != nil {
				return m, fmt.Errorf("event %d of session %s: %w", e.Seq, e.Session, err)
			}
		}
	}
}

func (m *memory) take(e journal.Event) error {
	switch e.Type {
	case "agent_message_chunk":
		return m.hear(e.Data)
	case "turn_started", "session_opening":
		m.message, m.text, m.used = "", record.Tail{All: m.text.All}, providers.Usage{} // another try says it anew
		m.handedOver, m.confirmed = nil, nil
		var data struct{ Try int }
		err := json.Unmarshal(e.Data, &data)
		m.given = giving{try: data.Try}
		return err
	case "user_message_chunk":
		m.asked = true
	case "message_handed_over":
		m.handedOver = &e.Time
	case "message_confirmed":
		m.confirmed = &e.Time
	case steered:
		var f fate
		err := json.Unmarshal(e.Data, &f)
		m.fated = append(m.fated, f.Message)
		return err
	case "recovery_scheduled":
		var n next
		err := json.Unmarshal(e.Data, &n)
		m.scheduled[n.Try] = n
		return err
	case "usage_update":
		return json.Unmarshal(e.Data, &m.used)
	case "permission_resolved":
		a := api.Answered{Execution: e.Execution, At: e.Time}
		err := json.Unmarshal(e.Data, &a)
		m.answered[a.Permission] = a
		return err
	case "runtime_started", "runtime_reused", "runtime_joined":
		var data struct{ Runtime string }
		err := json.Unmarshal(e.Data, &data)
		m.began[data.Runtime], m.given.runtime = true, data.Runtime
		return err
	case "runtime_exited", "runtime_left":
		var data struct{ Runtime string }
		err := json.Unmarshal(e.Data, &data)
		m.gone[data.Runtime] = true
		return err
	case "cancel_dispatched":
		var data struct{ Action string }
		err := json.Unmarshal(e.Data, &data)
		m.dispatched[data.Action] = true
		return err
	case "turn_ended", "session_opened", "message_ended":
		m.said = &record.Verdict{}
		return json.Unmarshal(e.Data, m.said)
	}
	return nil
}

// hear adds to the text; an agent's is its last message.
func (m *memory) hear(data []byte) error {
	b, message, err := session.Heard(data)
	if err == nil && message != m.message {
		m.message = message
		m.text.Reset()
	}
	m.text.Add(b)
	return err
}

// recall is what is known of this attempt's text, and its verdict if the journal has one.
func (rt *runtime) recall() (text []byte, said *record.Verdict, err error) {
	if !rt.recovered() {
		return rt.text.Bytes(), nil, nil
	}
	m, err := rt.r.remember()
	rt.used, rt.gone = m.used, rt.gone || m.gone[rt.at.Runtime]
	return m.text.Bytes(), m.said, err
}

// recovered reports whether another supervisor, or an earlier step of this one, may have written to the
// journal for this attempt.
func (rt *runtime) recovered() bool { return rt.shimPID == 0 }

// fenced looks into the journal before anything is begun, in case the records say less than was told: an
// attempt whose verdict is there is never run again by any path (B4), and neither is a runtime that was about
// to start and whose directory is gone.
func (r *run) fenced() (fenced, ended bool, err error) {
	if r.fresh {
		return false, false, nil // its id was made a moment ago, and no event of it is before that
	}
	m, err := r.remember()
	r.told = r.told || m.asked
	switch {
	case err != nil:
		return true, false, err
	case m.said == nil && !m.began[r.st.RuntimeID]:
		return false, false, nil
	case m.said == nil && r.anothers():
		return false, false, nil // it was about to be given one that is kept still
	}
	ended, err = r.settleUnstarted(session.Ending{Began: true}, cause("protocol", "its runtime's directory is gone: it may have run"))
	return true, ended, err
}
