// Pintle runs coding agents, or any command, so that an order given once is carried out once, whoever
// crashes. This package is the command line: a file a verb. It alone prints and exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/rpc/api"
)

func main() {
	// A shim is dispatched before the command line is parsed: it must start fast and stay small.
	if len(os.Args) > 1 && os.Args[1] == shim.Verb {
		os.Exit(shim.Main())
	}
	os.Exit(Main(os.Args[1:]))
}

// verb is a part of the command line.
type verb struct {
	name string
	make func() any
	help string
}

// verbs is the command line.
func verbs() []verb {
	return []verb{
		{"run", func() any { return &runVerb{} }, "Give an order, once: run a prompt or a command and wait for its result."},
		{"send", func() any { return &sendVerb{} }, "Give a session's agent its next prompt, once."},
		{"attach", func() any { return &attachVerb{} }, "See a session live, and talk to its agent."},
		{"approvals", func() any { return &approvalsVerb{} }, "List what agents ask for and nobody has answered."},
		{"allow", func() any { return &allowVerb{} }, "Allow what an agent asks for."},
		{"deny", func() any { return &denyVerb{} }, "Refuse an agent what it asks for."},
		{"ps", func() any { return &psVerb{} }, "List runs."},
		{"show", func() any { return &showVerb{} }, "Show one run."},
		{"result", func() any { return &resultVerb{} }, "Print a run's result and exit with its code."},
		{"logs", func() any { return &logsVerb{} }, "Print what a run's agent said."},
		{"wait", func() any { return &waitVerb{} }, "Wait for runs to end."},
		{"stop", func() any { return &stopVerb{} }, "Stop runs, and prove that nothing of them is left."},
		{"interrupt", func() any { return &interruptVerb{} }, "Interrupt runs: SIGINT first, then as stop."},
		{"retry", func() any { return &retryVerb{} }, "Begin one more attempt of a run that has ended."},
		{"archive", func() any { return &archiveVerb{} }, "Archive runs with their sessions: worktrees go, work is kept."},
		{"workspace", func() any { return &workspaceVerb{} }, "List, make, archive and restore the directories that runs work in."},
		{"session", func() any { return &sessionVerb{} }, "List and show sessions, and what was said in them."},
		{"recover", func() any { return &recoverVerb{} }, "Lead a session or a run out of a state that does not pass by itself."},
		{"rm", func() any { return &rmVerb{} }, "Free the keys of runs that have ended; their records go to archived/."},
		{"gc", func() any { return &gcVerb{} }, "Remove what is left over, and what was archived long ago."},
		{"agents", func() any { return &agentsVerb{} }, "List the agents that can be used."},
		{"doctor", func() any { return &doctorVerb{} }, "Check the state directory and what runs."},
		{"supervise", func() any { return &superviseVerb{} }, "Hold agents' processes; started by itself when needed."},
		{"config", func() any { return &configVerb{} }, "Print the configuration in force and where it comes from."},
		{"trust", func() any { return &trustVerb{} }, "Trust what a repository's .pintle.toml does to worktrees."},
		{"version", func() any { return &versionVerb{} }, "Print the version."},
	}
}

// grammar is the part of the command line that these words need: building the grammar of every verb takes
// longer than most verbs do.
func grammar(words []string) (options []kong.Option) {
	all := verbs()
	if len(words) > 0 {
		if i := slices.IndexFunc(all, func(v verb) bool { return v.name == words[0] }); i >= 0 {
			all = all[i : i+1]
		}
	}
	for _, v := range all {
		options = append(options, kong.DynamicCommand(v.name, v.help, "", v.make()))
	}
	return options
}

// output is what every verb can be told about printing.
type output struct {
	JSON bool `help:"Print JSON: data and errors, one value a line, on standard output."`
}

