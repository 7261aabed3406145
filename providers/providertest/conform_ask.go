package providertest

import (
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/session"
)

// parked has an agent ask for a command that leaves a mark, and returns what it asks for.
func (s *scene) parked(id string, more ...string) (permission string) {
	s.t.Helper()
	r := s.run(id, s.asking(), slices.Concat(s.Prompts.AskFlags, []string{"--unattended", "park"}, more)...)
	s.code(r, 15)
	e := s.show(id)
	if len(e.Permissions) != 1 || e.Permissions[0].Title == "" || e.Outcome != "" {
		s.t.Fatalf("it waits for %+v", e)
	}
	var open []struct{ Permission, Execution string }
	s.decode(s.must("approvals", "--json").Out, &open)
	if len(open) != 1 || open[0].Permission != e.Permissions[0].ID || open[0].Execution != id {
		s.t.Errorf("approvals: %+v", open)
	}
	return e.Permissions[0].ID
}

func (s *scene) asking() string { return s.Prompts.Ask("echo x >> ran") }

// notRun holds the command to that.
func (s *scene) notRun() {
	s.t.Helper()
	if got := s.file("ran"); got != "" {
		s.t.Errorf("it was run all the same: %q", got)
	}
}

func allowed(s *scene) {
	permission := s.parked("k")
	s.notRun()
	s.must("allow", "k")
	s.ended("k", session.Completed)
	s.ranOnce()
	s.resolved("k", permission, "allow")
	s.once(s.asking())
}

// resolved holds the journal to one answer.
func (s *scene) resolved(id, permission, decision string) {
	s.t.Helper()
	got := s.of(id, "permission_resolved")
	if len(got) != 1 || got[0].Data.Permission != permission || got[0].Data.Decision != decision {
		s.t.Errorf("answers: %+v", got)
	}
}

func denied(s *scene) {
	permission := s.parked("k")
	s.must("deny", permission)
	s.ended("k", s.refused())
	s.notRun()
	s.resolved("k", permission, "deny")
	s.once(s.asking())
}

// refused is how a run ends that was refused something.
func (s *scene) refused() session.Outcome {
	if s.Quits == "" {
		return session.Completed
	}
	s.note = s.Quits
	return session.Denied
}

func nobodyThere(s *scene) {
	for id, test := range map[string]struct {
		flags []string
		code  int
	}{
		"by itself": {nil, 5},
		"fail":      {[]string{"--unattended", "fail"}, 5},
		"deny":      {[]string{"--unattended", "deny"}, s.refused().Exit()},
	} {
		r := s.run(id, s.asking(), slices.Concat(s.Prompts.AskFlags, test.flags)...)
		s.code(r, test.code)
		if test.code == 5 && !strings.Contains(r.Err, "it asked") {
			s.t.Errorf("%s: it does not say what was asked: %s", id, r.Err)
		}
	}
	s.notRun()
}

func answeredTwice(s *scene) {
	permission := s.parked("k")
	s.must("deny", permission)
	s.code(s.Pintle("", "allow", permission), 6)
	s.ended("k", s.refused())
	s.code(s.Pintle("", "allow", permission), 6)
	s.resolved("k", permission, "deny")

	lapsed := s.parked("l")
	s.must("stop", "l")
	s.ended("l", session.Cancelled)
	s.code(s.Pintle("", "allow", lapsed), 6)
	s.notRun()
}

// What a run was allowed ends with it: the next one of the conversation is asked as the agent's own configuration
// says, in a new process as in the one that is kept (case 28).
func permissionsEnd(s *scene) {
	s.warm = true
	for _, flags := range [][]string{nil, {"--warm", "1m"}} {
		first, second := "first "+strings.Join(flags, ""), "second "+strings.Join(flags, "")
		s.code(s.run(first, s.Prompts.Shell("echo x > first"), append(flags, all...)...), 0)
		if s.file("first") == "" {
			s.t.Error("the first was not run")
		}
		s.code(s.next(second, first, s.asking(), flags...), 5)
		s.notRun()
	}
}
