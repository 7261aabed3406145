package fakemodel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScript_FirstAndAgain(t *testing.T) {
	recovered := step{text: "recovered"}
	for _, test := range []struct {
		prompt       string
		first, again step
	}{
		{"what is this?", step{text: "ok"}, step{text: "ok"}},
		{" respond with exactly: a b\nc ", step{text: "a b\nc"}, step{text: "a b\nc"}},
		{"sleep 1.5", step{kind: command, text: "sleep 1.5"}, step{kind: command, text: "sleep 1.5"}},
		{"shell: echo a; echo b", step{kind: command, text: "echo a; echo b"}, step{kind: command, text: "echo a; echo b"}},
		{"shell: true ##drop", step{kind: command, text: "true", cut: afterItem}, step{kind: command, text: "true", cut: afterItem}},
		{"shell-escalated: id", step{kind: command, text: "id", escalated: true}, step{kind: command, text: "id", escalated: true}},
		{"hang-headers", step{kind: hangHeaders}, step{kind: hangHeaders}},
		{"hang-body for a while", step{kind: hangBody}, step{kind: hangBody}},
		{"hang-thought: a b", step{text: "done", reasoning: "a b", cut: inThought, silent: true},
			step{text: "done", reasoning: "a b", cut: inThought, silent: true}},
		{"hang-text: a b", step{text: "a b", cut: inItem, silent: true}, step{text: "a b", cut: inItem, silent: true}},
		{"hang-late: a b", step{text: "a b", cut: afterItem, silent: true}, step{text: "a b", cut: afterItem, silent: true}},
		{"http: 503", step{kind: status, number: 503}, step{kind: status, number: 503}},
		{"http: 429 3", step{kind: status, number: 429, text: "3"}, step{kind: status, number: 429, text: "3"}},
		{"http-once: 500", step{kind: status, number: 500}, recovered},
		{"http-once: 429 usage_limit_reached", step{kind: status, number: 429, name: "usage_limit_reached"}, recovered},
		{"drop: a b", step{text: "a b", cut: inItem}, step{text: "a b", cut: inItem}},
		{"drop-once: a b", step{text: "a b", cut: inItem}, step{text: "a b"}},
		{"drop-late: a", step{text: "a", cut: afterItem}, step{text: "a", cut: afterItem}},
		{"drop-late-once: a", step{text: "a", cut: afterItem}, step{text: "a"}},
		{"fail: server_is_overloaded come back later", step{kind: fail, name: "server_is_overloaded", text: "come back later"},
			step{kind: fail, name: "server_is_overloaded", text: "come back later"}},
		{"incomplete: content_filter", step{kind: incomplete, text: "content_filter"}, step{kind: incomplete, text: "content_filter"}},
		{"usage: 250000", step{text: "used 250000", tokens: 250000}, step{text: "used 250000", tokens: 250000}},
		{"reason: well", step{reasoning: "well", text: "done"}, step{reasoning: "well", text: "done"}},
		{"custom: exec\ntext(1);\n//", step{kind: custom, name: "exec", text: "text(1);\n//"}, step{kind: custom, name: "exec", text: "text(1);\n//"}},
		{`tool: update_plan {"plan": []}`, step{kind: tool, name: "update_plan", text: `{"plan": []}`},
			step{kind: tool, name: "update_plan", text: `{"plan": []}`}},
		{"You are performing a CONTEXT CHECKPOINT COMPACTION. Do", step{text: "a summary"}, step{text: "a summary"}},
	} {
		s, err := parse(test.prompt)
		if err != nil {
			t.Errorf("%q: %v", test.prompt, err)
			continue
		}
		for before, want := range []step{test.first, test.again} {
			if diff := cmp.Diff(want, s.next(before, nil), cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("%q, asked %d times before (-want +got)\n%s", test.prompt, before, diff)
			}
		}
	}
}

func TestScript_MalformedIsRefused(t *testing.T) {
	for _, prompt := range []string{
		"sleep well", "slow: x", "slow: -1 2", "slow:", "slow: 1 2 3", "big: much", "http: teapot", "http: 99", "http-once:", "usage: all",
	} {
		if s, err := parse(prompt); err == nil {
			t.Errorf("%q is taken for %+v", prompt, s.first)
		}
	}
}

func TestScript_AfterATool(t *testing.T) {
	for _, test := range []struct {
		prompt, output string
		want           step
	}{
		{"shell: x", "made", step{text: "tool said: made"}},
		{"http-once: 500", "made", step{text: "tool said: made"}},
		{"shell: x", "Process running with session ID 96711\nOutput:\n", step{kind: poll, number: 96711}},
		{"shell: x", `Output:\n{"chunk_id":"a","session_id":96711,"output":""}`, step{kind: poll, number: 96711}},
		{"shell: x ##hang", "made", step{kind: hangBody}},
	} {
		s, err := parse(test.prompt)
		if err != nil {
			t.Fatal(err)
		}
		got := s.next(0, []string{"an earlier one", test.output})
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%q after %q (-want +got)\n%s", test.prompt, test.output, diff)
		}
	}
}

func TestScript_Patch(t *testing.T) {
	const whole = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
	for prompt, want := range map[string]string{
		"patch: p1.txt":   "*** Begin Patch\n*** Add File: p1.txt\n+hello\n*** End Patch",
		"patch: " + whole: whole,
	} {
		if s, err := parse(prompt); err != nil || s.first.kind != patch || s.first.text != want {
			t.Errorf("%q: %+v, %v", prompt, s.first, err)
		}
	}
}

func TestScript_Parts(t *testing.T) {
	for _, test := range []struct {
		prompt string
		want   []string
	}{
		{"respond with exactly: one two", []string{"one ", "two"}},
		{"respond with exactly:", []string{""}},
		{"drop: one two", []string{"one "}},
		{"slow: 3 20", []string{"w1 ", "w2 ", "w3 "}},
		{"big: 5", []string{"01234"}},
		{"big: 5 2", []string{"01", "23", "4"}},
		{"big: 0", []string{""}},
	} {
		s, err := parse(test.prompt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, s.first.parts()); diff != "" {
			t.Errorf("%q (-want +got)\n%s", test.prompt, diff)
		}
	}
	if s, _ := parse("slow: 3 20"); s.first.pause != 20*time.Millisecond {
		t.Errorf("slow pauses for %v", s.first.pause)
	}
	long := strings.Repeat("a€", longPiece)
	parts := step{text: long}.parts()
	if strings.Join(parts, "") != long || len(parts) < 4 || strings.ToValidUTF8(parts[0], "") != parts[0] {
		t.Errorf("a long text is cut into %d parts, the first of %d bytes", len(parts), len(parts[0]))
	}
}