// exit is an exit code that is not an error: a run's own.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Main runs one command line and returns its exit code.
func Main(args []string) int {
	debug.SetGCPercent(400) // verbs are short: collecting costs more than it frees
	a := newApp(args)
	defer a.close()
	err := a.run()
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	return a.fail(err)
}

// helped is panicked by kong's exit after it printed help; there is no other way out of its parser.
type helped struct{}

func (a *app) run() (err error) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(helped); !ok {
				panic(v)
			}
			err = nil
		}
	}()
	parser, err := kong.New(&struct{}{}, append(grammar(a.args), kong.Name("pintle"), kong.UsageOnError(),
		kong.Writers(a.stdout, a.stderr),
		kong.Description("Run coding agents so that an order given once is carried out once, whoever crashes."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Exit(func(int) { panic(helped{}) }))...)
	if err != nil {
		return err
	}
	if len(a.args) == 0 {
		return usage("no verb; pintle --help lists them")
	}
	if i := slices.IndexFunc(a.args, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 {
		return usage("argument %d, %q, is not valid UTF-8: records could not hold it as it is", i+1, a.args[i])
	}
	parsed, err := parser.Parse(a.args)
	if err != nil {
		return usage("%w", err)
	}
	if err := blank(parsed); err != nil {
		return err
	}
	return parsed.Run(a)
}

// blank refuses a flag whose value is empty, which mostly comes from a script's variable that is not set. As if
// the flag were not there, it would run something else than was meant. A reason may be empty: the stop counts.
func blank(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		f := p.Flag
		if f != nil && f.Target.Kind() == reflect.String && f.Target.String() == "" && f.Name != "reason" {
			return usage("--%s: its value is empty", f.Name)
		}
	}
	return nil
}

// usage is an error of the command line's words.
func usage(format string, args ...any) error { return api.E(api.CodeUsage, format, args...) }

// fail prints an error, as a line of talk or of JSON, and returns its exit code.
func (a *app) fail(err error) int {
	e := typed(err)
	if a.json() {
		a.print(struct {
			Type     string   `json:"type"`
			Code     api.Code `json:"code"`
			Message  string   `json:"message"`
			ExitCode int      `json:"exitCode"`
			Fields   []string `json:"fields,omitempty"`
			Winner   any      `json:"winner,omitempty"`
			Owner    any      `json:"owner,omitempty"`
			Policy   any      `json:"policy,omitempty"`
			Next     string   `json:"next,omitempty"`
		}{"error", e.Code, e.Message, e.Code.Exit(), e.Fields, e.Data["winner"], e.Data["owner"], e.Data["policy"], e.Next})
		return e.Code.Exit()
	}
	a.say("%s", oneLine(e.Message))
	if e.Next != "" {
		a.say("hint: %s", e.Next)
	}
	return e.Code.Exit()
}

// tell prints an error of one run among several. A run's own exit code is none.
func (a *app) tell(err error) {
	var code exit
	if !errors.As(err, &code) {
		a.fail(err)
	}
}

// oneLine has a message of several lines on one.
func oneLine(s string) string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return strings.Join(parts, " ")
}

// json reports whether JSON is wanted, also when the command line could not be parsed.
func (a *app) json() bool {
	words := a.args
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	return slices.Contains(words, "--json") || slices.Contains(words, "--json=true")
}

// app is one invocation: where it reads and writes, and what it has opened.
type app struct {
	args           []string
	stdin          *os.File
	stdout, stderr io.Writer
	getenv         func(string) string
	environ        func() []string
	ctx            context.Context
	cancel         context.CancelFunc
}

func newApp(args []string) *app {
	ctx, cancel := context.WithCancel(context.Background())
	return &app{
		args: args, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, environ: os.Environ, ctx: ctx, cancel: cancel,
	}
}

func (a *app) close() { a.cancel() }

// say talks on standard error. What is talked of may have been chosen by others: it does not speak to the terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, "pintle: "+mute(fmt.Sprintf(format, args...)))
}
