package testscripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/proc"
)

// A play is a sequence of verbs whose end must not depend on who was killed meanwhile. It names the keys
// that it gave.
type play struct {
	name string
	act  func(*stage) []string
	// only chooses the points at which the play is disturbed; nil: all that it passes.
	only func(point string) bool
	last bool // the last passing of each point will do: the others are as in another play
	// quick chooses the points of a walk that is not to try every passing; nil: as only says.
	quick func(point string) bool
}

func plays() []play {
	return []play{
		{name: "Run", act: actRun},
		{name: "Stop", act: actStop, last: true},
		{name: "Attempts", act: actAttempts, last: true},
		{name: "Secret", act: actSecret, last: true},
		{name: "Agent", act: actAgent, last: true},
		{name: "Retries", act: actRetries, only: func(point string) bool {
			return strings.HasPrefix(point, "supervisor.") || strings.HasPrefix(point, "shim.stdin") || point == "journal.append"
		}, last: true},
		{name: "Share", act: actShare, only: func(point string) bool {
			return strings.HasPrefix(point, "supervisor.") || strings.HasPrefix(point, "shim.") || point == "journal.append"
		}, last: true},
		{name: "Limit", act: actLimit, only: func(point string) bool {
			return strings.HasPrefix(point, "supervisor.") || strings.HasPrefix(point, "state.")
		}, last: true},
		{name: "Flood", act: actFlood, only: func(point string) bool {
			return strings.HasPrefix(point, "supervisor.checkpoint") || point == "journal.rolled"
		}},
	}
}

// TestCrashPoints plays every play undisturbed, and then once for each point that is passed,
// with whoever passes it killed there. The ends must be the same, but for what the death of a shim means.
func TestCrashPoints(t *testing.T) { walk(t, plays()) }

// secret is a value that no file may hold once the run has ended.
const secret = "hunter2-correct-horse"

func actRun(s *stage) []string {
	for range 2 { // the second is a repeat
		s.verb("run", "--id", "c", "-a", "command", "--", "sh", "-c", "echo x >> launches.c; echo out; echo err >&2; exit 0")
	}
	return []string{"c"}
}

func actStop(s *stage) []string {
	order := []string{"run", "-d", "--id", "s", "-a", "command", "--", "sh", "-c", "echo x >> launches.s; exec sleep 100"}
	s.verb(order...)
	s.until("begun or over", func() bool {
		if s.launches("s") > 0 || s.ending("s").Phase == "ended" {
			return true
		}
		if left := s.tagged(); len(left) == 0 {
			s.verb(order...) // the supervisor was killed before a shim was there to start another
		}
		time.Sleep(20 * time.Millisecond)
		return false
	})
	s.verb("stop", "s")
	return []string{"s"}
}

func actAttempts(s *stage) []string {
	for _, attempt := range []string{"1", "2"} {
		s.verb("run", "--id", "f", "--attempt", attempt, "-a", "command", "--", "sh", "-c", "echo x >> launches.f; echo no; exit 3")
	}
	return []string{"f"}
}

func actSecret(s *stage) []string {
	s.verb("run", "--id", "k", "--secret", "TOKEN", "-a", "command", "--", "sh", "-c", `echo x >> launches.k; echo "it is $TOKEN."`)
	return []string{"k"}
}

// prompts are what the stand-in for codex is told, by key.
var prompts = map[string]string{"a": "usage 1 2; env TOKEN", "p": "ask ls; tool pwd", "r": "say begun; once die; say done",
	"one": "say 1", "two": "say 2", "three": "tool pwd; say 3"}

// actAgent has two runs in one conversation: the process of the first is kept for the second, which asks and is answered.
func actAgent(s *stage) []string {
	for range 2 {
		s.verb("run", "--id", "a", "--warm", "1m", "--secret", "TOKEN", "-a", "codex", prompts["a"])
	}
	send := []string{"send", "--id", "p", "--secret", "TOKEN", "--unattended", "park", "--warm", "200ms", "a", prompts["p"]}
	s.verb(send...)
	s.until("it asks, or is over", func() bool {
		out, _ := s.quietly("show", "--json", "p")
		return strings.Contains(out, `"needs_approval"`) || s.ending("p").Phase == "ended"
	})
	s.verb("allow", "p")
	s.verb(send...)
	return []string{"a", "p"}
}

