package providertest

import (
	"slices"

	"github.com/pintle/pintle/internal/session"
)

// goesOn holds a conversation to go on after a run that ended in whatever way.
func (s *scene) goesOn(earlier, first string) {
	s.t.Helper()
	prompt := s.Prompts.Say("back again")
	s.want(s.next("back", earlier, prompt), 0, "back again\n")
	s.afterCut("back", prompt, earlier, first)
	s.newer("back", earlier)
}

func interruptedInText(s *scene) {
	s.order("k", s.Prompts.Drip)
	s.said("k")
	s.must("interrupt", "k")
	s.ended("k", session.Cancelled)
	s.must("interrupt", "k") // of what has ended it is one too
	s.goesOn("k", s.Prompts.Drip)
}

func interruptedInTool(s *scene) { s.endedInTool("interrupt") }
func stopped(s *scene)           { s.endedInTool("stop") }

func (s *scene) endedInTool(verb string) {
	prompt := s.Prompts.Shell(sleeping)
	s.order("k", prompt, all...)
	s.asleep()
	s.must(verb, "k")
	if n := s.sleepers(); n > 0 {
		s.t.Errorf("%d commands are left", n)
	}
	s.ended("k", session.Cancelled)
	s.goesOn("k", prompt)
}

func leaves(s *scene) {
	s.code(s.run("k", s.Prompts.Say("bye")), 0)
	if left := s.agents(); len(left) > 0 {
		s.t.Errorf("left of it: %v", left)
	}
	exits := s.of("k", "runtime_exited")
	if len(exits) != 1 || exits[0].Data.Signal != "" {
		s.t.Errorf("it left as %+v", exits)
	}
}

func goesOnWarm(s *scene) {
	s.warm = true
	first, second := s.Prompts.Say("one"), s.Prompts.Say("two")
	s.want(s.run("a", first, "--warm", "1m"), 0, "one\n")
	pid := s.agent()
	s.want(s.next("b", "a", second, "--warm", "1m"), 0, "two\n")
	if now := s.agent(); now != pid {
		s.t.Errorf("process %d, then %d", pid, now)
	}
	s.after("b", second, "a", first)
}

func goesOnCold(s *scene) {
	first, second := s.Prompts.Say("one"), s.Prompts.Say("two")
	s.want(s.run("a", first), 0, "one\n")
	if left := s.agents(); len(left) > 0 {
		s.t.Errorf("left of it: %v", left)
	}
	s.want(s.next("b", "a", second), 0, "two\n")
	s.after("b", second, "a", first)
	s.newer("b", "a")
}

// A verb runs beside what follows.
type verb struct {
	over chan struct{}
	told Told
}

func aside(run func() Told) *verb {
	v := &verb{over: make(chan struct{})}
	go func() {
		defer close(v.over)
		v.told = run()
	}()
	return v
}

func (v *verb) ended() bool {
	select {
	case <-v.over:
		return true
	default:
		return false
	}
}

func (v *verb) wait() Told {
	<-v.over
	return v.told
}

// Two prompts come while a third is being answered: none becomes a part of another's turn.
func twoPrompts(s *scene) {
	busy := s.Prompts.Shell(gated)
	s.order("busy", busy, all...)
	s.begun()
	var sent []*verb
	for _, id := range []string{"one", "two"} {
		words := slices.Concat([]string{"send", "--id", id}, all, []string{s.show("busy").Session, "--", s.Prompts.Say(id)})
		v := aside(func() Told { return s.Pintle("", words...) })
		s.until("it waits for its turn", func() bool { return v.ended() || s.queued(id) })
		sent = append(sent, v)
	}
	s.open("go")
	for _, v := range sent {
		s.code(v.wait(), 0)
	}
	s.ended("busy", session.Completed)
	s.ranOnce()
	for _, id := range []string{"one", "two"} {
		if e := s.show(id); e.Text != id || !slices.Contains(s.once(s.Prompts.Say(id)), busy) {
			s.t.Errorf("%+v", e)
		}
	}
	if !slices.Contains(s.once(s.Prompts.Say("two")), s.Prompts.Say("one")) {
		s.t.Error("the second does not know of the first")
	}
	s.once(busy)
}

// queued reports whether a run waits for its turn. It may not be on record yet.
func (s *scene) queued(id string) bool {
	s.t.Helper()
	var e execution
	r := s.Pintle("", "show", "--json", id)
	s.decode(r.Out, &e)
	return r.Code == 0 && e.WaitingFor.Kind == "session"
}

func oneKey(s *scene) {
	prompt := s.Prompts.Say("once")
	one, two := aside(func() Told { return s.run("k", prompt) }), aside(func() Told { return s.run("k", prompt) })
	s.want(one.wait(), 0, "once\n")
	s.want(two.wait(), 0, "once\n")
	s.once(prompt)
}

// tries are how often what failed is tried by pintle itself.
type tries int

const (
	onlyOnce   tries = 1
	threeTimes tries = 3 // what passes by itself, perhaps, and came before the agent had done anything (B2)
)

// failsAs is a cell in which the model refuses.
func failsAs(cause string, code int, n tries, prompt func(Prompts) string) func(*scene) {
	return func(s *scene) {
		s.code(s.run("k", prompt(s.Prompts)), code)
		e := s.show("k")
		if e.Outcome != session.Failed || e.Cause.Code != cause || e.Cause.Message == "" {
			s.t.Errorf("%s, %+v", e.Outcome, e.Cause)
		}
		if got := len(s.Asked(prompt(s.Prompts))); got != int(n) {
			s.t.Errorf("the model was asked %d times", got)
		}
		if n == threeTimes && (e.Cause.Disposition != "exhausted" || e.Cause.Try != int(n)) {
			s.t.Errorf("%+v", e.Cause)
		}
	}
}

func breaksOff(s *scene) {
	s.code(s.run("k", s.Prompts.Dropped), 1)
	if e := s.show("k"); e.Outcome != session.Failed || e.Cause.Message == "" {
		s.t.Errorf("%s, %+v", e.Outcome, e.Cause)
	}
	s.once(s.Prompts.Dropped)
	s.goesOn("k", s.Prompts.Dropped)
}

// silent: the agent's process is there, so that the deadline leaves it the time to ask the model, also on a busy machine.
func silent(s *scene) {
	s.must("run", "--id", "a", "-a", s.Agent, "--warm", "1m", "--", s.Prompts.Say("one"))
	s.code(s.next("k", "a", s.Prompts.Silent, "--idle-timeout", "8s"), 3)
	s.ended("k", session.TimedOut)
	s.once(s.Prompts.Silent)
	s.goesOn("k", s.Prompts.Silent)
}

func unreachable(s *scene) {
	s.HangUp()
	s.code(s.run("k", s.Prompts.Say("nobody hears"), "--idle-timeout", "1s"), 3)
	s.ended("k", session.TimedOut)
}
