//go:build agents

package agents

import (
	"slices"
	"testing"

	"github.com/pintle/pintle/internal/fakemodel"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// steer puts a message into the turn that runs.
func (d *driver) steer(op, text string) {
	d.t.Helper()
	frames, ok := d.fold.Steer(op, text)
	if !ok {
		d.t.Fatalf("%s is not taken: %+v", op, d.fold.About())
	}
	d.puts(frames)
}

func (d *driver) settled(op string, want providers.SteerState) {
	d.t.Helper()
	d.until(op+" is "+string(want), func(a providers.About) bool {
		for _, s := range a.Steered {
			if s.Op == op {
				return s.State == want
			}
		}
		return false
	})
}

func TestF6_FoldSteers(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	o := l.order(1, "respond with exactly: first")
	o.Approve = "none"
	d.begin(o)
	d.steer("op-held", "shell: echo made")
	p := d.asked()
	d.steer("op-asked", "respond with exactly: asked")
	d.puts(d.fold.Answer(p.ID, providers.Allow))
	for _, op := range []string{"op-held", "op-asked"} {
		d.settled(op, providers.Confirmed)
	}
	a := d.end()
	if a.End.Outcome != session.Completed || d.count("agent_message_chunk", "asked") != 1 || d.count("user_message_chunk", "") != 0 {
		t.Errorf("%+v, %+v", a.End, d.events)
	}
	if frames, ok := d.fold.Steer("op-late", "x"); ok || len(frames) > 0 {
		t.Error("it is taken behind the end")
	}
	l.record(t, "steered_asking", d.appServer)
}

// given reports whether the model was given a text, by now or in an earlier request.
func (l *lab) given(text string) bool {
	return slices.ContainsFunc(l.model.Requests(), func(r fakemodel.Request) bool {
		return r.Prompt == text || slices.Contains(r.Earlier, text)
	})
}

// What an interrupt comes before is in no conversation, though the server has answered that it has it.
func TestF6_FoldSteerAndInterrupt(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	o := l.order(1, "shell: echo made")
	o.Approve = "none"
	d.begin(o)
	d.asked()
	d.steer("op-1", "respond with exactly: steered")
	d.hears(`"result":{"turnId"`)
	d.puts(d.fold.Interrupt())
	d.settled("op-1", providers.Refused)
	next := l.order(2, "respond with exactly: next")
	d.run(next, session.Completed, "")
	if l.given("respond with exactly: steered") {
		t.Errorf("the model was given it: %+v", l.model.Requests())
	}
	l.record(t, "steered_interrupted", d.appServer)
}

// Into what the model is saying it may be taken at once. Then it is in the conversation, whatever becomes of the turn.
func TestF6_FoldSteerIntoAMessage(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	d.begin(l.order(1, "slow: 9 2000"))
	d.hears("item/agentMessage/delta")
	d.steer("op-1", "respond with exactly: steered")
	d.hears(`"result":{"turnId"`)
	d.puts(d.fold.Interrupt())
	a := d.end()
	d.run(l.order(2, "respond with exactly: next"), session.Completed, "")
	if state := a.Steered[0].State; (state == providers.Confirmed) != l.given("respond with exactly: steered") {
		t.Errorf("%s: %+v", state, l.model.Requests())
	}
}

// However near to the end it comes: what is not confirmed by then is refused, and not in the conversation.
func TestF6_FoldSteerAtTheEnd(t *testing.T) {
	l := newLab(t, "gpt-5.5")
	d := l.drive(t)
	fates := map[providers.SteerState]int{}
	for n := 1; n <= 12; n++ {
		d.begin(l.order(n, "respond with exactly: w1 w2 w3"))
		d.hears([][]string{{"item/completed", "agentMessage"}, {"thread/tokenUsage/updated"}, {"thread/status/changed", "idle"}}[n%3]...)
		op := d.fold.About().Prompt
		frames, ok := d.fold.Steer(op, "respond with exactly: steered")
		d.puts(frames)
		d.end()
		if !ok {
			continue
		}
		a := d.until("it is settled", func(a providers.About) bool { return a.Steered[len(a.Steered)-1].State != providers.Sent })
		fates[a.Steered[len(a.Steered)-1].State]++
	}
	steered := 0
	for _, r := range l.model.Requests() {
		if r.Prompt == "respond with exactly: steered" {
			steered++
		}
	}
	if steered != fates[providers.Confirmed] {
		t.Errorf("%v, and the model was given %d", fates, steered)
	}
	t.Log(fates)
}