// actRetries has an agent that dies in its turn and goes on.
func actRetries(s *stage) []string {
	s.verb("run", "--id", "r", "--retries", "1", "-a", "codex", prompts["r"])
	return []string{"r"}
}

// actShare has three runs in two conversations of one process: the second comes into that of the first, which is kept, and
// goes, and the third takes that over.
func actShare(s *stage) []string {
	for range 2 {
		s.verb("run", "--id", "one", "--share", "--warm", "1m", "-a", "codex", prompts["one"])
	}
	for range 2 {
		s.verb("run", "--id", "two", "--share", "-a", "codex", prompts["two"])
	}
	for range 2 {
		s.verb("send", "--id", "three", "--share", "--warm", "100ms", "one", prompts["three"])
	}
	return []string{"one", "two", "three"}
}

// actLimit has one run wait for another one's slot, and be stopped, and another have it.
func actLimit(s *stage) []string {
	s.configure("[limits]\nrunning = 1\n")
	s.verb("run", "-d", "--id", "x", "-a", "command", "--", "sh", "-c", "echo x >> launches.x; until [ -e go ]; do sleep 0.01; done")
	s.verb("run", "-d", "--id", "y", "-a", "command", "--", "sh", "-c", "echo x >> launches.y")
	s.verb("run", "-d", "--id", "z", "-a", "command", "--", "sh", "-c", "echo x >> launches.z")
	s.verb("stop", "y")
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.verb("wait", "x", "z")
	return []string{"x", "y", "z"}
}

// actFlood says enough for checkpoints and a second segment.
func actFlood(s *stage) []string {
	s.verb("run", "--id", "b", "-o", "out", "-a", "command", "--", "sh", "-c",
		"echo x >> launches.b; seq -f '%099.0f' 100000")
	return []string{"b"}
}

// end is all that counts of how a key ended.
type end struct {
	Phase    string
	Outcome  string
	ExitCode int
	Attempt  int
	Text     string
	Out, Err string // by logs
	Launches int
	Verdicts int  // turn_ended in the journal
	Lost     bool // output_lost in it
}

func walk(t *testing.T, plays []play) {
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			log := filepath.Join(s.dir, "passed")
			s.crash = "log:" + log
			want := s.play(p)
			for _, point := range points(t, log, p) {
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					stages <- struct{}{}
					defer func() { <-stages }()
					disturbed(t, p, point, want)
				})
			}
		})
	}
}

// stages bounds how many plays go on at once: they mostly wait.
var stages = make(chan struct{}, 8)

// every, when set, has each passing of each point tried; it takes some minutes.
var every = os.Getenv("PINTLE_EVERY_CRASH") != ""

// points names the passings that are tried, NAME#N: the first and the last of those that were logged.
func points(t *testing.T, log string, p play) (all []string) {
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for name := range strings.Lines(string(data)) {
		counts[strings.TrimSpace(name)]++
	}
	for name, n := range counts {
		for i := 1; i <= n; i++ {
			if (p.only == nil || p.only(name)) && (every || p.quick == nil || p.quick(name)) && (every || i == n || (i == 1 && !p.last)) {
				all = append(all, fmt.Sprintf("%s#%d", name, i))
			}
		}
	}
	slices.Sort(all)
	return all
}

func disturbed(t *testing.T, p play, point string, want map[string]end) {
	s := newStage(t, "")
	flag := filepath.Join(s.dir, "flag")
	s.crash = "kill:" + point + "@" + flag
	got := s.play(p)
	passes, _ := os.ReadFile(flag)
	who := strings.Trim(string(passes), ".\n")
	name, _, _ := strings.Cut(point, "#")
	for key, w := range want {
		g := got[key]
		if key == trees && who == "shim" {
			continue // what it says depends on how the runs ended; that nothing is left over was looked at
		}
		if key == trees && g != w {
			t.Errorf("%q killed: what is left is\n%s, want\n%s", who, g.Text, w.Text)
			continue
		}
		if slices.Contains([]string{"k", "a", "p"}, key) && g.Lost && who == "shim" {
			// Who knew the secrets was killed: what could not be masked was dropped, and the journal says so (E5).
			g.Lost, g.Text, g.Out = false, w.Text, w.Out
		}
		if who == "shim" {
			shimKilled(t, name, key, w, g)
		} else if g != w {
			t.Errorf("%q killed: %s ended as\n%+v, want\n%+v", who, key, g.short(), w.short())
		}
	}
}

