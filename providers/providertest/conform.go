package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Conform is the suite of what pintle promises of every agent, run on the real one: cells are played by the pintle
// binary as a process, on the agent's real binary, with a model that does what prompts say. It returns when all
// cells have been played.

// Subject is an agent that the suite is run on.
type Subject struct {
	Agent   string // what -a calls it
	Title   string // what people call it
	Version string
	Setup   string // how it is set up, if the suite is run on it in several ways
	Model   string // that it must say it used
	Usage   Usage  // that each of the model's answers costs
	Prompts Prompts
	Cannot  map[string]string // what the agent cannot do at all: why, by the cell's name
	Quits   string            // what it does when it is refused something, if it does not go on: the run is denied then
	Forgets string            // why a prompt whose turn was cut off may be missing from what the model knows; "": it is there
	// Open makes a stage for one cell. All of it goes with the test.
	Open func(t *testing.T) Stage
}

// Usage is what a run has cost.
type Usage struct{ InputTokens, OutputTokens int64 }

// Prompts are what makes the model, and the agent by it, do things.
type Prompts struct {
	Say   func(text string) string    // answers with the text, word by word
	Drip  string                      // answers with a word, and with the next one only after a minute
	Big   string                      // answers with ten million bytes, in pieces
	Shell func(command string) string // runs a command and answers with what came out
	Ask   func(command string) string // runs one for which the agent asks, given AskFlags or its own configuration
	Plan  string                      // makes a plan of the steps "one", in progress, and "two"

	AskFlags []string

	Unauthorized, Limited, Broken, Unavailable, TooLong string // the model refuses so
	Dropped                                             string // its connection breaks in the midst of the answer
	Silent                                              string // it never answers
}

// Stage is where one cell is played: new homes of pintle and of the agent, a directory to work in, and a model. Its
// functions may be called from several goroutines.
type Stage struct {
	Dir      string                                  // where the agent works
	Pintle   func(input string, args ...string) Told // runs a verb, with that on its standard input
	Asked    func(prompt string) []Asked             // when the model was asked with that as the newest word, repetitions by the agent left out
	Hold     func() Held                             // has a client open a session, which that alone drives
	HangUp   func()                                  // from now on nobody listens where the model was
	Alive    func() []Process                        // what lives of this stage, by PINTLE_HOME in the environment
	Kill     func(pid int)                           // ends one of those by SIGKILL, and returns when it is dead
	Settings func() map[string]string                // the files of the agent's home that are the user's
}

// Held is a session that a client holds.
type Held struct {
	Session string
	Send    func(prompt string) (id string) // gives it a prompt, and returns when the agent has it
	Leave   func()
}

// Told is how a verb ended.
type Told struct {
	Out, Err string
	Code     int
}

// Asked is one request that the model got.
type Asked struct{ Earlier []string } // what the user had said before

// Process is a process with its command line.
type Process struct {
	PID  int
	Args []string
}

// Report is what the suite found out about an agent.
type Report struct {
	Agent  string            // with its version and set-up
	Played map[string]string // by cell: "yes", with what it lacks behind a semicolon, or "no: " and the reason
}

// Whole reports whether each cell was played, and none failed.
func (r Report) Whole() bool { return len(r.Played) == len(cells) }

// name is what the agent is called in the table.
func (s Subject) name() string {
	if s.Setup == "" {
		return s.Title + " " + s.Version
	}
	return s.Title + " " + s.Version + ", " + s.Setup
}

// Conform plays all cells, each as a subtest.
func Conform(t *testing.T, s Subject) Report {
	t.Helper()
	r := Report{Agent: s.name(), Played: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(s.Cannot)) {
		if !slices.ContainsFunc(cells, func(c cell) bool { return c.name == name }) {
			t.Errorf("%s cannot %q, which is no cell", s.Title, name)
		}
	}
	var mu sync.Mutex
	t.Run(s.name(), func(t *testing.T) {
		for _, c := range cells {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				verdict := play(t, s, c)
				mu.Lock()
				defer mu.Unlock()
				r.Played[c.name] = verdict
			})
		}
	})
	return r
}

// play plays a cell and returns what it found. A cell that fails does not return, or has failed the test.
func play(t *testing.T, s Subject, c cell) string {
	t.Helper()
	if why, ok := s.Cannot[c.name]; ok {
		t.Log("no: " + why)
		return "no: " + why
	}
	sc := &scene{Subject: s, Stage: s.Open(t), t: t}
	before := sc.Settings()
	c.play(sc)
	sc.leave()
	sc.same("the agent's own settings", sc.Settings(), before)
	if t.Failed() {
		t.FailNow() // and the report lacks it
	}
	if sc.note != "" {
		return "yes; " + sc.note
	}
	return "yes"
}

// Table is the reports as a table of Markdown.
func Table(reports []Report) string {
	var b strings.Builder
	row := func(name, means string, column func(Report) string) {
		fmt.Fprintf(&b, "| %s | %s |", name, means)
		for _, r := range reports {
			fmt.Fprintf(&b, " %s |", column(r))
		}
		b.WriteString("\n")
	}
	row("what", "that is", func(r Report) string { return r.Agent })
	row("---", "---", func(Report) string { return "---" })
	for _, c := range cells {
		row(c.name, c.means, func(r Report) string { return r.Played[c.name] })
	}
	return b.String()
}
