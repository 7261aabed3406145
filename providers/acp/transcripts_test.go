package acp

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// What each recorded run is an order of, and comes to.
var comesTo = map[string]struct {
	approve string
	outcome session.Outcome
	text    string // of the last message; "" is any
}{
	"text":        {"", session.Completed, "hello world"},
	"tool":        {"all", session.Completed, ""},
	"thought":     {"", session.Completed, "done"},
	"denied":      {"edits", session.Denied, ""},
	"failed":      {"", session.Failed, ""},
	"asked":       {"edits", session.Completed, ""},
	"interrupted": {"", session.Cancelled, ""},
	"resumed":     {"", session.Completed, "again"},
}

func TestTranscripts(t *testing.T) {
	all := spoken(t)
	for i := range agents {
		for run, want := range comesTo {
			output, ok := all[agents[i].name+"_"+run]
			if !ok && agents[i].program != "" {
				t.Errorf("there is no %s of %s", run, agents[i].title)
			}
			if !ok {
				continue
			}
			t.Run(agents[i].name+"_"+run, func(t *testing.T) {
				k := with(t, agents[i], providers.Order{Approve: want.approve, Conversation: conversation(run, output)})
				k.replays(run, output)
				if end := k.fold.About().End; end == nil || end.Outcome != want.outcome {
					t.Errorf("it ended as %+v", end)
				}
				if text := k.text(); want.text != "" && text != want.text {
					t.Errorf("it said %q", text)
				}
			})
		}
	}
}

var sessionID = regexp.MustCompile(`"sessionId":"([^"]+)"`)

// conversation is which one goes on.
func conversation(run string, output []byte) string {
	if run != "resumed" {
		return ""
	}
	return string(sessionID.FindSubmatch(output)[1])
}

// replays hears a recorded run, and does in it what was done then.
func (k *talk) replays(run string, output []byte) {
	k.t.Helper()
	for line := range bytes.Lines(output) {
		k.hears(strings.TrimSuffix(string(line), "\n"))
		decision := providers.Fail
		if run == "asked" {
			decision = providers.Allow
		}
		for _, p := range k.fold.About().Pending {
			k.made(k.fold.Answer(p.ID, decision))
		}
	}
}

// text is that of the last message.
func (k *talk) text() (all string) {
	for _, e := range k.events {
		var c chunk
		if e.Type == "agent_message_chunk" && json.Unmarshal(e.Data, &c) == nil && c.MessageID == k.fold.About().Message {
			all += c.Content.Text
		}
	}
	return all
}