func (e end) short() end {
	for _, s := range []*string{&e.Text, &e.Out} {
		if len(*s) > 200 {
			*s = fmt.Sprintf("%d bytes", len(*s))
		}
	}
	return e
}

// shimKilled judges the end of a run whose shim was killed. What had not begun is begun again; what may have
// begun never is.
func shimKilled(t *testing.T, point, key string, want, got end) {
	t.Helper()
	allowed := []string{want.Outcome, "agent_died", "unknown"}
	if !several(key) { // else only one process was hit, and it is not told which
		switch point {
		case "shim.began", "shim.locked", "shim.told", "shim.recorded":
			allowed = []string{want.Outcome}
		case "shim.starting", "shim.forked":
			allowed = []string{"unknown"}
		case "shim.announced", "shim.exited", "shim.swept", "shim.drained":
			allowed = []string{"agent_died"}
			if point == "shim.exited" { // its identity may not have been on disk yet
				allowed = append(allowed, "unknown")
			}
			if key == "s" && point != "shim.announced" { // the stop had been dispatched
				allowed = append(allowed, "cancelled")
			}
		}
	}
	switch {
	case !slices.Contains(allowed, got.Outcome):
		t.Errorf("the shim was killed: %s is %s, want one of %v\n%+v", key, got.Outcome, allowed, got.short())
	case got.Launches > want.Launches:
		t.Errorf("%s was launched %d times, want %d at most", key, got.Launches, want.Launches)
	case point == "shim.starting" && !several(key) && got.Launches != 0:
		t.Errorf("%s was launched by a shim that was dead", key)
	case got.Outcome == want.Outcome && !several(key) && got != want:
		t.Errorf("the shim was killed: %s ended as\n%+v, want\n%+v", key, got.short(), want.short())
	case got.Phase != "ended" || got.Verdicts < 1:
		t.Errorf("%s has no end: %+v", key, got.short())
	}
}

// several reports whether a key's play has more than one shim.
func several(key string) bool { return len(key) > 1 || strings.Contains("faprxyz", key) }

// stage is a state directory with a place to work in.
type stage struct {
	t                      testing.TB
	dir, home, work, crash string
	repo                   string // a repository whose worktrees the play is about; "" without
}

func newStage(t *testing.T, crash string) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "pc-")
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: dir, home: filepath.Join(dir, "h"), work: filepath.Join(dir, "w"), crash: crash}
	bin := filepath.Join(dir, "bin")
	codex := "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(binary), "standin") + "\n"
	err = errors.Join(os.Mkdir(s.work, 0o700), os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "codex"), []byte(codex), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	config := "[deadlines]\nstop_term = \"2s\"\n[recovery]\ndelay = \"50ms\"\n"
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.strike)
	return s
}

// strike ends what a failed play left.
func (s *stage) strike() {
	_ = killAll(s.home)
	if s.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(s.home, "supervisor.log"))
		s.t.Logf("supervisor.log:\n%s", log)
	}
	_ = os.RemoveAll(s.dir)
}

// play acts, and returns how each key ended once all is quiet.
func (s *stage) play(p play) map[string]end {
	s.t.Helper()
	ends := map[string]end{}
	for _, key := range p.act(s) {
		s.until(key+" has ended", func() bool { return s.ending(key).Phase == "ended" })
		ends[key] = s.full(key)
	}
	if s.repo != "" {
		s.settle()
	}
	s.quiet()
	if s.repo != "" {
		ends[trees] = end{Phase: "ended", Verdicts: 1, Text: s.landscape()}
	}
	return ends
}

