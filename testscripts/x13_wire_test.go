package testscripts

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// controlled checks that an answer is exactly the four members of a control that was done (X12).
func controlled(t *testing.T, a answer, action string) {
	t.Helper()
	var got map[string]any
	if a.Error != nil || json.Unmarshal(a.Result, &got) != nil {
		t.Fatalf("%s: %+v: %s", action, a.Error, a.Result)
	}
	want := map[string]any{"executionId": "k", "action": action, "success": true, "error": nil}
	if !maps.Equal(got, want) {
		t.Errorf("%s is answered with %v, want %v", action, got, want)
	}
}

// An interrupt that comes right behind a create waits for it: the create is answered first, with success, and
// what is left of the run in the end is nothing (X13).
func TestX13_InterruptComesBehindThePendingCreate(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	socket := s.serving()
	s.orphan("--id", "k", "-a", "command", "--", "sh", "-c", "echo x >> launches.k; exec sleep 600")
	w := dialWire(t, socket)
	w.say(hello(), request(1, api.MethodCreate, "k"), request(2, api.MethodInterrupt, "k"), request(3, api.MethodInterrupt, "k"))
	ids, answers := w.hear(4)
	if slices.Index(ids, "1") != 1 {
		t.Errorf("answers came as %v, want the create's before the interrupts'", ids)
	}
	if e := answers["1"].execution(t); e.ID != "k" || e.Outcome != "" {
		t.Errorf("the create is answered with %+v", e)
	}
	controlled(t, answers["2"], "interrupt")
	controlled(t, answers["3"], "interrupt")
	if e := s.full("k"); e.Outcome != "cancelled" || e.Launches > 1 || e.Verdicts != 1 {
		t.Errorf("ended as %+v", e)
	}
	s.quiet()
}

// A stop forestalls a create that waits for a value: it is answered once nothing can start any more, and the value
// that comes with or after it starts nothing. Equal stops at once are done once and each is answered (X13, K3).
func TestX13_StopForestallsACreateThatWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	socket := s.serving()
	order := []string{"--id", "k", "--env", "TOKEN", "-a", "command", "--", "sh", "-c", "echo x >> launches.k; exec sleep 600"}
	s.orphan(order...)
	w := dialWire(t, socket)
	w.say(hello(), request(1, api.MethodCreate, "k"), request(2, api.MethodWait, "k"))
	_, answers := w.hear(3)
	answers["1"].execution(t)
	if e := answers["2"].execution(t); e.Phase != "waiting" || e.WaitingFor == nil || e.WaitingFor.Kind != "needs_env" {
		t.Fatalf("it does not wait for its value: %s", answers["2"].Result)
	}
	w.say(request(3, api.MethodStop, "k"), request(4, api.MethodStop, "k"), request(5, api.MethodInterrupt, "k"))
	_, answers = w.hear(3)
	controlled(t, answers["3"], "stop")
	controlled(t, answers["4"], "stop")
	controlled(t, answers["5"], "interrupt")

	w.say(`{"jsonrpc":"2.0","id":6,"method":"execution/create","params":{"id":"k","environment":{"TOKEN":"came-too-late","PATH":"/bin:/usr/bin"}}}`)
	_, answers = w.hear(1)
	if e := answers["6"].execution(t); e.Outcome != "cancelled" || e.ExitCode == nil || *e.ExitCode != 13 {
		t.Errorf("the repeat is answered with %s", answers["6"].Result)
	}
	s.verb(append([]string{"run"}, order...)...)
	if e := s.full("k"); e.Outcome != "cancelled" || e.Launches != 0 || e.Verdicts != 1 {
		t.Errorf("ended as %+v", e)
	}
	s.quiet()
}
