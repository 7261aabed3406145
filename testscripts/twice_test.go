package testscripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// mutations are all methods that change something, each with how it is prepared: what is to be asked under an operation,
// and by whom.
var mutations = map[string]func(a *driver, id string) any{
	api.MethodSessAttach: func(a *driver, id string) any {
		a.detach(id)
		return map[string]any{"session": id, "mode": "exclusive"}
	},
	api.MethodSessDetach: func(_ *driver, id string) any { return map[string]any{"session": id} },
	api.MethodSessSend:   func(_ *driver, id string) any { return map[string]any{"session": id, "text": "say sent"} },
	api.MethodSessInterrupt: func(a *driver, id string) any {
		a.waitUntil(a.post(id, "hold never").Execution, "confirmed")
		return map[string]any{"session": id, "reason": "enough"}
	},
	api.MethodAnswer: func(a *driver, id string) any {
		asks := a.post(id, "ask ls")
		call[api.Execution](a, api.MethodWait, api.Wait{ID: asks.Execution})
		return map[string]any{"id": asks.Execution, "decision": "allow", "by": "me"}
	},
	api.MethodStop: func(a *driver, id string) any {
		sent := a.post(id, "hold never")
		a.waitUntil(sent.Execution, "confirmed")
		return map[string]any{"id": sent.Execution}
	},
	api.MethodInterrupt: func(a *driver, id string) any {
		sent := a.post(id, "hold never")
		a.waitUntil(sent.Execution, "confirmed")
		return map[string]any{"id": sent.Execution}
	},
	api.MethodArchive: func(a *driver, id string) any {
		_, e := a.send(id, "say bye")
		return map[string]any{"id": e.ID, "reason": "over"}
	},
	api.MethodRecover: func(a *driver, id string) any {
		_, e := a.send(id, "say bye")
		return map[string]any{"id": e.ID}
	},
}

// Each is given twice, and again by another client, after a restart and after a SIGKILL: each time it gets its first answer,
// and nothing more is done.
func TestF2_EveryMutationTwice(t *testing.T) {
	t.Parallel()
	for _, method := range slices.Sorted(maps.Keys(mutations)) {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.serving()
			a, b := s.join("a"), s.join("b")
			id := a.open().ID
			params := mutations[method](a, id).(map[string]any)
			params["operationId"] = operation().OperationID
			first := call[json.RawMessage](a, method, params)
			if method == api.MethodSessSend {
				a.wait(params["operationId"].(string))
			}
			if method == api.MethodAnswer { // the turn goes on with it
				a.wait(params["id"].(string))
			}
			done := s.effects(id)
			repeat := func(d *driver, when string) {
				t.Helper()
				if again := call[json.RawMessage](d, method, params); !bytes.Equal(again, first) {
					t.Errorf("%s: answered\n%s, first\n%s", when, again, first)
				}
				if now := s.effects(id); now != done {
					t.Errorf("%s: there is\n%s\nthere was\n%s", when, now, done)
				}
			}
			repeat(a, "at once")
			repeat(b, "by another client")
			a.again()
			b.reconnect()
			repeat(b, "by another client after a SIGKILL")
			repeat(a, "after a SIGKILL")
			if method != api.MethodArchive {
				b.takeOver(id)
				done = s.effects(id)
			}
			a.back() // another supervisor
			b.reconnect()
			repeat(a, "after a take-over and a restart")
			changed := maps.Clone(params)
			changed[map[bool]string{true: "text", false: "reason"}[method == api.MethodSessSend]] = "else"
			if takesReason(method) {
				a.refused(api.CodeOperationConflict, method, changed)
			}
			_, _ = try[any](b, api.MethodSessDetach, api.Detach{Session: id})
			s.quiet()
		})
	}
}

// takesReason reports whether a method has a field that makes it another request.
func takesReason(method string) bool {
	return slices.Contains([]string{api.MethodSessSend, api.MethodSessInterrupt, api.MethodStop, api.MethodInterrupt, api.MethodArchive}, method)
}

// effects are all that mutations leave in a session's journal and with its agent.
func (s *stage) effects(id string) string {
	all := []any{s.lines("prompts"), s.lines("answers"), s.lines("launches"), s.requested("turn/interrupt", ""), s.leaseChanges(id)}
	for _, kind := range []string{"message_stored", "message_handed_over", "permission_requested", "permission_resolved", "turn_ended", "archived", "receipt"} {
		all = append(all, s.journalled(id, kind))
	}
	return fmt.Sprint(all...)
}

// A session is made once, and its repeat is answered when nothing is there any more that one could be made of.
func TestF2_CreatingTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	c := s.creation()
	both := []<-chan answered[json.RawMessage]{ask[json.RawMessage](a, api.MethodSessCreate, c), ask[json.RawMessage](a, api.MethodSessCreate, c)}
	one, two := <-both[0], <-both[1]
	if one.err != nil || two.err != nil || !bytes.Equal(one.answer, two.answer) {
		t.Fatalf("answered %s (%v) and %s (%v)", one.answer, one.err, two.answer, two.err)
	}
	var made api.Session
	if err := json.Unmarshal(one.answer, &made); err != nil {
		t.Fatal(err)
	}
	other := c
	other.Model = "another"
	a.refused(api.CodeOperationConflict, api.MethodSessCreate, other)
	done := s.effects(made.ID)
	a.detach(made.ID)
	b.takeOver(made.ID)
	b.detach(made.ID)
	b.owned(made.ID, "free")
	changes := s.effects(made.ID)
	if err := os.Rename(filepath.Join(s.dir, "bin"), filepath.Join(s.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	a.again()
	b.reconnect()
	for _, d := range []*driver{a, b} {
		if again := call[json.RawMessage](d, api.MethodSessCreate, c); !bytes.Equal(again, one.answer) {
			t.Errorf("%s is answered\n%s, first\n%s", d.id, again, one.answer)
		}
	}
	if now := s.effects(made.ID); now != changes || len(s.names("sessions")) != 1 || s.lines("launches") != 1 {
		t.Errorf("there is %s, there was %s, %s; sessions %v", now, done, changes, s.names("sessions"))
	}
	if got := a.get(made.ID).Leases; len(got) != 0 {
		t.Errorf("a repeat took a lease: %+v", got)
	}
	s.quiet()
}
