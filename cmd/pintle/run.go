package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// runVerb is `pintle run`.
type runVerb struct {
	Agent     string   `short:"a" help:"Agent to run; command runs what follows --." placeholder:"AGENT"`
	Session   string   `help:"Go on in the conversation of a session, or of a run." placeholder:"ID"`
	Workspace string   `help:"Run in the directory of a workspace." placeholder:"ID"`
	Words     []string `arg:"" optional:"" name:"prompt" help:"The prompt; for a command, CMD ARG… after --."`
	Remove    bool     `name:"rm" help:"Archive the run at its end, if it completes: its worktree goes, and what git would not find again is kept."`
	treeFlags
	orderFlags
	sends bool   // it is a message of `pintle send`
	when  string // how that comes into its session: "" in its turn
}

// orderFlags is what an order can be told, whoever carries it out.
type orderFlags struct {
	output
	ID          *string       `name:"id" help:"Key of this order: the same key runs once." placeholder:"KEY"`
	Attempt     int           `help:"Number of the attempt (GITHUB_RUN_ATTEMPT, say): each is launched at most once." placeholder:"N"`
	IfExists    string        `name:"if-exists" enum:"join,fail" default:"join" help:"What a repeat does: join or fail."`
	Model       string        `short:"m" help:"Model that the agent is to use." placeholder:"MODEL"`
	Mode        string        `help:"Mode of the agent's own that it is to be in." placeholder:"MODE"`
	Approve     string        `enum:",none,reads,edits,all" default:"" help:"What the agent may do unasked: none, reads, edits, all; by default as it is configured." placeholder:"WHAT"`
	Unattended  string        `enum:",fail,deny,park" default:"" help:"What it asks for with nobody there: fail ends the run (5), deny refuses the agent, park waits for an answer (15)." placeholder:"WHAT"`
	Policy      string        `help:"File of rules on what it may do unasked, and what never: tool, command, path." placeholder:"FILE"`
	AgentArg    []string      `name:"agent-arg" sep:"none" help:"One more argument for the agent's command line." placeholder:"ARG"`
	Dir         string        `short:"C" name:"dir" help:"Directory to run in." placeholder:"DIR"`
	Timeout     time.Duration `help:"Deadline of the run; of a repeat, of its waiting." placeholder:"D"`
	IdleTimeout time.Duration `name:"idle-timeout" help:"End the run after so long without a sign of life." placeholder:"D"`
	Retries     int           `help:"How often what had begun, and died or failed for a passing cause, goes on in its conversation." placeholder:"N"`
	Warm        time.Duration `help:"Keep the agent's process so long for the session's next run." placeholder:"D"`
	Share       bool          `help:"Let the agent's process serve other sessions too, whose orders say so and would start an equal one."`
	Env         []string      `sep:"none" help:"Pass more of the environment: NAME, a glob, or NAME=VALUE." placeholder:"NAME[=V]"`
	Secret      []string      `sep:"none" help:"Pass a variable and mask its value: NAME or NAME=@FILE." placeholder:"NAME"`
	Label       []string      `sep:"none" help:"Label the run." placeholder:"K=V"`
	File        string        `short:"f" name:"file" help:"Take the prompt from a file; a command has none." placeholder:"FILE"`
	Out         string        `short:"o" name:"out" help:"Write the result to a file, if the run completes." placeholder:"FILE"`
	Detach      bool          `short:"d" help:"Return at once; print the id."`
	Verbose     bool          `short:"v" xor:"talk" help:"Tell on standard error how the run moves."`
	Quiet       bool          `short:"q" xor:"talk" help:"Say nothing but errors."`
}

// order is what a command line asks for, checked as far as words go.
type order struct {
	spec  record.Spec
	env   environ.Environment
	lacks error                    // why its environment is not complete: only a result that is stored can do without
	fresh func(*record.Spec) error // what binds only those that begin something, and completes the record of one
}

// Run gives the order and waits for its result.
func (v *runVerb) Run(a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	o, err := v.order(a, cfg)
	if err != nil {
		return err
	}
	if d, err := a.existing(); err == nil && d == nil {
		if err := o.fresh(&o.spec); err != nil {
			return err // nothing is written for an order that cannot be carried out
		}
	}
	f := &follower{a: a, v: v, create: createOf(o.spec.ID, o.env)}
	if v.attended(a) {
		f.ask = newAsker(f)
	}
	if !v.Detach {
		f.heed()
		defer signal.Stop(f.signals)
	}
	if err := f.open(); err != nil {
		return err
	}
	defer f.drop()
	if err := f.give(o); err != nil {
		return err
	}
	c := f.c
	if v.IfExists == "fail" && !c.New && c.Verdict != session.Begin {
		return api.E(api.CodeExists, "%s exists already", c.Spec.ID).WithNext("pintle show " + record.Quote(c.Spec.ID))
	}
	if v.ID == nil && !v.Quiet && !v.JSON && !v.Detach {
		a.say("run %s", c.Spec.ID)
	}
	if o.lacks != nil && c.Verdict != session.Replay {
		return o.lacks // a supervisor that knows no secret could not mask it
	}
	f.taken()
	if !v.Quiet {
		a.hintStdin(c.Spec.Payload.Provider)
	}
	if c.Verdict == session.Replay {
		return f.replay()
	}
	if v.Detach {
		return f.detach()
	}
	return f.follow()
}

