//go:build agents

package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// A house is a lab with a pintle in it: what follows is the real Codex, driven by the real pintle.
type house struct {
	*lab
	t            *testing.T
	pintle, home string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	l := newLab(t, "gpt-5.5")
	base := filepath.Dir(l.home)
	h := &house{lab: l, t: t, pintle: filepath.Join(base, "pintle"), home: filepath.Join(base, "h")}
	build := exec.Command("go", "build", "-o", h.pintle, "github.com/pintle/pintle/cmd/pintle")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(h.leave)
	return h
}

// leave ends the supervisor; nothing of the house is left then.
func (h *house) leave() {
	h.run("supervise", "stop")
	h.until("nothing is left", func() bool {
		left, _ := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == h.home })
		return len(left) == 0
	})
}

// told is how a verb ended.
type told struct {
	out, err string
	code     int
}

func (h *house) run(args ...string) told {
	h.t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(h.pintle, args...)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = h.dir, &out, &errs, time.Second
	// The directory of the native binary comes first: what -a codex finds is that.
	c.Env = []string{
		"PATH=" + filepath.Dir(h.binary) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Dir(h.home), "LANG=C.UTF-8",
		"PINTLE_HOME=" + h.home, "CODEX_HOME=" + h.lab.home,
	}
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("%v: %v", args, err)
	}
	return told{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

func (h *house) show(id string) (e api.Execution) {
	h.t.Helper()
	_ = json.Unmarshal([]byte(h.run("show", "--json", id).out), &e)
	return e
}

func (h *house) until(what string, fact func() bool) {
	h.t.Helper()
	for limit := time.Now().Add(patience); !fact(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("never came true: %s", what)
		}
	}
}

// running waits until a tool of the run's runs.
func (h *house) running(id string) {
	h.t.Helper()
	h.until("a tool runs", func() bool { return strings.Contains(h.run("logs", "--json", id).out, `"type":"tool_call"`) })
	h.until("its process is on record", func() bool { return h.show(id).Runtime != nil })
}

// prompts counts how often the model was asked with the prompt as the newest word.
func (h *house) prompts(prompt string) (n int) {
	for _, r := range h.asked(prompt) {
		if !r.FollowUp && !r.Retry {
			n++
		}
	}
	return n
}

// tools are the living processes with the word on their command line, Codex's and pintle's own left out.
func (h *house) tools(word string) (n int) {
	found, _ := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == h.home })
	for _, p := range found {
		if len(p.Args) > 0 && filepath.Base(p.Args[0]) == "sleep" && strings.Contains(strings.Join(p.Args, " "), word) {
			n++
		}
	}
	return n
}

func (h *house) want(r told, code int, out string) {
	h.t.Helper()
	if r.code != code || r.out != out {
		h.t.Errorf("exit %d, %q, %s; want %d, %q", r.code, r.out, r.err, code, out)
	}
}

func TestPintle_Text(t *testing.T) {
	h := newHouse(t)
	const prompt = "respond with exactly: hello world"
	h.want(h.run("run", "--id", "k", "-a", "codex", prompt), 0, "hello world\n")
	h.want(h.run("run", "--id", "k", "-a", "codex", prompt), 0, "hello world\n")
	if n := h.prompts(prompt); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	e := h.show("k")
	if e.Conversation == "" || e.AgentVersion == "" || e.Model != "gpt-5.5" {
		t.Errorf("%+v", e)
	}
	if a := h.launch(t); a.resume(e.Conversation).id != e.Conversation {
		t.Error("Codex does not know the conversation")
	}
}

func TestPintle_Permissions(t *testing.T) {
	h := newHouse(t)
	const prompt = "shell: echo x > made"
	if r := h.run("run", "--id", "k", "--approve", "none", "-a", "codex", prompt); r.code != 5 || !strings.Contains(r.err, "it asked to run") {
		t.Errorf("%+v", r)
	}
	if r := h.run("run", "--id", "d", "--approve", "none", "--unattended", "deny", "-a", "codex", prompt); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "made")); err == nil {
		t.Error("it was run all the same")
	}
	if r := h.run("run", "--id", "a", "--approve", "all", "-a", "codex", prompt); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "made")); err != nil {
		t.Error(err)
	}
}

// An interrupt alone leaves the command that runs; so does nothing here.
func TestPintle_InterruptAndStop(t *testing.T) {
	h := newHouse(t)
	for _, verb := range []string{"interrupt", "stop"} {
		h.run("run", "-d", "--id", verb, "--approve", "all", "-a", "codex", "sleep 61")
		h.running(verb)
		h.until("the command runs", func() bool { return h.tools("61") > 0 })
		if r := h.run(verb, verb); r.code != 0 {
			t.Errorf("%+v", r)
		}
		if e := h.show(verb); e.Outcome != "cancelled" || h.tools("61") > 0 {
			t.Errorf("%s: %s, %d commands left", verb, e.Outcome, h.tools("61"))
		}
	}
}

func (h *house) kill(id proc.Identity) {
	h.t.Helper()
	if err := proc.Signal(id, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
}

func TestPintle_SupervisorKilledInATurn(t *testing.T) {
	h := newHouse(t)
	const prompt = "shell: until test -e go; do sleep 0.05; done; echo over"
	h.run("run", "-d", "--id", "k", "--approve", "all", "-a", "codex", prompt)
	h.running("k")
	d, err := state.OpenExisting(h.home)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err != nil {
		t.Fatal(err)
	}
	h.kill(rec.Identity)
	if err := os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.run("run", "--id", "k", "--approve", "all", "-a", "codex", prompt); r.code != 0 || !strings.HasSuffix(r.out, "over\n") {
		t.Errorf("%+v", r)
	}
	if n := h.prompts(prompt); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestPintle_ServerKilledInATurn(t *testing.T) {
	h := newHouse(t)
	h.run("run", "-d", "--id", "k", "--approve", "all", "-a", "codex", "sleep 61")
	h.running("k")
	r := h.show("k").Runtime
	h.kill(proc.Identity{PID: r.PID, StartTicks: r.StartTicks, BootID: r.BootID})
	if r := h.run("wait", "k"); r.code != 14 {
		t.Errorf("%+v", r)
	}
	if n := h.tools("61"); n > 0 {
		t.Errorf("%d commands left", n)
	}
}

func TestPintle_Causes(t *testing.T) {
	h := newHouse(t)
	for prompt, want := range map[string]struct {
		code  int
		cause string
	}{
		"http: 401": {10, "auth"}, "http: 429": {1, "capacity"}, "http: 503": {1, "transient"}, "http: 400": {1, ""},
		"fail: context_length_exceeded too long": {1, "config"}, "fail: server_is_overloaded later": {1, "capacity"},
	} {
		r := h.run("run", "--json", "--id", prompt, "-a", "codex", prompt)
		if e := h.show(prompt); r.code != want.code || e.Cause == nil || e.Cause.Code != want.cause || e.Cause.Message == "" {
			t.Errorf("%s: exit %d, %+v", prompt, r.code, e.Cause)
		}
	}
}

// A model that never answers is ended by the idle deadline.
func TestPintle_IdleDeadline(t *testing.T) {
	h := newHouse(t)
	if r := h.run("run", "--id", "k", "--idle-timeout", "1s", "-a", "codex", "hang-headers"); r.code != 3 {
		t.Errorf("%+v", r)
	}
}
