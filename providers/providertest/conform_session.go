package providertest

import "github.com/pintle/pintle/internal/session"

// tells gives a held session a prompt, whose turn must complete with a text.
func (s *scene) tells(h Held, prompt, text string) (id string) {
	s.t.Helper()
	id = h.Send(prompt)
	if e := s.ended(id, session.Completed); e.Text != text || e.Session != h.Session {
		s.t.Errorf("%q is answered by %+v", prompt, e)
	}
	return id
}

// opened: the process is there for who opened the session, and the first prompt is the first turn of its conversation.
func opened(s *scene) {
	s.warm = true
	h := s.Hold()
	pid, prompt := s.agent(), s.Prompts.Say("one")
	k := s.tells(h, prompt, "one")
	s.once(prompt)
	if now := s.agent(); now != pid {
		s.t.Errorf("process %d, then %d", pid, now)
	}
	h.Leave()
	s.until("its process has left", func() bool { return len(s.agents()) == 0 })
	s.goesOn(k, prompt)
}

// killedHeld: nobody asked for the exit and somebody holds the session, so another process is there without being asked for.
func killedHeld(s *scene) {
	s.warm = true
	first, second := s.Prompts.Say("one"), s.Prompts.Say("two")
	h := s.Hold()
	a := s.tells(h, first, "one")
	pid := s.agent()
	s.Kill(pid)
	s.until("there is another process", func() bool {
		st := s.status()
		return len(st.Runtimes) == 1 && st.Runtimes[0].PID != 0 && st.Runtimes[0].PID != pid
	})
	now := s.agent()
	b := s.tells(h, second, "two")
	if s.agent() != now {
		s.t.Error("the message has a third process")
	}
	s.after(b, second, a, first)
	s.newer(b, a)
	h.Leave()
}

// steered: what is put into a turn is said in it.
func steered(s *scene) {
	host, prompt := s.Prompts.Shell(gated), s.Prompts.Say("steered")
	s.order("k", host, all...)
	s.begun()
	s.must("send", "--id", "m", "--when", "steer", "-d", "k", "--", prompt)
	s.must("wait", "--until", "handed_over", "m")
	s.open("go")
	s.ended("m", session.Completed)
	if e := s.ended("k", session.Completed); e.Text != "steered" {
		s.t.Errorf("the turn's answer is %q", e.Text)
	}
	if before := s.once(prompt); len(before) == 0 || before[len(before)-1] != host {
		s.t.Errorf("before it the user had said %q", before)
	}
	s.ranOnce()
	s.code(s.Pintle("", "send", "--when", "steer", "k", "--", s.Prompts.Say("late")), 7)
}

// replaced: what comes in place of a turn ends that, and is the next one.
func replaced(s *scene) {
	prompt := s.Prompts.Say("instead")
	s.order("k", s.Prompts.Shell(sleeping), all...)
	s.asleep()
	s.want(s.Pintle("", "send", "--id", "m", "--when", "interrupt", "--approve", "all", "k", "--", prompt), 0, "instead\n")
	s.ended("k", session.Cancelled)
	if n := s.sleepers(); n > 0 {
		s.t.Errorf("%d commands are left", n)
	}
	s.afterCut("m", prompt, "k", s.Prompts.Shell(sleeping))
}