func createOf(id string, env environ.Environment) api.Create {
	return api.Create{ID: id, Environment: env.Vars, Secrets: env.SecretNames()}
}

// order makes the record of what is asked. Nothing is written.
func (v *runVerb) order(a *app, cfg config.Config) (order, error) {
	var o order
	id, err := v.id()
	if err != nil {
		return o, err
	}
	if err := cmp.Or(v.check(), v.treeFlags.check()); err != nil {
		return o, err
	}
	talk, err := v.converse(a)
	if err != nil {
		return o, err
	}
	cwd, err := v.cwd(a, talk)
	if err != nil {
		return o, err
	}
	payload, err := v.payload(a, cfg, cwd)
	if err != nil {
		return o, err
	}
	payload.Session = talk.Session
	v.treeFlags.into(&payload)
	labels, err := labels(v.Label)
	if err != nil {
		return o, err
	}
	rules, err := v.rules(a, cfg, &payload)
	if err != nil {
		return o, err
	}
	if o.env, err = v.environment(a, cfg); err != nil {
		return o, err
	}
	if err := plain(payload, o.env); err != nil {
		return o, err
	}
	program, lookErr := a.programOf(cfg, payload, o.env.Vars["PATH"])
	o.lacks = v.unset(a.getenv)
	o.fresh = func(spec *record.Spec) error {
		if inTree(payload) {
			lookErr = nil
		}
		if err := cmp.Or(talk.Refused, v.there(a, cwd), o.lacks, lookErr); err != nil {
			return err
		}
		if err := v.plant(a, spec); err != nil {
			return err
		}
		if err := a.fits(*spec); err != nil {
			return err
		}
		return a.drives(*spec)
	}
	limit := cmp.Or(v.Timeout, time.Duration(cfg.Deadlines.Run))
	o.spec = record.Spec{
		ID: id, Controller: session.Local, CreatedAt: time.Now().UTC(), Payload: payload, Labels: labels, Program: program,
		Limits: v.limits(a, payload, cfg, limit), When: v.when, Policy: rules,
		Environment: record.Environment{
			Values: o.env.Stored(), Names: o.env.Names(), Secrets: o.env.SecretNames(), Umask: processUmask(),
		},
	}
	o.spec.Desired, err = desired(limit)
	return o, err
}

// limits bound the run, and are no part of what makes two orders equal.
func (v *runVerb) limits(a *app, p session.Payload, cfg config.Config, whole time.Duration) record.Limits {
	return record.Limits{
		Timeout: whole, IdleTimeout: v.idle(p, cfg), Retries: v.Retries, Warm: v.Warm, Archive: v.Remove,
		Share:    p.Provider != command.Name && (v.Share || cfg.Agents[p.Provider].Share),
		Attended: p.Provider != command.Name && v.attended(a),
	}
}

// idle is the deadline without a sign of life: an agent has one by default, a command only if it is given (D1).
func (v *runVerb) idle(p session.Payload, cfg config.Config) time.Duration {
	if v.IdleTimeout > 0 || p.Provider == command.Name {
		return v.IdleTimeout
	}
	return time.Duration(cfg.Deadlines.Idle)
}

// maxRetries is the most that --retries may ask for: more is a mistake.
const maxRetries = 100

// check refuses flags that could do nothing.
func (v *runVerb) check() error {
	switch {
	case v.Timeout < 0 || v.IdleTimeout < 0 || v.Warm < 0 || v.Attempt < 0:
		return usage("--timeout, --idle-timeout, --warm and --attempt cannot be negative")
	case v.Retries < 0 || v.Retries > maxRetries:
		return usage("--retries %d: 0 to %d", v.Retries, maxRetries)
	case v.Session != "" && (v.wanted() || v.Workspace != ""):
		return usage("a session has its directory: --session can't be used with --workspace, or with what makes a worktree")
	case v.Workspace != "" && v.wanted():
		return usage("--workspace is a directory that is there: it can't be used with what makes a worktree")
	case v.Attempt > 0 && v.ID == nil:
		return usage("--attempt numbers the attempts of a key: give --id")
	case v.Out != "" && v.Detach:
		return usage("-o and -d can't be used together: nobody would be there to write the file")
	}
	return nil
}

