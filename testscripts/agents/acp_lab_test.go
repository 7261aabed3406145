//go:build agents

package agents

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
)

// An agentLab is a lab with an agent other than Codex in it, which tests speak to as pintle does, but by hand: what they find is the
// agent's and the model's doing.
type agentLab struct {
	*lab
	args []string
	env  []string
}

// A converser has one turn after the other in a conversation.
type converser interface {
	// turn gives a prompt, allows all that is asked for, and returns when the turn is over.
	turn(prompt string) outcome
}

// outcome is how a turn ended: with what the agent said, or why not.
type outcome struct {
	text, failure string
	beside        string // what of the text was in no message
	tools         int    // that were called
}

// A set-up is how an agent is started, and how it is spoken to.
type setUp struct {
	guest
	args []string
	env  []string
	meet func(l *agentLab, p *peer) converser
}

// setUps are those of all agents by their names.
var setUps = map[string]setUp{
	"claude": {guest: claudeCode, meet: meetClaude, args: []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio",
	}},
	"opencode":   {guest: openCode, meet: meetACP, args: []string{"acp"}},
	"gemini":     {guest: geminiCLI, meet: meetACP, args: []string{"--acp"}, env: []string{"GEMINI_CLI_NO_RELAUNCH=true"}},
	"claude-acp": {guest: claudeACP, meet: meetACP},
	"codex-acp":  {guest: codexACP, meet: meetCodexACP},
	"pi":         {guest: piAgent, meet: meetPi, args: []string{"--mode", "rpc", "--provider", "fake", "--model", "fake-model"}},
}

// newAgentLab makes a lab with the named agent, whose model is asked nothing that it does not know.
func newAgentLab(t testing.TB, name string) *agentLab {
	t.Helper()
	s := setUps[name]
	l, vars := s.lab(t)
	t.Cleanup(func() {
		for _, m := range l.model.Mistakes() {
			t.Errorf("the model was asked by mistake: %s", m)
		}
	})
	if err := os.MkdirAll(filepath.Join(l.home, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &agentLab{lab: l, args: s.args, env: slices.Concat(vars, s.env)}
}

// environ is all that the agent has of an environment.
func (l *agentLab) environ() []string {
	tmp := filepath.Join(l.home, "tmp")
	return append([]string{
		"PATH=" + filepath.Dir(l.binary) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + l.home, "LANG=C.UTF-8", "TMPDIR=" + tmp, "CLAUDE_CODE_TMPDIR=" + tmp,
	}, l.env...)
}

// start starts the agent, behind the words of a command that may watch it. It ends with the test.
func (l *agentLab) start(t testing.TB, behind ...string) *appServer {
	t.Helper()
	words := slices.Concat(behind, []string{l.binary}, l.args)
	a := &appServer{t: t, foreign: true}
	a.cmd = exec.Command(words[0], words[1:]...)
	a.cmd.Dir, a.cmd.Env = l.dir, l.environ()
	t.Cleanup(func() { l.leave(t) })
	a.begin(t)
	return a
}

// leave waits for the agent's own helpers, which outlive it for a moment, and write settings at their end.
func (l *agentLab) leave(t testing.TB) {
	t.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		alive, err := proc.WithToken("HOME", func(v string) bool { return v == l.home })
		if err != nil {
			t.Error(err)
		}
		if len(alive) == 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("never left: %v", alive)
		}
	}
}

// converses has an agent take a text, use a tool, and be refused by its model, which it tells in these words. Then it has the
// conversation that it should have.
func converses(t *testing.T, name, refusal string) {
	t.Helper()
	l := newAgentLab(t, name)
	s := setUps[name].meet(l, &peer{appServer: l.start(t)})
	text, tool, failure := "respond with exactly: hello world", "shell: echo made > ran", "http: 400"+setUps[name].again
	if got := s.turn(text); got.text != "hello world" || got.failure != "" || got.tools != 0 {
		t.Errorf("%s: %+v", text, got)
	}
	if got := s.turn(tool); got.failure != "" || got.tools != 1 {
		t.Errorf("%s: %+v", tool, got)
	}
	if made, err := os.ReadFile(filepath.Join(l.dir, "ran")); err != nil || string(made) != "made\n" {
		t.Errorf("the command made %q, %v", made, err)
	}
	if got := s.turn(failure); !strings.Contains(got.failure, refusal) || refusal == "" {
		t.Errorf("%s: %+v", failure, got)
	}
	for prompt, earlier := range map[string][]string{text: nil, tool: {text}, failure: {text, tool}} {
		if asked := l.asked(prompt); len(asked) == 0 || !slices.Equal(asked[0].Earlier, earlier) {
			t.Errorf("%s: the model was asked %+v", prompt, asked)
		}
	}
}

// A peer is an agent whose lines are taken one after the other.
type peer struct {
	*appServer
	taken int
}

// next is the next line, decoded.
func next[T any](p *peer) (v T) {
	p.t.Helper()
	line := p.line()
	if err := json.Unmarshal(line, &v); err != nil {
		p.t.Fatalf("%.300s: %v", line, err)
	}
	return v
}

func (p *peer) line() []byte {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		lines, changed := p.lines, p.changed
		p.mu.Unlock()
		if p.taken < len(lines) {
			p.taken++
			return lines[p.taken-1]
		}
		select {
		case <-changed:
		case <-p.ended:
			p.fail("a line", errors.New("the agent has ended"))
		case <-limit:
			p.fail("a line", errors.New("none comes"))
		}
	}
}
