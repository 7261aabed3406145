package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces are what lines are made of here: words that shells give a meaning to, and commands of which one is allowed.
var pieces = []string{
	"ls", "reboot", "git", "push", ";", "&&", "|", "$(", ")", "`", "'", `"`, "{", "}", "(", "\n", "<<E", "E", ">", "/dev/null", "2>&1", "$X", "\\",
	"sh", "-c", "sudo", "eval", "if", "then", "fi", "for", "in", "do", "done", "=", "X=1", "#", "&", "~", "*", "!", "[[", "]]", "((", "))", "<(", "\x00", "é",
}

func aLine(t *rapid.T) string {
	words := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 14).Draw(t, "words")
	return strings.Join(words, rapid.SampledFrom([]string{" ", ""}).Draw(t, "between"))
}

func aPolicy(t *rapid.T) Policy {
	return Policy{Rules: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
		return Rule{Deny: rapid.Bool().Draw(t, "deny"), Command: rapid.SampledFrom([]string{"ls", "git push", "git", "reboot"}).Draw(t, "command")}
	}), 0, 3).Draw(t, "rules")}
}

// rank is how much a verdict lets through.
var rank = map[Verdict]int{Deny: 0, Ask: 1, Allow: 2}

// A rule more that denies lets nothing more through, and one that allows refuses nothing more.
func TestDecide_IsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := aPolicy(t), run(aLine(t))
		approve := rapid.SampledFrom([]string{"", "reads", "all"}).Draw(t, "approve")
		extra := Rule{Deny: rapid.Bool().Draw(t, "more denies"), Command: rapid.SampledFrom([]string{"ls", "git push", "reboot"}).Draw(t, "more")}
		before := rank[p.Decide(approve, q).Verdict]
		after := rank[Policy{Rules: append(p.Rules, extra)}.Decide(approve, q).Verdict]
		if extra.Deny && after > before || !extra.Deny && after < before {
			t.Fatalf("%q: from %d to %d by %+v", q.Command, before, after, extra)
		}
	})
}

// What is allowed by rules has no word in it that begins a command for which there is none.
func FuzzDecide(f *testing.F) {
	for _, line := range []string{"ls", "ls; reboot", "$(reboot)", "sh -c 'reboot'", "<<E\n`reboot`\nE", "ls\\\nreboot", `"re"boot`, "re\\boot"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := allow("ls").Decide("", run(line))
		if got.Verdict == Allow && !strings.Contains(line, "ls") && !strings.ContainsAny(line, `"'\`) {
			t.Errorf("%q is allowed", line)
		}
		if strings.HasPrefix(line, "reboot") && got.Verdict == Allow && !strings.HasPrefix(line, "reboot\\\n") {
			t.Errorf("%q is allowed", line)
		}
		if d := deny("reboot").Decide("all", run(line)); d.Verdict == Allow && strings.HasPrefix(line, "reboot ") && !strings.Contains(line, "(") {
			t.Errorf("%q is not refused", line)
		}
	})
}