func desired(limit time.Duration) (record.Desired, error) {
	boot, err := proc.BootID()
	d := record.Desired{At: time.Now().UTC(), BootID: boot}
	if limit > 0 {
		d.Deadline = proc.BootClock() + limit
	}
	return d, err
}

func (v *runVerb) id() (string, error) {
	switch {
	case v.ID == nil && v.sends:
		return operationID(), nil
	case v.ID == nil:
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand)
		return "r-" + hex.EncodeToString(b[:]), nil
	}
	return *v.ID, session.CheckKey(*v.ID)
}

// cwd is where to run: in the directory that was given, else where the conversation is that goes on.
func (v *runVerb) cwd(a *app, talk record.Conversation) (string, error) {
	switch {
	case v.Dir == "" && talk.Cwd != "":
		return talk.Cwd, nil
	case v.Dir == "" && v.Workspace != "": // beside a directory it means nothing (X5)
		_, w, err := a.workspace(v.Workspace)
		return w.Cwd, err
	}
	path, err := filepath.Abs(v.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if !utf8.ValidString(path) {
		return "", usage("the directory %q is not valid UTF-8: records could not hold it as it is", path)
	}
	return path, nil
}

// there refuses a directory that was given and is none, and a workspace that is archived.
func (v *runVerb) there(a *app, cwd string) error {
	switch {
	case v.Dir == "" && v.Workspace != "":
		_, err := a.directory(v.Workspace)
		return err
	case v.Dir == "":
		return nil
	}
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		return usage("-C %s: no such directory", v.Dir)
	}
	return nil
}

// payload is what makes two orders equal.
func (v *runVerb) payload(a *app, cfg config.Config, cwd string) (session.Payload, error) {
	agent := v.Agent
	if agent == "" {
		agent = cfg.Agent
	}
	p := session.Payload{Provider: agent, Cwd: cwd, Env: v.envPayload(), Secret: secretNames(v.Secret)}
	switch {
	case agent == "":
		return p, usage("no agent: give -a command -- CMD ARG…, set PINTLE_AGENT, or default_agent in %s", cfg.Path())
	case agent != command.Name:
		if _, err := a.agent(cfg, agent); err != nil {
			return p, err
		}
		return v.promptOrder(a, p)
	case v.Model+v.Mode+v.Approve+v.Unattended+v.Policy != "" || len(v.AgentArg) > 0:
		return p, usage("-m, --mode, --approve, --unattended, --policy and --agent-arg are for agents; a command has none of it")
	case v.Warm > 0:
		return p, usage("--warm is for agents: a command's process ends with its run")
	case v.Share:
		return p, usage("--share is for agents: a command's process is its run")
	case v.Retries > 0:
		return p, usage("--retries is for agents, whose conversations go on: a command that has begun is not begun again")
	case v.File != "":
		return p, usage("-f %s: a command has no prompt; its words follow --", v.File)
	}
	words, ok := afterDashes(a.args)
	switch {
	case len(v.Words) == 0 || (ok && len(words) == 0):
		return p, usage("no command: give it after --, as in pintle run -a command -- CMD ARG…")
	case !ok || len(words) != len(v.Words):
		return p, usage("the command and its arguments follow --, as in pintle run -a command -- CMD ARG…")
	case words[0] == "":
		return p, usage("the command is blank")
	}
	p.Argv = words
	return p, nil
}

// detach has the order taken up and leaves.
func (f *follower) detach() error {
	if err := f.a.call(f.a.ctx, f.d, nil, api.MethodCreate, f.create, nil); err != nil {
		return err
	}
	if f.v.JSON {
		e, err := record.View(f.d, f.c.Folder)
		if err != nil {
			return err
		}
		f.a.print(result{"result", e})
		return nil
	}
	fmt.Fprintln(f.a.stdout, f.c.Spec.ID)
	return nil
}

// replay prints the stored result. There is no run to stop: a signal that came only leaves, and so does one that comes
// while standard output is not read.
func (f *follower) replay() error {
	if f.early != nil {
		return signalled(f.early)
	}
	if f.pending == nil {
		signal.Stop(f.signals)
	}
	e, err := record.View(f.d, f.c.Folder)
	if err != nil {
		return err
	}
	e.Replayed = true
	if !f.v.Quiet && !f.v.JSON {
		f.a.expired(e)
	}
	text, err := record.Text(f.d, f.c.Folder)
	if err != nil {
		return err
	}
	if !f.v.JSON && !f.v.Detach && f.v.Out == "" {
		_ = printText(f.a.stdout, e.Provider, text)
	}
	if f.v.Detach && !f.v.JSON {
		fmt.Fprintln(f.a.stdout, e.ID)
		return nil
	}
	if f.v.Out != "" {
		if _, err := f.sink.Write(text); err != nil {
			return fmt.Errorf("-o %s: %w", f.v.Out, state.Full(err))
		}
	}
	return f.end(e)
}