// quiet waits until nothing but a supervisor is left, ends that one, and looks for what must not be left.
func (s *stage) quiet() {
	s.t.Helper()
	s.until("nothing of a run is left", func() bool {
		left := s.tagged()
		return len(left) <= supervisors(left)
	})
	s.verb("supervise", "stop")
	s.until("no supervisor is left", func() bool { return len(s.tagged()) == 0 })
	entries, _ := os.ReadDir(filepath.Join(s.home, "runtimes"))
	for _, e := range entries {
		s.t.Errorf("runtimes/%s is left", e.Name())
	}
	_ = filepath.WalkDir(s.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(secret)) {
			s.t.Errorf("%s holds the secret", path)
		}
		return nil
	})
}

func (s *stage) tagged() []proc.Tagged {
	left, err := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == s.home })
	if err != nil {
		s.t.Fatal(err)
	}
	return left
}

// until waits for a fact.
func (s *stage) until(what string, fact func() bool) {
	s.t.Helper()
	for limit := time.Now().Add(patience / 6); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			s.t.Fatalf("never came true: %s; left: %+v", what, s.tagged())
		}
	}
}

// verb runs a verb, again if it was killed: that is all that a caller has to do.
func (s *stage) verb(args ...string) (out, errs string) {
	s.t.Helper()
	for range 3 {
		var o, e bytes.Buffer
		c := s.command(args...)
		c.Stdout, c.Stderr = &o, &e
		err := c.Start()
		if err != nil {
			s.t.Fatal(err)
		}
		hung := time.AfterFunc(patience, func() { _ = c.Process.Signal(syscall.SIGQUIT) })
		_ = c.Wait()
		if !hung.Stop() {
			s.t.Fatalf("%v hung: %s", args, e.String())
		}
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			s.t.Logf("%v: exit %d: %s", args[:min(len(args), 5)], c.ProcessState.ExitCode(), e.String())
			return o.String(), e.String()
		}
	}
	s.t.Fatalf("%v is killed again and again", args)
	return "", ""
}

func (s *stage) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Dir, c.WaitDelay = s.work, time.Second
	c.Env = []string{"PATH=" + filepath.Join(s.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "LANG=C.UTF-8", "PINTLE_HOME=" + s.home, "TOKEN=" + secret,
		"PINTLE_CONFIG=" + filepath.Join(s.dir, "config.toml"), "PINTLE_CRASH=" + s.crash, "GIT_CONFIG_NOSYSTEM=1", "GORACE=atexit_sleep_ms=0"}
	return c
}

// launches is how often a key was begun: its command, or its prompt.
func (s *stage) launches(key string) int {
	if prompt, ok := prompts[key]; ok {
		data, _ := os.ReadFile(filepath.Join(s.work, "prompts"))
		return strings.Count(string(data), fmt.Sprintf("%q\n", prompt))
	}
	data, _ := os.ReadFile(filepath.Join(s.work, "launches."+key))
	return bytes.Count(data, []byte{'\n'})
}

// ending is what show says of a key, which must have been given.
func (s *stage) ending(key string) (e end) {
	out, _ := s.quietly("show", "--json", key)
	_ = json.Unmarshal([]byte(out), &e)
	return e
}

// quietly runs a reading verb without crash points.
func (s *stage) quietly(args ...string) (out, errs string) {
	var o, e bytes.Buffer
	c := s.command(args...)
	c.Env = append(c.Env, "PINTLE_CRASH=")
	c.Stdout, c.Stderr = &o, &e
	_ = c.Run()
	return o.String(), e.String()
}

// full is all of an end, once it is on record: the view of it may come before.
func (s *stage) full(key string) end {
	s.t.Helper()
	_, _ = s.quietly("wait", key)
	e := s.ending(key)
	e.Text, _ = s.quietly("result", key)
	e.Out, e.Err = s.quietly("logs", key)
	e.Launches = s.launches(key)
	events, _ := s.quietly("logs", "--json", key)
	e.Verdicts = strings.Count(events, `"type":"turn_ended"`)
	e.Lost = strings.Contains(events, `"type":"output_lost"`)
	return e
}
