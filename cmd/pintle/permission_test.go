package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

func TestRequestedAndResolved(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	p, ruled, err := requested(journal.Event{Time: at, Data: json.RawMessage(
		`{"permission":"p-1","toolCall":{"toolCallId":"c1","title":"to run ls","kind":"execute"},"reason":"why","options":["allow"]}`)})
	want := api.Permission{ID: "p-1", ToolCall: "c1", Title: "to run ls", Kind: "execute", Reason: "why", AskedAt: at}
	if diff := cmp.Diff(want, p); err != nil || ruled || diff != "" {
		t.Error(err, ruled, diff)
	}
	r, err := resolved(journal.Event{Time: at, Execution: "k", Data: json.RawMessage(`{"permission":"p-1","decision":"deny","by":"ann"}`)})
	if diff := cmp.Diff(api.Answered{Permission: "p-1", Execution: "k", Decision: "deny", By: "ann", At: at}, r); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// What is too long for a question says so: the end of a command may be the part that matters.
func TestAsks(t *testing.T) {
	for want, got := range map[string]string{
		"to run ls": asks("to run ls", ""),
		`to run a\nb\t\r  c ` + "(it \x1b[2J\\n must)":                       asks("to run a\nb\t\r  c", "it \x1b[2J\n must"), // whoever prints it mutes it
		"to run " + strings.Repeat("ü", clipped-7) + "… (3 more characters)": asks("to run "+strings.Repeat("ü", clipped-4), ""),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for want, given := range map[string][2]string{
		"allowed by ann": {"allow", "ann"}, "denied": {"deny", ""}, "refused by unattended": {"fail", "unattended"},
		"lapsed": {"lapsed", "supervisor"}, "other by ann": {"other", "ann"},
	} {
		if got := verdict(api.Answered{Decision: given[0], By: given[1]}); got != want {
			t.Errorf("%v: %q, want %q", given, got, want)
		}
	}
	a := api.Answered{Decision: "deny", By: "rules.toml:2", Reason: "I do that myself"}
	if got, want := verdict(a), "denied by rules.toml:2: I do that myself"; got != want {
		t.Errorf("with a reason: %q, want %q", got, want)
	}
}

func TestPermissionID(t *testing.T) {
	for id, want := range map[string]bool{
		"p-0123": true, "p-0123456789abcdef": true, "p-012": false, "p-0123456789abcdef0": false, "p-012g": false, "r-0123": false, "p": false,
	} {
		if permissionID(id) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
}

// The loser of two answers is told who won, what, and when (R11).
func TestR11_TheLoserIsToldTheWinner(t *testing.T) {
	refusal := func(decision string) error {
		e := api.E(api.CodeResolved, "resolved")
		e.Data = map[string]any{"winner": map[string]any{"permission": "p-1", "decision": decision, "by": "ann", "at": "2026-01-02T03:04:05Z"}}
		return e
	}
	w, late := winner(refusal("allow"))
	if !late || w.Permission != "p-1" || w.Decision != "allow" || w.By != "ann" {
		t.Errorf("%+v, %v", w, late)
	}
	for decision, want := range map[string]string{"allow": "p-1 was allowed by ann at ", "deny": "p-1 was denied by ann at ", "lapsed": "p-1 lapsed at "} {
		w, _ := winner(refusal(decision))
		err := beaten(w, refusal(decision))
		if !strings.HasPrefix(err.Error(), want) || api.CodeOf(err) != api.CodeResolved || api.As(err).Data["winner"] == nil {
			t.Errorf("%s: %v", decision, err)
		}
	}
	for _, err := range []error{errors.New("other"), api.E(api.CodeResolved, "by nobody"), api.E(api.CodeNotFound, "none")} {
		if w, late := winner(err); late {
			t.Errorf("%v: %+v", err, w)
		}
	}
}

func TestNext_NamesTheAnswers(t *testing.T) {
	one, two := []api.Permission{{ID: "p-1", Title: "to run ls"}}, []api.Permission{{ID: "p-1", Title: "to run a"}, {ID: "p-2", Title: "to run b"}}
	for _, tt := range []struct {
		e         api.Execution
		why, next string
	}{
		{api.Execution{WaitingFor: &api.WaitingFor{Kind: "needs_approval"}, Permissions: one}, "codex asks to run ls", "pintle allow p-1, or pintle deny p-1"},
		{api.Execution{WaitingFor: &api.WaitingFor{Kind: "needs_approval"}, Permissions: two}, "codex asks to run a, and to run b", "pintle approvals"},
		{api.Execution{WaitingFor: &api.WaitingFor{Kind: "session", Names: []string{"r-1"}}, Next: "n"}, "behind r-1", "n"},
		{api.Execution{WaitingFor: &api.WaitingFor{Kind: "needs_env", Names: []string{"A", "B"}}, Next: "n"}, "needs_env [A B]", "n"},
	} {
		tt.e.Provider, tt.e.Phase = "codex", string(session.Waiting)
		if got := reason(tt.e); got != tt.why {
			t.Errorf("%q, want %q", got, tt.why)
		}
		if got := next(tt.e); got != tt.next {
			t.Errorf("%q, want %q", got, tt.next)
		}
	}
}
