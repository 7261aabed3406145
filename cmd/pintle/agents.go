package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/providers/claude"
	"github.com/pintle/pintle/providers/codex"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
)

// agentsVerb is `pintle agents`.
type agentsVerb struct{ output }

// Run lists the agents that pintle knows, and those that the configuration names.
func (v *agentsVerb) Run(a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	names := builtIn()
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	list := a.findAll(cfg, names)
	if v.JSON {
		a.print(list)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "AGENT\tREADY\tVERSION\tNOTE")
	for _, p := range list {
		ready, note := readiness(p)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(p.Name), ready, orDash(p.Version), note)
	}
	if slices.ContainsFunc(list, func(p api.Provider) bool { return p.Looked != "" }) {
		defer a.say("hint: PATH is %s", a.getenv("PATH"))
	}
	return nil
}

// builtIn are the agents that are known without a configuration: not a kind that is nothing without a command.
func builtIn() (names []string) {
	for _, p := range all() {
		if p.Program != "" || p.Name == command.Name {
			names = append(names, p.Name)
		}
	}
	return names
}

// findAll looks for all of them at once: some take seconds to say their version.
func (a *app) findAll(cfg config.Config, names []string) []api.Provider {
	list := make([]api.Provider, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { list[i] = a.find(cfg, name) })
	}
	asked.Wait()
	return list
}

// find looks for an agent as an order would, asks it for its version, and looks for signs that somebody has signed in. What
// the configuration says wrongly of one is told of that one.
func (a *app) find(cfg config.Config, name string) api.Provider {
	p := api.Provider{Name: name}
	g, err := a.agent(cfg, name)
	if err != nil {
		p.Reason = err.Error()
		return p
	}
	if g.Provider.Name == command.Name {
		p.Enabled, p.Version = true, Version
		return p
	}
	found, err := g.locate("", "/", a.getenv("PATH"))
	if err != nil {
		p.Reason, p.Looked = g.absent(), a.getenv("PATH")
		return p
	}
	p.Path, p.Enabled = found.Path, true
	said, err := a.ask(found, "--version")
	p.Version = versions.FindString(said)
	var doubts []string
	if err != nil && p.Version == "" {
		doubts = append(doubts, "does not tell its version: "+err.Error())
	}
	p.Reason = strings.Join(append(doubts, a.doubts(g, found, p.Version)...), "; ")
	return p
}

// versions finds one in what an agent says of itself.
var versions = regexp.MustCompile(`\d+\.\d+[0-9A-Za-z.+-]*`)

// absent says that an agent was not found, and how to get it.
func (g agent) absent() string {
	word := g.Program
	if len(g.Command) > 0 {
		word = g.Command[0]
	}
	where := "no " + record.Quote(word) + " in PATH"
	if strings.Contains(word, "/") {
		where = "no " + record.Quote(word)
	}
	if g.Install == "" || len(g.Command) > 0 {
		return where + ": mend the command in the configuration"
	}
	return where + ": " + g.Install
}

// tellLimit is how long an agent may take to answer one question about itself. Some are large programs.
const tellLimit = 10 * time.Second

// ask runs an agent's program for what it says of itself. Nothing is given to it to read.
func (a *app) ask(p record.Program, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(a.ctx, tellLimit)
	defer cancel()
	out, err := questioned(ctx, p, args...).Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", tellLimit)
	}
	return string(out), err
}

// questioned is an agent's program with a question about itself.
func questioned(ctx context.Context, p record.Program, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Path, slices.Concat(p.Words, args)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// doubts are what may be in the way of a run. None of them is reason enough not to try: the agent has the last word.
func (a *app) doubts(g agent, found record.Program, version string) (all []string) {
	if g.Provider.Name == codex.Name {
		return codexCheck{a.ctx, found}.doubts(version)
	}
	if how := versus(version, g.Tested); g.Tested != "" && (how == "newer" || how == "older") {
		all = append(all, how+" than "+g.Tested+", with which this was tested")
	}
	if out := a.signedOut(g, found); out != "" {
		all = append(all, out)
	}
	return all
}

// signedOut says that there is no sign of a login, "" if there is one or none is needed. No model is asked.
func (a *app) signedOut(g agent, found record.Program) string {
	if g.Provider.Name == claude.Name {
		said, _ := a.ask(found, claude.Probe...) // it exits 1 if it is signed out
		if in, _, ok := claude.Signed([]byte(said)); ok && !in {
			return "not signed in: run claude, and /login there; or set ANTHROPIC_API_KEY"
		}
		return ""
	}
	if g.Login == "" || slices.ContainsFunc(g.Keys, func(name string) bool { return a.getenv(name)+g.Env[name] != "" }) {
		return ""
	}
	env := maps.Clone(g.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, pair := range a.environ() {
		if name, value, _ := strings.Cut(pair, "="); env[name] == "" {
			env[name] = value
		}
	}
	if slices.ContainsFunc(g.Credentials(env), holds) {
		return ""
	}
	return "no sign of a login: " + g.Login
}

// holds reports whether a file of a pattern has more in it than the empty object that agents begin it with.
func holds(pattern string) bool {
	found, _ := filepath.Glob(pattern)
	return slices.ContainsFunc(found, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > int64(len("{}\n"))
	})
}

// readiness says whether an agent can be used, and what for, what may be in its way, or why not.
func readiness(p api.Provider) (ready, note string) {
	switch {
	case !p.Enabled:
		return "no", p.Reason
	case p.Name == command.Name:
		return "yes", "runs what follows --"
	}
	return "yes", p.Reason
}
