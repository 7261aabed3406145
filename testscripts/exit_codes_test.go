package testscripts

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
)

// An exiting is one way to an exit code.
type exiting struct {
	exit int
	code string // of the error, or the outcome, that the last line of --json names; "" if there is none
	act  func(*stage) *exec.Cmd
}

// begin has a run begin that goes on until it is stopped, and does not tell a signal from another.
func (s *stage) begin(key string) {
	s.t.Helper()
	s.verb("run", "-d", "--id", key, "-a", "command", "--", "sh", "-c", "touch begun; exec sleep 600")
	s.until("it has begun", func() bool { return exists(filepath.Join(s.work, "begun")) })
	s.until("its process is on record", func() bool {
		out, _ := s.quietly("show", "--field", "runtime.pid", key)
		return out != ""
	})
}

// json is a verb that prints JSON.
func (s *stage) json(verb string, args ...string) *exec.Cmd {
	return s.command(append([]string{verb, "--json"}, args...)...)
}

// damage writes another text to a file of the state directory.
func (s *stage) damage(path string, change func(string) string) {
	s.t.Helper()
	path = filepath.Join(s.home, path)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(change(string(data))), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// copyRun puts a run that has ended under another key, which may be of a form that no caller can give.
func (s *stage) copyRun(from, to string) {
	s.t.Helper()
	there := filepath.Join(s.home, "executions", session.Folder(session.Local, to))
	err := os.CopyFS(there, os.DirFS(filepath.Join(s.home, "executions", session.Folder(session.Local, from))))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{record.SpecFile(filepath.Base(there)), record.StatusFile(filepath.Base(there))} {
		s.damage(path, func(text string) string { return strings.Replace(text, `"id":"`+from+`"`, `"id":"`+to+`"`, 1) })
	}
}

// signal sends a signal to a process of the state directory, chosen by its first argument.
func (s *stage) signal(role string, sig syscall.Signal) {
	s.t.Helper()
	s.until("a "+role+" was signalled", func() bool {
		for _, p := range s.tagged() {
			if len(p.Args) > 1 && p.Args[1] == role && proc.Signal(p.Identity, sig) == nil {
				return true
			}
		}
		return false
	})
}

// unknown leaves a run of which nobody knows whether it ran.
func (s *stage) unknown() []string {
	s.crash = "kill:shim.starting@" + filepath.Join(s.dir, "flag")
	order := []string{"--id", "k", "-a", "command", "--", "true"}
	s.verb(append([]string{"run"}, order...)...)
	return order
}

// signalled is a run whose command, once it has begun, signals the verb that ordered it.
func (s *stage) signalled(sig string) *exec.Cmd {
	c := s.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `echo $$ > verb.pid
exec "$@"`, "sh", binary, "run", "--json", "-a", "command", "--", "sh", "-c", "kill -" + sig + " $(cat verb.pid); exec sleep 600"}
	return c
}

