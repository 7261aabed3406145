//go:build agents

package agents

import (
	"encoding/json"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// What every agent does is in the suite (conform_test.go). What follows is of Codex alone.

func (h *house) show(id string) (e api.Execution) {
	h.t.Helper()
	if r := h.pintle("", "show", "--json", id); json.Unmarshal([]byte(r.Out), &e) != nil {
		h.t.Fatalf("%+v", r)
	}
	return e
}

// The conversation that a run names is one that Codex's own resume takes.
func TestPintle_ConversationIsCodexs(t *testing.T) {
	h := newHouse(t, "gpt-5.5")
	if r := h.pintle("", "run", "--id", "k", "-a", "codex", "respond with exactly: hello"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	e := h.show("k")
	if a := h.launch(t); a.resume(e.Conversation).id != e.Conversation {
		t.Error("Codex does not know the conversation")
	}
}

// Causes beyond the suite's.
func TestPintle_Causes(t *testing.T) {
	h := newHouse(t, "gpt-5.5")
	for prompt, cause := range map[string]string{"http: 400": "", "fail: server_is_overloaded later": "capacity"} {
		r := h.pintle("", "run", "--id", prompt, "-a", "codex", prompt)
		if e := h.show(prompt); r.Code != 1 || e.Cause == nil || e.Cause.Code != cause || e.Cause.Message == "" {
			t.Errorf("%s: exit %d, %+v", prompt, r.Code, e.Cause)
		}
	}
}
