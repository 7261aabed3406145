package acp

import (
	"encoding/json"
	"fmt"

	"github.com/pintle/pintle/providers/wire"
)

// codexError is an error of Codex's that its adapter passes on as it came.
type codexError struct {
	Message, AdditionalDetails string
	CodexErrorInfo             json.RawMessage
	WillRetry                  bool
}

// other is an update of which nothing is made but by what it has of Codex's.
func (f *fold) other(m message) {
	u := m.Params.Update
	status, e := u.Meta.Codex.ThreadStatus.Type, u.Meta.Codex.Error
	switch {
	case f.Prompt == "" || f.End != nil:
	case status == "active":
		f.Confirmed, f.Errored = true, false
	case status == "systemError" && !f.Errored: // why it is told behind this
		f.Errored, f.Said = true, ""
	case e != nil && e.WillRetry:
		f.retries(*e)
		return
	}
	f.moded(u)
	f.raw(u, whole(m.line))
}

// moded tells that the agent has left the mode that it was put into: it may do then what it was to ask for.
func (f *fold) moded(u update) {
	now, wished := u.CurrentModeID, f.wished("mode")
	for _, c := range u.ConfigOptions {
		if c.Category == "mode" {
			now = name(c.CurrentValue)
		}
	}
	if now != "" && wished != "" && now != wished {
		f.Notice(fmt.Sprintf("%s is in the mode %s now, and not in %s", f.agent.title, wire.Clip(now, wire.IDLimit), wished))
	}
}

// retries tells that the agent goes on after an error by itself, which is no sign of life: it may do so for ever.
func (f *fold) retries(e codexError) {
	message := e.Message
	if e.AdditionalDetails != "" {
		message += ": " + e.AdditionalDetails
	}
	f.Trouble, f.Retried = wire.Clip(message, wire.WordsLimit), codexCause(e.CodexErrorInfo)
	f.Tell("agent_notice", map[string]any{"message": f.Trouble, "cause": f.Retried, "willRetry": true})
}

// noticed tells what the agent wants to have seen.
func (f *fold) noticed(u update) {
	message := u.Title
	if u.Description != "" {
		message += ": " + u.Description
	}
	f.Notice(message)
}
