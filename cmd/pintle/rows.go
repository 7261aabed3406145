package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state/journal"
)

// rowText is a row of a history as lines: what was said whole, what was done in a line each.
func rowText(row record.Row) string {
	e := journal.Event{Seq: row.Seq, Time: row.Time, Execution: row.Execution, Turn: row.Turn, Type: row.Type, Data: row.Data}
	text := ""
	switch row.Type {
	case "user_message_chunk":
		said, _, _ := session.Heard(row.Data)
		text = quote(string(said))
	case "agent_message_chunk":
		said, _, _ := session.Heard(row.Data)
		text = string(said)
	default:
		text = done(e)
	}
	if row.Cut {
		text = strings.TrimSuffix(text, "\n") + " …"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// quote has what the agent was told stand out from what it says.
func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n> ") + "\n"
}

// done is what an event says of what was done, in a line; "" if that is nothing that one would want to see.
func done(e journal.Event) string {
	var data struct {
		Title, Status, Outcome, Message string
		Entries                         []struct{ Content, Status string }
		Cause                           json.RawMessage
	}
	_ = json.Unmarshal(e.Data, &data) // what is not there tells nothing
	switch e.Type {
	case "tool_call":
		return "* " + clip(data.Title) + failed(data.Status)
	case "plan":
		return planned(data.Entries)
	case "turn_ended":
		return "-- " + data.Outcome + because(data.Cause)
	case "agent_notice":
		return "-- " + oneLine(data.Message)
	case "output_lost":
		return "-- output was lost here"
	}
	return ""
}

func failed(status string) string {
	if status == "failed" {
		return " (failed)"
	}
	return ""
}

// because is the cause of an end, behind it.
func because(cause json.RawMessage) string {
	var c struct{ Message string }
	if json.Unmarshal(cause, &c) != nil || c.Message == "" {
		return ""
	}
	return ": " + oneLine(c.Message)
}

func planned(entries []struct{ Content, Status string }) string {
	marks := map[string]string{"completed": "x", "in_progress": "~"}
	var lines []string
	for _, e := range entries {
		mark := marks[e.Status]
		if mark == "" {
			mark = " "
		}
		lines = append(lines, fmt.Sprintf("[%s] %s", mark, clip(e.Content)))
	}
	return strings.Join(lines, "\n")
}