var exitings = map[string]exiting{
	"completed": {0, "completed", func(s *stage) *exec.Cmd { return s.json("run", "-a", "command", "--", "true") }},
	"stopped already": {0, "", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		return s.json("stop", "k")
	}},
	"another status": {1, "failed", func(s *stage) *exec.Cmd { return s.json("run", "-a", "command", "--", "sh", "-c", "exit 42") }},
	"of several not all completed": {1, "", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "good", "-a", "command", "--", "true")
		s.verb("run", "--id", "late", "--timeout", "50ms", "-a", "command", "--", "sleep", "600")
		return s.command("wait", "good", "late")
	}},
	"no command":   {2, "usage", func(s *stage) *exec.Cmd { return s.json("run", "-a", "command") }},
	"no such verb": {2, "usage", func(s *stage) *exec.Cmd { return s.json("rerun") }},
	"deadline": {3, "timed_out", func(s *stage) *exec.Cmd {
		return s.json("run", "--timeout", "50ms", "-a", "command", "--", "sleep", "600")
	}},
	"no such run": {4, "not_found", func(s *stage) *exec.Cmd { return s.json("show", "k") }},
	"several are meant": {4, "ambiguous", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		for _, key := range []string{"r-aaaa000000000000", "r-aaaa000000000001"} {
			s.copyRun("k", key)
		}
		return s.json("show", "r-aaaa")
	}},
	"denied": {5, "denied", func(s *stage) *exec.Cmd {
		s.asks()
		return s.spoken("run", "--json", "-a", "codex", "look")
	}},
	"answered before": {6, "already_resolved", func(s *stage) *exec.Cmd {
		s.parked()
		s.verb("deny", "k")
		return s.json("allow", "k")
	}},
	"another order": {6, "execution_conflict", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		return s.json("run", "--id", "k", "-a", "command", "--", "false")
	}},
	"given before": {6, "execution_exists", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		return s.json("run", "--id", "k", "--if-exists", "fail", "-a", "command", "--", "true")
	}},
	"retry of what runs": {7, "session_busy", func(s *stage) *exec.Cmd {
		s.begin("k")
		return s.json("retry", "k")
	}},
	"a session in which another way goes on": {7, "session_busy", func(s *stage) *exec.Cmd {
		s.parked()
		return s.spoken("send", "--json", "-m", "other", "k", "more")
	}},
	"a second supervisor": {7, "session_owned", func(s *stage) *exec.Cmd {
		s.serving()
		return s.command("supervise", "run", "--json")
	}},
	"nobody knows whether it ran": {8, "unknown", func(s *stage) *exec.Cmd { return s.json("run", s.unknown()...) }},
	"the next attempt of that": {8, "outcome_unknown", func(s *stage) *exec.Cmd {
		return s.json("run", append([]string{"--attempt", "2"}, s.unknown()...)...)
	}},
	"no such command": {10, "agent_unavailable", func(s *stage) *exec.Cmd { return s.json("run", "-a", "command", "--", "./nothing") }},
	"no such agent":   {10, "agent_unavailable", func(s *stage) *exec.Cmd { return s.json("run", "-a", "nobody", "--", "true") }},
	"no interpreter": {10, "failed", func(s *stage) *exec.Cmd {
		if err := os.WriteFile(filepath.Join(s.work, "broken"), []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
			s.t.Fatal(err)
		}
		return s.json("run", "-a", "command", "--", "./broken")
	}},
	"a damaged record": {11, "state_corrupt", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		s.damage(record.StatusFile(session.Folder(session.Local, "k")), func(string) string { return "" })
		return s.json("show", "k")
	}},
	"a newer layout": {11, "state_newer", func(s *stage) *exec.Cmd {
		s.verb("run", "--id", "k", "-a", "command", "--", "true")
		s.verb("supervise", "stop")
		s.damage("layout.json", func(text string) string { return strings.Replace(text, `"version":1`, `"version":2`, 1) })
		return s.json("show", "k")
	}},
	"somebody's directory": {11, "state_not_ours", func(s *stage) *exec.Cmd {
		err := os.Mkdir(s.home, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.home, "thesis"), nil, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return s.json("ps")
	}},
	"a frozen supervisor": {12, "supervisor_unreachable", func(s *stage) *exec.Cmd {
		s.begin("k")
		s.signal("supervise", syscall.SIGSTOP)
		return s.json("stop", "k")
	}},
	"stopped": {13, "cancelled", func(s *stage) *exec.Cmd {
		s.begin("k")
		s.verb("stop", "k")
		return s.json("result", "k")
	}},
	"the host died": {14, "host_died", func(s *stage) *exec.Cmd {
		s.begin("k")
		s.verb("supervise", "stop")
		return s.json("result", "k")
	}},
	"the shim died": {14, "agent_died", func(s *stage) *exec.Cmd {
		s.begin("k")
		s.signal("shim", syscall.SIGKILL)
		s.verb("wait", "k")
		return s.json("result", "k")
	}},
	"not ended": {15, "waiting", func(s *stage) *exec.Cmd {
		s.begin("k")
		return s.json("result", "k")
	}},
	"an approval": {15, "waiting", func(s *stage) *exec.Cmd {
		s.parked()
		return s.json("wait", "k")
	}},
	"the verb's own deadline": {124, "timeout", func(s *stage) *exec.Cmd {
		s.begin("k")
		return s.json("wait", "--timeout", "50ms", "k")
	}},
	"SIGINT":  {130, "cancelled", func(s *stage) *exec.Cmd { return s.signalled("INT") }},
	"SIGTERM": {143, "cancelled", func(s *stage) *exec.Cmd { return s.signalled("TERM") }},
}

// unreached are the exit codes of the README to which no way leads yet.
var unreached = map[int]string{
	9: "budgets are of agents",
}

// Every exit code that README.md promises is reached in the ways that it names, and no other is (B6).
func TestB6_EveryExitCode(t *testing.T) {
	promised := promisedExits(t)
	reached := maps.Clone(unreached)
	for name, e := range exitings {
		reached[e.exit] = name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			c := e.act(s)
			out, err := c.Output()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := c.ProcessState.ExitCode(); got != e.exit {
				t.Errorf("exit code %d, want %d: %s", got, e.exit, out)
			}
			if got := lastCode(out); got != e.code {
				t.Errorf("code %q, want %q: %s", got, e.code, out)
			}
			if e.code != "" && e.exit < 128 && !slices.Contains(promised[e.exit], e.code) {
				t.Errorf("README.md has no %s for exit code %d", e.code, e.exit)
			}
		})
	}
	if got, want := slices.Sorted(maps.Keys(reached)), slices.Sorted(maps.Keys(promised)); !slices.Equal(got, want) {
		t.Errorf("exit codes %v, README.md promises %v", got, want)
	}
}

// lastCode is what the last line of --json names: the code of an error, or how a run ended.
func lastCode(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var last struct{ Code, Outcome string }
	_ = json.Unmarshal([]byte(lines[len(lines)-1]), &last)
	return last.Code + last.Outcome
}

// promisedExits has the exit codes of the README, each with the codes and the outcomes that it names.
func promisedExits(t *testing.T) map[int][]string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(data), "\n## Exit codes\n")
	part, _, _ = strings.Cut(part, "\n## ")
	promised := map[int][]string{}
	word := regexp.MustCompile("`(\\w+)`")
	for _, row := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|(.*)$`).FindAllStringSubmatch(part, -1) {
		for _, number := range strings.Split(row[1], ", ") {
			exit, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			promised[exit] = []string{}
			for _, m := range word.FindAllStringSubmatch(row[2], -1) {
				promised[exit] = append(promised[exit], m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile("`(\\w+)` (\\d+)(?: \\((\\d+) )?").FindAllStringSubmatch(part, -1) {
		for _, number := range m[2:] {
			if exit, err := strconv.Atoi(number); err == nil {
				promised[exit] = append(promised[exit], m[1])
			}
		}
	}
	return promised
}
