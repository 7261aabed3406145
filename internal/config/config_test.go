package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// environ is a getenv over a map.
type environ map[string]string

func (e environ) get(name string) string { return e[name] }

// load reads text as the configuration.
func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(environ{"PINTLE_CONFIG": path, "HOME": "/home/a"}.get)
}

var onlyValues = cmpopts.IgnoreUnexported(Config{})

func TestLoadWithoutAFileGivesTheDefaults(t *testing.T) {
	c, err := Load(environ{"HOME": t.TempDir()}.get)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Supervise: Supervise{Idle: Duration(10 * time.Minute)},
		Deadlines: Deadlines{
			Start: Duration(time.Minute), FirstEvent: Duration(5 * time.Minute), Idle: Duration(30 * time.Minute), Run: 0,
			Stop: Duration(30 * time.Second), StopTerm: Duration(5 * time.Second), Interrupt: Duration(10 * time.Second), Operation: Duration(30 * time.Second),
		},
		Recovery: Recovery{Delay: Duration(30 * time.Second), Tries: 3},
		Limits:   Limits{Spool: 1073741824, FrameBytes: 33554432},
	}
	if diff := cmp.Diff(want, c, onlyValues); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

const everything = `
default_agent = "codex"
[env]
pass = ["AWS_*", "CI"]
file = "secrets.env"
[supervise]
idle = "1h"
[deadlines]
start = "1s"
first_event = "2s"
idle = "3s"
run = "4s"
stop = "5s"
stop_term = "6s"
interrupt = "7s"
operation = "8s"
[recovery]
delay = "8s"
tries = 9
[limits]
running = 10
spool = "11MiB"
frame_bytes = 12345678
usd_per_day = 13.5
[agent.my-codex]
kind = "codex"
command = ["/opt/codex", "app-server"]
args = ["-c", "x=1"]
env = { OPENAI_BASE_URL = "http://localhost", OPENAI_API_KEY = "hush" }
share = true
[agent."two words"]
kind = "acp"
[prices."gpt-5.1"]
input = 1.25
output = 10
`

func TestLoadReadsEveryKey(t *testing.T) {
	c, err := load(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	s := func(n int) Duration { return Duration(n) * Duration(time.Second) }
	want := Config{
		Agent:     "codex",
		Env:       Env{Pass: []string{"AWS_*", "CI"}, File: filepath.Join(filepath.Dir(c.Path()), "secrets.env")},
		Supervise: Supervise{Idle: s(3600)},
		Deadlines: Deadlines{Start: s(1), FirstEvent: s(2), Idle: s(3), Run: s(4), Stop: s(5), StopTerm: s(6), Interrupt: s(7), Operation: s(8)},
		Recovery:  Recovery{Delay: s(8), Tries: 9},
		Limits:    Limits{Running: 10, Spool: 11 << 20, FrameBytes: 12345678, USDPerDay: 13.5},
		Agents: map[string]Agent{
			"my-codex": {
				Kind: "codex", Command: []string{"/opt/codex", "app-server"}, Args: []string{"-c", "x=1"},
				Env: map[string]string{"OPENAI_BASE_URL": "http://localhost", "OPENAI_API_KEY": "hush"}, Share: true,
			},
			"two words": {Kind: "acp"},
		},
		Prices: map[string]Price{"gpt-5.1": {Input: 1.25, Output: 10}},
	}
	if diff := cmp.Diff(want, c, onlyValues); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoadNamesFileLineAndKey(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"unknown key":            {"# one\nagnet = 1\n", ":2: agnet: unknown key"},
		"unknown key in table":   {"[limits]\nrunning = 1\nruning = 2\n", ":3: limits.runing: unknown key"},
		"unknown table":          {"\n\n[limit]\nrunning = 1\n", ":3: limit: unknown key"},
		"unknown key of agent":   {"[agent.x]\nkind = \"acp\"\n\nargz = []\n", ":4: agent.x.argz: unknown key"},
		"unknown dotted key":     {"deadlines.start = \"1s\"\ndeadlines.stat = \"1s\"\n", ":2: deadlines.stat: unknown key"},
		"unknown quoted key":     {"[prices.\"a.b\"]\ninput = 1\n\"out put\" = 1\n", `:3: prices."a.b"."out put": unknown key`},
		"syntax":                 {"[env]\npass = [\"A\"\nfile = 1\n", ":3: env.pass: "},
		"no value":               {"default_agent =\n", ":1: default_agent: "},
		"twice":                  {"[env]\n[limits]\n[env]\n", ":3: Key 'env' has already been defined"},
		"wrong type":             {"[limits]\n\nrunning = \"two\"\n", ":3: limits.running: incompatible types"},
		"wrong type of list":     {"[env]\npass = \"A\"\n", ":2: env.pass: incompatible types"},
		"duration without unit":  {"[deadlines]\nstart = 30\n", `:2: deadlines.start: "30" is no duration`},
		"no duration":            {"[deadlines]\n\nidle = \"soon\"\n", `:3: deadlines.idle: "soon" is no duration`},
		"negative duration":      {"[deadlines]\n\nrun = \"-1s\"\n", ":3: deadlines.run: must not be negative"},
		"no size":                {"[limits]\nspool = \"1GB\"\n", `:2: limits.spool: "1GB" is no size`},
		"size too large":         {"[limits]\nspool = \"9999999TiB\"\n", `:2: limits.spool: "9999999TiB" is no size`},
		"no tries":               {"[recovery]\ntries = 0\n", ":2: recovery.tries: must be at least 1"},
		"agent that is no table": {"agent = \"codex\"\n", ":1: agent: must be a table [agent.NAME]; the default agent is `default_agent`"},
		"variables no table":     {"[agent.x]\nenv = \"A=1\"\n", ":2: agent.x.env: must be a table"},
		"agent of wrong type":    {"[agent]\nx = \"A=1\"\n", ":2: agent.x: type mismatch"},
		"another case":           {"[Limits]\nrunning = 1\n", ":1: Limits: unknown key"},
		"another case below":     {"[agent.X]\nKind = \"acp\"\n", ":2: agent.X.Kind: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, test.text)
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "config.toml"+test.want) {
				t.Errorf("error %v, want …config.toml%s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %v", err)
			}
		})
	}
}

