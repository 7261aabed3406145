package providertest

import (
	"slices"

	"github.com/pintle/pintle/internal/session"
)

func killedIdle(s *scene) {
	s.warm = true
	first, second := s.Prompts.Say("one"), s.Prompts.Say("two")
	s.want(s.run("a", first, "--warm", "1m"), 0, "one\n")
	pid := s.agent()
	s.Kill(pid)
	s.want(s.next("b", "a", second, "--warm", "1m"), 0, "two\n")
	if s.agent() == pid {
		s.t.Error("it is the same process")
	}
	s.after("b", second, "a", first)
	s.newer("b", "a")
	s.ended("a", session.Completed)
}

func killedInText(s *scene) {
	s.order("k", s.Prompts.Drip)
	s.said("k")
	s.Kill(s.agent())
	s.ended("k", session.AgentDied)
	s.goesOn("k", s.Prompts.Drip)
	s.once(s.Prompts.Drip)
}

func killedInTool(s *scene) {
	prompt := s.Prompts.Shell(sleeping)
	s.order("k", prompt, all...)
	s.asleep()
	s.Kill(s.agent())
	s.ended("k", session.AgentDied)
	if n := s.sleepers(); n > 0 {
		s.t.Errorf("%d commands are left", n)
	}
	s.goesOn("k", prompt)
	s.ranOnce()
	s.once(prompt)
}

func killedAsking(s *scene) {
	permission := s.parked("k")
	s.Kill(s.agent())
	// Until the death is seen it waits for an answer, and so does not wait for its end.
	s.until("it has ended", func() bool { return s.show("k").Phase == string(session.Ended) })
	e := s.ended("k", session.AgentDied)
	if len(e.Permissions) > 0 {
		s.t.Errorf("it asks still: %+v", e.Permissions)
	}
	s.code(s.Pintle("", "allow", permission), 6)
	s.goesOn("k", s.asking())
	s.notRun()
	s.once(s.asking())
}

// retries: what was prompted is not prompted again; the agent is asked to go on.
func retries(s *scene) {
	prompt := s.Prompts.Shell(sleeping)
	s.order("k", prompt, slices.Concat(all, []string{"--retries", "1"})...)
	s.asleep()
	before := s.show("k")
	s.Kill(s.agent())
	e := s.ended("k", session.Completed)
	if e.Attempt != 1 || e.Conversation != before.Conversation || e.Fence <= before.Fence {
		s.t.Errorf("after %+v came %+v", before, e)
	}
	s.ranOnce()
	s.once(prompt)
	s.goesOn("k", prompt)
}

func supervisorKilled(s *scene) {
	prompt := s.Prompts.Shell(gated)
	s.order("k", prompt, all...)
	s.begun()
	s.Kill(s.status().PID)
	s.open("go")
	s.code(s.run("k", prompt, all...), 0)
	s.ended("k", session.Completed)
	s.whole("k")
	s.ranOnce()
	s.once(prompt)
}

// whole holds a journal to be in order, and to have a run's events once.
func (s *scene) whole(id string) {
	s.t.Helper()
	times, last := map[string]int{}, int64(0)
	for _, e := range s.events(id) {
		if e.Seq <= last {
			s.t.Errorf("%d comes after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Type != "tool_call_update" || e.Data.Status == "completed" {
			times[e.Type]++
		}
	}
	for _, kind := range []string{"turn_started", "runtime_started", "tool_call", "tool_call_update", "runtime_exited", "turn_ended"} {
		if times[kind] != 1 {
			s.t.Errorf("%s comes %d times", kind, times[kind])
		}
	}
}

func supervisorKilledAsking(s *scene) {
	permission := s.parked("k")
	s.Kill(s.status().PID)
	s.must("allow", permission)
	s.ended("k", session.Completed)
	s.ranOnce()
	s.resolved("k", permission, "allow")
	s.once(s.asking())
}
