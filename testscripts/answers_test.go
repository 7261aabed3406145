package testscripts

import (
	"sync"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// asks waits until an execution asks for something, and names it.
func (d *driver) asks(key string) (permission string) {
	d.s.t.Helper()
	d.s.until("it asks", func() bool {
		e := call[api.Execution](d, api.MethodGet, api.Target{ID: key})
		if len(e.Permissions) == 1 {
			permission = e.Permissions[0].ID
		}
		return permission != ""
	})
	return permission
}

// Of answers that clients give at once one counts, and it alone reaches the agent; the others are told whose it is. That is
// so later, and with another supervisor, too.
func TestR11_TwoClientsAnswerAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	a.detach(sess.ID)
	drivers := []*driver{a, s.join("b"), s.join("c"), s.join("d")}
	for _, d := range drivers {
		call[api.Attached](d, api.MethodSessAttach, api.Attach{Operation: operation(), Session: sess.ID})
	}
	sent := a.post(sess.ID, "ask ls")
	name := a.asks(sent.Execution)
	winner, losers := answerAtOnce(t, drivers, name)
	if winner == nil || len(losers) != len(drivers)-1 {
		t.Fatalf("%+v counts; the others: %+v", winner, losers)
	}
	for _, e := range losers {
		w, _ := e.Data["winner"].(map[string]any)
		if e.Code != api.CodeResolved || w["by"] != winner.By || w["decision"] != winner.Decision || w["permission"] != name {
			t.Errorf("refused with %+v, want the winner %+v", e, winner)
		}
	}
	if e := a.over(sent.Execution); e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	if s.lines("answers") != 1 || s.journalled(sess.ID, "permission_resolved") != 1 {
		t.Errorf("the agent heard %d answers, the journal has %d", s.lines("answers"), s.journalled(sess.ID, "permission_resolved"))
	}
	a.again()
	e := a.refused(api.CodeResolved, api.MethodAnswer, api.Answer{ID: name, Decision: "deny", By: "late"})
	if w, _ := e.Data["winner"].(map[string]any); w["by"] != winner.By {
		t.Errorf("refused with %+v", e)
	}
	a.detach(sess.ID)
	for _, d := range drivers[1:] {
		d.c.Close()
		if err := d.connect(); err != nil {
			t.Fatal(err)
		}
		d.detach(sess.ID)
	}
	s.quiet()
}

// answerAtOnce has all of them answer, each in its own name.
func answerAtOnce(t *testing.T, drivers []*driver, name string) (winner *api.Answered, losers []*api.Error) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, d := range drivers {
		all.Go(func() {
			decision := []string{"allow", "deny"}[i%2]
			got, err := try[api.Answered](d, api.MethodAnswer, api.Answer{Operation: operation(), ID: name, Decision: decision, By: d.id})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				losers = append(losers, api.As(err))
			case winner != nil || got.By != d.id || got.Decision != decision:
				t.Errorf("%s was answered %+v beside %+v", d.id, got, winner)
			default:
				winner = &got
			}
		})
	}
	all.Wait()
	return winner, losers
}

// Who may not drive a session does not answer for it either, and that is no answer. Who takes it over does.
func TestR11_WhoMayNotDriveDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a, b := s.join("a"), s.join("b")
	sess := a.open()
	sent := a.post(sess.ID, "ask ls")
	name := a.asks(sent.Execution)
	for _, id := range []string{name, sent.Execution} {
		e := b.refused(api.CodeOwned, api.MethodAnswer, api.Answer{Operation: operation(), ID: id, Decision: "allow", By: "b"})
		if owner, _ := e.Data["owner"].(map[string]any); owner["client"] != "a" {
			t.Errorf("refused with %+v", e)
		}
	}
	if s.lines("answers") != 0 || s.journalled(sess.ID, "permission_resolved") != 0 {
		t.Error("the agent was answered")
	}
	op := operation()
	answer := api.Answer{Operation: op, ID: name, Decision: "allow", By: "a"}
	first := call[api.Answered](a, api.MethodAnswer, answer)
	if again := call[api.Answered](a, api.MethodAnswer, answer); again != first {
		t.Errorf("answered %+v, and repeated %+v", first, again)
	}
	if e := a.over(sent.Execution); e.Outcome != "completed" || s.lines("answers") != 1 {
		t.Errorf("ended as %+v", e)
	}
	a.detach(sess.ID)
	s.quiet()
}

// An answer belongs to one question (case 31): what is asked again in the same words is asked again, and an answer to the
// first is none to the second.
func TestCase31_AnAnswerIsForItsOwnQuestion(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	sess := a.open()
	sent := a.post(sess.ID, "ask ls; ask ls")
	first := a.asks(sent.Execution)
	call[api.Answered](a, api.MethodAnswer, api.Answer{Operation: operation(), ID: first, Decision: "allow"})
	var second string
	s.until("it asks again", func() bool { second = a.asks(sent.Execution); return second != first })
	a.refused(api.CodeResolved, api.MethodAnswer, api.Answer{Operation: operation(), ID: first, Decision: "allow"})
	if s.lines("answers") != 1 {
		t.Errorf("the agent heard %d answers", s.lines("answers"))
	}
	call[api.Answered](a, api.MethodAnswer, api.Answer{Operation: operation(), ID: second, Decision: "deny"})
	if e := a.over(sent.Execution); e.Outcome != "completed" || s.lines("answers") != 2 {
		t.Errorf("ended as %+v", e)
	}
	a.refused(api.CodeResolved, api.MethodAnswer, api.Answer{Operation: operation(), ID: second, Decision: "allow"})
	a.detach(sess.ID)
	s.quiet()
}