func TestLoadUnreadableIsNotAbsent(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(environ{"PINTLE_CONFIG": dir}.get); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v for a directory", err)
	}
}

func TestLoadTheEnvironmentWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte("default_agent = \"codex\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(environ{"PINTLE_CONFIG": path, "PINTLE_AGENT": "claude"}.get)
	if err != nil || c.Agent != "claude" {
		t.Errorf("agent %q, error %v", c.Agent, err)
	}
	if printed := c.Resolve(); !strings.Contains(printed, "default_agent = \"claude\"  # PINTLE_AGENT\n") {
		t.Errorf("printed:\n%s", printed)
	}
}

func TestResolveTellsWhereValuesCameFrom(t *testing.T) {
	c, err := load(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	printed := c.Resolve()
	for _, want := range []string{
		"default_agent = \"codex\"  # " + c.Path() + ":2\n",
		"limits.frame_bytes = \"12345678B\"  # " + c.Path() + ":23\n",
		`agent.my-codex.env.OPENAI_API_KEY = "(set)"  # ` + c.Path() + ":29\n",
		`agent."two words".kind = "acp"  # ` + c.Path() + ":32\n",
		`prices."gpt-5.1".cached = 0.0  # default` + "\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("no line %q in:\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "hush") {
		t.Errorf("a secret is printed:\n%s", printed)
	}
}

// What is printed can be put into a file and means the same, but for what is hidden.
func TestResolveCanBeReadAgain(t *testing.T) {
	for name, text := range map[string]string{"defaults": "", "everything": everything} {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, text)
			if err != nil {
				t.Fatal(err)
			}
			again, err := load(t, c.Resolve())
			if err != nil {
				t.Fatalf("%v in:\n%s", err, c.Resolve())
			}
			for _, agent := range c.Agents {
				for variable := range agent.Env {
					agent.Env[variable] = hidden
				}
			}
			if diff := cmp.Diff(c, again, onlyValues); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
		})
	}
}

func TestJSONIsOneLineAndHidesValues(t *testing.T) {
	c, err := load(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.JSON()
	if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "\n") {
		t.Errorf("error %v: %s", err, text)
	}
	if c.Agents["my-codex"].Env["OPENAI_API_KEY"] != "hush" {
		t.Error("printing changed the configuration")
	}
	var back struct {
		Deadlines map[string]string
		Limits    map[string]any
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Deadlines["first_event"] != "2s" || back.Limits["spool"] != "11MiB" {
		t.Errorf("printed %s", text)
	}
}
