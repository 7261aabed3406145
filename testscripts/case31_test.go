package testscripts

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// An option that was not offered is no answer: what was asked stays open, for one that is (case 31).
func TestCase31_AnOptionThatWasNotOffered(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	socket := s.serving()
	s.parked()
	w := dialWire(t, socket)
	w.say(hello())
	w.hear(1)
	for i, c := range []struct {
		params string
		want   api.Code
	}{
		{`{"id":"k","decision":"always"}`, api.CodeParams},
		{`{"id":"k","decision":""}`, api.CodeParams},
		{`{"id":"k","decision":"fail"}`, api.CodeParams}, // which only pintle itself says
		{`{"id":"k","decision":"allow","forever":true}`, api.CodeParams},
		{`{"id":"p-0000","decision":"allow"}`, api.CodeNotFound},
		{`{"id":"k","decision":"allow","by":"ann"}`, ""},
		{`{"id":"k","decision":"allow","by":"ann"}`, api.CodeResolved},
	} {
		w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/answer","params":%s}`, i+1, c.params))
		_, answers := w.hear(1)
		a := answers[fmt.Sprint(i+1)]
		if a.Error != nil && a.Error.Data.Code != c.want || a.Error == nil && c.want != "" {
			t.Errorf("%s: %+v %s, want %s", c.params, a.Error, a.Result, c.want)
		}
		var done api.Answered
		if c.want == "" && (json.Unmarshal(a.Result, &done) != nil || done.Execution != "k" || done.Decision != "allow" || done.By != "ann" || done.At.IsZero()) {
			t.Errorf("answered with %s", a.Result)
		}
	}
	if e := s.full("k"); e.Outcome != "completed" {
		t.Errorf("ended as %+v", e)
	}
	s.quiet()
}
