package providertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A cell is one thing that an agent does, in the words of who wants to know whether it does.
type cell struct {
	name  string
	means string
	play  func(*scene)
}

// cells are all, in the order of the table.
var cells = []cell{
	{"answer", "the text is printed; the run names conversation, version, model and usage", answers},
	{"streamed answer", "its pieces are told as they come, and are the whole", streams},
	{"tool", "a command runs; the call and what came out of it are told", runsTools},
	{"plan", "the steps are told, with how far each is", plans},
	{"10 MB answer", "the text is whole", answersAtLength},
	{"prompt byte for byte", "a leading dash, newlines, quotes, spaces around it, U+2028, 1 MB", getsPrompts},
	{"usage", "each run of a conversation has its own", tellsUsage},

	{"allow", "what it asks for is parked (15); allowed, it is done, and the run completes", allowed},
	{"deny", "what it asks for is parked (15); denied, it is not done, and the turn goes on", denied},
	{"nobody there", "the run ends as denied (5), or the agent is refused and goes on", nobodyThere},
	{"late answer", "the first answer counts; a second one, and one after the end, are refused (6)", answeredTwice},
	{"permissions end with their run", "the next run of the conversation is asked as the agent is configured", permissionsEnd},

	{"interrupt in text", "the run is cancelled, and the conversation goes on", interruptedInText},
	{"interrupt in a tool", "likewise, and nothing of the command is left", interruptedInTool},
	{"stop", "likewise", stopped},
	{"end of input", "it leaves by itself when its input ends, and leaves nothing running", leaves},

	{"warm", "`send` goes to the same process and conversation", goesOnWarm},
	{"cold", "`send` goes to a new process and the same conversation", goesOnCold},
	{"two prompts at once", "are answered one after the other, each in a turn of its own", twoPrompts},
	{"one key twice at once", "is one prompt", oneKey},

	{"steer", "a message put into the turn is in the model's next request; without a turn it is refused (7)", steered},
	{"in place of a turn", "a message that interrupts ends the turn, and is the next one of the conversation", replaced},
	{"opened without a prompt", "a client holds the process; the first message is the first turn in it", opened},

	{"killed when idle", "`send` is answered by a new process in the same conversation", killedIdle},
	{"killed when idle, and a client holds it", "a new process is in the same conversation before anybody prompts it", killedHeld},
	{"killed in text", "the run ends as `agent_died` (14), and the conversation goes on", killedInText},
	{"killed in a tool", "likewise, and nothing of the command is left", killedInTool},
	{"killed while it asks", "likewise, and nobody can answer any more", killedAsking},
	{"killed, with `--retries`", "it is resumed and goes on by itself, without being prompted again", retries},
	{"supervisor killed in a turn", "nothing is lost, and it is prompted once", supervisorKilled},
	{"supervisor killed while it asks", "likewise, and the answer reaches it", supervisorKilledAsking},

	{"model says 401", "the run fails with `auth` (10)", failsAs("auth", 10, onlyOnce, func(p Prompts) string { return p.Unauthorized })},
	{"model says 429", "it fails with `capacity` after 3 tries", failsAs("capacity", 1, threeTimes, func(p Prompts) string { return p.Limited })},
	{"model says 500", "it fails with `transient` after 3 tries", failsAs("transient", 1, threeTimes, func(p Prompts) string { return p.Broken })},
	{"model says 503", "likewise", failsAs("transient", 1, threeTimes, func(p Prompts) string { return p.Unavailable })},
	{"prompt too long for the model", "it fails with `config`", failsAs("config", 1, onlyOnce, func(p Prompts) string { return p.TooLong })},
	{"model breaks off", "the run fails, is not tried again, and the conversation goes on", breaksOff},
	{"model is silent", "the idle deadline ends the run (3), and the conversation goes on", silent},
	{"model is not there", "the idle deadline ends the run (3)", unreachable},
}

// all lets an agent do everything unasked.
var all = []string{"--approve", "all"}

// file is what a command wrote into a file of the directory; "" if there is none.
func (s *scene) file(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(data)
}

