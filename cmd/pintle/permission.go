package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// requested reads what an agent asks for from its event. ruled says that rules decide on it, and nobody is to be asked.
func requested(e journal.Event) (p api.Permission, ruled bool, err error) {
	var data struct {
		Permission string
		ToolCall   struct{ ToolCallID, Title, Kind string }
		Reason     string
		Ruled      bool
	}
	if err = json.Unmarshal(e.Data, &data); err != nil {
		return p, false, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	call := data.ToolCall
	return api.Permission{
		ID: data.Permission, ToolCall: call.ToolCallID, Title: call.Title, Kind: call.Kind, Reason: data.Reason, AskedAt: e.Time,
	}, data.Ruled, nil
}

// resolved reads the answer that counts from its event.
func resolved(e journal.Event) (r api.Answered, err error) {
	if err = json.Unmarshal(e.Data, &r); err != nil {
		return r, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	r.Execution, r.At = e.Execution, e.Time
	return r, nil
}

// verdict says in a few words what became of what was asked for.
func verdict(a api.Answered) string {
	word := map[string]string{"allow": "allowed", "deny": "denied", "fail": "refused", "lapsed": "lapsed"}[a.Decision]
	word = cmp.Or(word, a.Decision)
	if a.By != "" && a.Decision != "lapsed" {
		word += " by " + a.By
	}
	if a.Reason != "" {
		word += ": " + clip(a.Reason)
	}
	return word
}

// asks says what an agent asks for in a line; what is very long is cut, and says so.
func asks(title, reason string) string {
	line := clip(title)
	if reason != "" {
		line += " (" + clip(reason) + ")"
	}
	return line
}

// clipped is how many characters of an agent's words fit in a question.
const clipped = 400

// onLine has a text on one line, and nothing of it folded: what is run behind a newline is another command. Who prints
// it mutes what else there is.
var onLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

func clip(s string) string {
	runes := []rune(onLine.Replace(s))
	if len(runes) <= clipped {
		return string(runes)
	}
	return fmt.Sprintf("%s… (%d more characters)", string(runes[:clipped]), len(runes)-clipped)
}

// user is who answers, for the record.
func (a *app) user() string {
	name := cmp.Or(a.getenv("USER"), a.getenv("LOGNAME"))
	return cmp.Or(name, fmt.Sprintf("uid %d", os.Getuid()))
}

func list(words []string) string { return strings.Join(words, ", ") }
