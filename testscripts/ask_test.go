package testscripts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// asking is a codex that asks to run ls once the file ask is there, and notes the answer.
const asking = `#!/bin/sh
id() { echo "$1" | sed 's/^{"id":\("[^"]*"\).*/\1/'; }
read -r line; echo "{\"id\":$(id "$line"),\"result\":{\"userAgent\":\"pintle/9.9.9 (sh)\"}}"
read -r line; read -r line; echo "{\"id\":$(id "$line"),\"result\":{\"thread\":{\"id\":\"T\"},\"model\":\"m\"}}"
read -r line; echo "{\"id\":$(id "$line"),\"result\":{\"turn\":{\"id\":\"U\"}}}"
echo '{"method":"turn/started","params":{"threadId":"T","turn":{"id":"U"}}}'
touch begun
until test -e ask; do sleep 0.02; done
echo '{"method":"item/agentMessage/delta","params":{"itemId":"m1","delta":"I will look"}}'
echo '{"method":"item/commandExecution/requestApproval","id":0,"params":{"itemId":"c1","command":"ls","reason":"to see"}}'
read -r answer; echo "$answer" >> answers
echo '{"method":"item/agentMessage/delta","params":{"itemId":"m2","delta":"looked"}}'
echo '{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"U","status":"completed"}}}'
while read -r line; do :; done
`

// seat is somebody who sits at a terminal, in front of a verb.
type seat struct {
	s    *stage
	verb *exec.Cmd
	tty  *os.File

	mu   sync.Mutex
	seen strings.Builder
}

// spoken is a verb that finds the agent that asks.
func (s *stage) spoken(args ...string) *exec.Cmd {
	s.t.Helper()
	bin := filepath.Join(s.work, "bin")
	err := os.MkdirAll(bin, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "codex"), []byte(asking), 0o700)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.command(args...)
	c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"), "USER=ann")
	return c
}

// asks has the agent ask.
func (s *stage) asks() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, "ask"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// parked is a run that waits for an answer.
func (s *stage) parked() {
	s.t.Helper()
	s.asks()
	if err := s.spoken("run", "--id", "k", "--unattended", "park", "-a", "codex", "look").Run(); err == nil {
		s.t.Fatal("it does not wait")
	}
}

// sit gives an order to the agent that asks, at a terminal.
func sit(s *stage, args ...string) *seat {
	s.t.Helper()
	return seated(s, s.spoken(append([]string{"run", "--id", "k", "-a", "codex"}, args...)...))
}

// seated starts a verb at a terminal.
func seated(s *stage, c *exec.Cmd) *seat {
	s.t.Helper()
	tty, err := pty.Start(c)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &seat{s: s, verb: c, tty: tty}
	read := make(chan struct{})
	go func() { defer close(read); p.read() }()
	s.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = tty.Close()
		<-read
	})
	return p
}

// read takes in what comes, until nobody has the terminal open any more.
func (p *seat) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.tty.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sees waits for words on the terminal, n times in all.
func (p *seat) sees(words string, n int) {
	p.s.t.Helper()
	p.s.until("the terminal shows "+words, func() bool { return strings.Count(p.text(), words) == n })
}

func (p *seat) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// types types a line, or a key.
func (p *seat) types(keys string) {
	p.s.t.Helper()
	if _, err := p.tty.WriteString(keys); err != nil {
		p.s.t.Fatal(err)
	}
}

// leaves waits until the verb exits.
func (p *seat) leaves(code int) {
	p.s.t.Helper()
	err := p.verb.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.s.t.Fatal(err)
	}
	if got := p.verb.ProcessState.ExitCode(); got != code {
		p.s.t.Errorf("exit code %d, want %d:\n%s", got, code, p.text())
	}
}

// heard is what the agent was answered.
func (p *seat) heard() string {
	data, _ := os.ReadFile(filepath.Join(p.s.work, "answers"))
	m := regexp.MustCompile(`"decision":"(\w+)"`).FindAllStringSubmatch(string(data), -1)
	var words []string
	for _, found := range m {
		words = append(words, found[1])
	}
	return strings.Join(words, " ")
}

const question = "pintle: codex asks to run ls (to see). allow? [y/N/a always/d details] "