// open lets a command go on that waits for a file.
func (s *scene) open(name string) {
	s.t.Helper()
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

// gated is a command that leaves a mark each time it is run, and waits for a file.
const gated = "echo x >> ran; until test -e go; do sleep 0.05; done; echo over"

// begun waits until such a command runs.
func (s *scene) begun() {
	s.t.Helper()
	s.until("the command runs", func() bool { return s.file("ran") != "" })
}

// ranOnce holds it to one time.
func (s *scene) ranOnce() {
	s.t.Helper()
	if got := s.file("ran"); got != "x\n" {
		s.t.Errorf("the command ran %d times", strings.Count(got, "x"))
	}
}

func answers(s *scene) {
	prompt := s.Prompts.Say("hello world")
	s.want(s.run("k", prompt), 0, "hello world\n")
	e := s.show("k")
	if e.Conversation == "" || e.AgentVersion != s.Version || e.Model != s.Model || e.Text != "hello world" {
		s.t.Errorf("%+v", e)
	}
	s.same("usage", e.Usage, s.Subject.Usage)
	s.want(s.run("k", prompt), 0, "hello world\n")
	s.once(prompt)
}

func streams(s *scene) {
	s.want(s.run("k", s.Prompts.Say("one two three four")), 0, "one two three four\n")
	chunks, text, last := s.of("k", "agent_message_chunk"), "", int64(0)
	for _, c := range chunks {
		if c.Seq <= last {
			s.t.Errorf("%d comes after %d", c.Seq, last)
		}
		last, text = c.Seq, text+c.Data.Content.Text
	}
	if len(chunks) < 2 || text != "one two three four" {
		s.t.Errorf("%d pieces: %q", len(chunks), text)
	}
}

func runsTools(s *scene) {
	r := s.run("k", s.Prompts.Shell("echo made | tee -a ran"), all...)
	if r.Code != 0 || !strings.Contains(r.Out, "made") || s.file("ran") != "made\n" {
		s.t.Errorf("%+v, in the file %q", r, s.file("ran"))
	}
	calls, updates := s.of("k", "tool_call"), s.of("k", "tool_call_update")
	if len(calls) != 1 || len(updates) == 0 {
		s.t.Fatalf("%d calls, %d updates", len(calls), len(updates))
	}
	end := updates[len(updates)-1].Data
	if end.ToolCallID != calls[0].Data.ToolCallID || end.Status != "completed" || !strings.Contains(string(end.RawOutput), "made") {
		s.t.Errorf("%+v, %s", end, end.RawOutput)
	}
}

func plans(s *scene) {
	s.code(s.run("k", s.Prompts.Plan), 0)
	plans := s.of("k", "plan")
	if len(plans) == 0 {
		s.t.Fatal("there is none")
	}
	steps := plans[len(plans)-1].Data.Entries
	if len(steps) != 2 || steps[0].Content != "one" || steps[0].Status != "in_progress" || steps[1].Content != "two" {
		s.t.Errorf("%+v", steps)
	}
}

func answersAtLength(s *scene) {
	r := s.run("k", s.Prompts.Big)
	if r.Code != 0 || len(r.Out) < 10_000_000 {
		s.t.Fatalf("exit %d, %d bytes, %.1000s", r.Code, len(r.Out), r.Err)
	}
	var text strings.Builder
	for _, c := range s.of("k", "agent_message_chunk") {
		text.WriteString(c.Data.Content.Text)
	}
	if text.String() != strings.TrimSuffix(r.Out, "\n") && text.String() != r.Out {
		s.t.Errorf("events have another text, of %d bytes", text.Len())
	}
}

// prompts are those that get lost or changed on bad ways (case 34).
var prompts = []string{
	"-v --help", "-", "two\n\nlines\n", `"quotes" 'of' \each\ kind $HOME $(ls) %s` + "`ls`", "a\u2028b\u2029c \U0001f600 é \t.",
	"  \n space around \n  ",
}

func getsPrompts(s *scene) {
	for i, prompt := range prompts {
		if r := s.run(fmt.Sprint(i), prompt); r.Code != 0 {
			s.t.Errorf("%q: %+v", prompt, r)
		}
		s.once(prompt)
	}
	long := strings.Repeat("0123456789 abcdefghijklmnopqrstuvwxyz \"\\é\n", 1<<20/44)
	if r := s.Pintle(long, "run", "-a", s.Agent, "-"); r.Code != 0 {
		s.t.Errorf("1 MB: exit %d, %.1000s", r.Code, r.Err)
	}
	s.once(long)
}

func tellsUsage(s *scene) {
	s.code(s.run("a", s.Prompts.Say("one")), 0)
	s.code(s.next("b", "a", s.Prompts.Say("two")), 0)
	for _, id := range []string{"a", "b"} {
		s.same("usage of "+id, s.show(id).Usage, s.Subject.Usage)
	}
}