// Whoever sits at the terminal is asked, and what he says counts.
func TestAsk_TheAnswerIsWhatWasTyped(t *testing.T) {
	for name, c := range map[string]struct {
		keys  []string // each for one question
		heard string
	}{
		"yes":           {[]string{"y\n"}, "accept"},
		"the word":      {[]string{"YES\n"}, "accept"},
		"no":            {[]string{"n\n"}, "decline"},
		"nothing":       {[]string{"\n"}, "decline"},
		"end of input":  {[]string{"\x04"}, "decline"},
		"details first": {[]string{"d\n", "y\n"}, "accept"},
		"another word":  {[]string{"perhaps\n", "n\n"}, "decline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(newStage(t, ""), "look")
			p.s.asks()
			for i, keys := range c.keys {
				p.sees(question, i+1)
				p.types(keys)
			}
			p.leaves(0)
			if got := p.heard(); got != c.heard {
				t.Errorf("the agent heard %q, want %q", got, c.heard)
			}
			if strings.HasPrefix(c.keys[0], "d") {
				p.sees("kind: execute", 1)
			}
			p.sees("I will look\r\n"+question, 1)
			p.sees("looked\r\n", 1)
		})
	}
}

// What a rule decides on nobody is asked, not for an instant.
func TestAsk_NotWhatARuleDecides(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	rules := filepath.Join(s.work, "rules.toml")
	if err := os.WriteFile(rules, []byte("[[allow]]\ncommand = \"ls\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.asks()
	p := sit(s, "-v", "--policy", rules, "look")
	p.leaves(0)
	p.sees("codex asks to run ls (to see)", 1)
	p.sees("allowed by rules.toml:1", 1)
	if text := p.text(); strings.Contains(text, "allow?") || strings.Contains(text, "waiting: codex") || p.heard() != "accept" {
		t.Errorf("%s\nthe agent heard %q", text, p.heard())
	}
}

// What was typed before the question was seen answers nothing.
func TestAsk_WhatWasTypedBeforeIsForgotten(t *testing.T) {
	t.Parallel()
	p := sit(newStage(t, ""), "look")
	p.s.until("the turn has begun", func() bool { return exists(filepath.Join(p.s.work, "begun")) })
	p.types("y\n")
	p.sees("y\r\n", 1) // the terminal's echo
	p.s.asks()
	p.sees(question, 1)
	p.types("n\n")
	p.leaves(0)
	if got := p.heard(); got != "decline" {
		t.Errorf("the agent heard %q, want decline", got)
	}
}

// An answer from elsewhere counts, and the terminal says whose it is (R11).
func TestR11_AnsweredElsewhereWhileTheTerminalAsks(t *testing.T) {
	t.Parallel()
	p := sit(newStage(t, ""), "look")
	p.s.asks()
	p.sees(question, 1)
	c := p.s.command("allow", "k")
	c.Env = append(c.Env, "USER=bob")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.sees("pintle: allowed by bob", 1)
	p.leaves(0)
	if got := p.heard(); got != "accept" {
		t.Errorf("the agent heard %q, want accept", got)
	}
}

// Ctrl-C stops the run also while something is asked.
func TestAsk_CtrlCStopsTheRun(t *testing.T) {
	t.Parallel()
	p := sit(newStage(t, ""), "look")
	p.s.asks()
	p.sees(question, 1)
	p.types("\x03")
	p.leaves(130)
	if e := p.s.ending("k"); e.Outcome != "cancelled" {
		t.Errorf("ended as %+v", e)
	}
	p.sees(question, 1)
	p.s.quiet()
}

// With -q nobody is asked: what becomes of it was said with the order.
func TestAsk_QuietAsksNothing(t *testing.T) {
	t.Parallel()
	p := sit(newStage(t, ""), "-q", "--unattended", "deny", "look")
	p.s.asks()
	p.leaves(0)
	if got := p.heard(); got != "decline" {
		t.Errorf("the agent heard %q, want decline", got)
	}
	p.sees("allow?", 0)
}

// At a terminal it is said that a next try is waited for, without -v too; with -q it is not (B2).
func TestB2_TheTerminalIsToldOfTheNextTry(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		told  int
	}{"plain": {nil, 1}, "quiet": {[]string{"-q"}, 0}, "verbose": {[]string{"-v"}, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			verb := s.spoken(append([]string{"run", "--id", "k", "-a", "codex", "once fail serverOverloaded; say done"}, c.flags...)...)
			config := filepath.Join(s.work, "config.toml")
			verb.Env = append(verb.Env, "PINTLE_CONFIG="+config)
			for path, text := range map[string]string{
				config:                                "[recovery]\ndelay = \"50ms\"\n",
				filepath.Join(s.work, "bin", "codex"): "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(binary), "standin") + "\n",
			} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p := seated(s, verb)
			p.leaves(0)
			p.sees("done\r\n", 1)
			p.sees("pintle: k: waiting: tries again at ", c.told)
		})
	}
}
