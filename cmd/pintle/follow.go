package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// follower stays with one run: it has the order carried out, prints what the agent says as it comes, and
// ends with the run's own exit code.
type follower struct {
	a      *app
	d      *state.Dir
	v      *runVerb
	c      record.Claimed
	create api.Create

	sink    io.Writer // where the agent's output goes
	pending *renameio.PendingFile
	reader  *journal.Reader
	shown   int         // events so far
	text    record.Tail // with JSON, or of an agent: the result's text so far
	message string      // of which it is
	midline bool        // what is shown as it comes has not ended its line
	ask     *asker      // nil without a terminal
	signals chan os.Signal
	early   os.Signal // one that came while the order was given, which stands all the same
	signal  os.Signal // the first that came to a run that is followed
}

// result is the last line of `run --json`.
type result struct {
	Type string `json:"type"`
	api.Execution
}

// lookEvery is how often the journal is looked at for more while more comes, lookMost while nothing does: fifty verbs
// that wait must leave the machine to the one run that they wait for. The supervisor's answer ends the waiting at once;
// this only paces output.
const (
	lookEvery = 4 * time.Millisecond
	lookMost  = 100 * time.Millisecond
)

// heed has signals come to us, from before there is anything that they could leave behind: a file that -o began, an
// order that nobody cancels.
func (f *follower) heed() {
	f.signals = make(chan os.Signal, 4)
	signal.Notify(f.signals, syscall.SIGINT, syscall.SIGTERM)
}

// given is an order on record, or why it is not.
type given struct {
	d   *state.Dir
	c   record.Claimed
	err error
}

// give gives the order. A signal before it is on record takes it back: nothing was ordered, and nothing is left. If it
// came too late for that, it is early for the run. A second one (timeout(1) sends two at once) waits in the channel
// until that is clear: who left now would leave a run that nobody cancels.
func (f *follower) give(o order) error {
	ctx, cancel := context.WithCancel(f.a.ctx)
	defer cancel()
	done := make(chan given, 1)
	go func() { done <- f.a.give(ctx, o, f.v.Attempt) }()
	var g given
	select {
	case g = <-done:
	case f.early = <-f.signals:
		cancel()
		g = <-done
	}
	f.d, f.c = g.d, g.c
	if g.err != nil && f.early != nil {
		return signalled(f.early)
	}
	return g.err
}

func (a *app) give(ctx context.Context, o order, attempt int) (g given) {
	if g.d, g.err = a.open(ctx); g.err == nil {
		g.c, g.err = record.Claim(ctx, g.d, o.spec, attempt, o.fresh)
	}
	return g
}

func (f *follower) follow() error {
	ctx, cancel := f.limit()
	defer cancel()
	if f.early != nil {
		if err := f.interrupted(f.early); err != nil {
			return err
		}
	}
	ended, stages := f.await(ctx), f.watch(ctx)
	pace := lookEvery
	tick := time.NewTimer(pace)
	defer tick.Stop()
	for {
		select {
		case w := <-ended:
			return f.ended(ctx, w)
		case stage := <-stages:
			if err := f.pump(); err != nil { // what came before is told before
				return err
			}
			f.tell("%s", stage)
		case line := <-f.ask.line():
			f.ask.heard(line)
		case r := <-f.ask.result():
			f.ask.given(r)
		case s := <-f.signals:
			if err := f.interrupted(s); err != nil {
				return err
			}
		case <-tick.C:
			before := f.shown
			if err := f.pump(); err != nil {
				return err
			}
			if pace = min(2*pace, lookMost); f.shown > before {
				pace = lookEvery
			}
			f.ask.next()
			tick.Reset(pace)
		}
	}
}

// open opens where the output goes, before the order is given. Only a regular file can be replaced by one that
// is complete; what a symbolic link leads to is.
func (f *follower) open() error {
	f.sink = f.a.stdout
	if f.v.JSON {
		f.sink = io.Discard
	}
	if f.v.Out == "" {
		return nil
	}
	path := f.v.Out
	if led, err := filepath.EvalSymlinks(path); err == nil {
		path = led
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usage("-o %s: it is no regular file", f.v.Out)
	}
	p, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o666))
	var temporary *os.PathError
	if errors.As(err, &temporary) {
		err = temporary.Err // its name would tell nobody anything
	}
	if err != nil {
		return usage("-o %s: %w", f.v.Out, err)
	}
	f.pending, f.sink = p, p
	return nil
}

// limit is the context of the waiting. The run's deadline is the supervisor's business; a joiner's own
// --timeout ends only its waiting.
func (f *follower) limit() (context.Context, context.CancelFunc) {
	if f.v.Timeout > 0 && !f.creator() {
		return context.WithTimeout(f.a.ctx, f.v.Timeout)
	}
	return context.WithCancel(f.a.ctx)
}

func (f *follower) creator() bool { return f.c.New || f.c.Verdict == session.Begin }

// waited is how the waiting ended.
type waited struct {
	execution api.Execution
	err       error
}

// await has the order carried out and waits, over any number of supervisors' deaths.
func (f *follower) await(ctx context.Context) <-chan waited {
	done := make(chan waited, 1)
	go func() {
		var w waited
		w.err = f.a.call(ctx, f.d, func(c *rpc.Client) error {
			return c.Call(ctx, api.MethodCreate, f.create, nil)
		}, api.MethodWait, api.Wait{
			ID: f.c.Spec.ID, Attempt: f.c.Spec.Desired.Attempt, Answers: f.ask != nil,
		}, &w.execution)
		done <- w
	}()
	return done
}

func (f *follower) ended(ctx context.Context, w waited) error {
	if w.err != nil {
		f.ask.withdraw()
		if ctx.Err() != nil && f.a.ctx.Err() == nil {
			return api.E(api.CodeTimeout, "%s goes on: it has not ended within %s", f.c.Spec.ID, f.v.Timeout).
				WithNext("pintle wait " + record.Quote(f.c.Spec.ID))
		}
		return w.err
	}
	if err := f.pump(); err != nil {
		return err
	}
	f.ask.withdraw() // what has its answer was told so
	if err := f.conclude(w.execution); err != nil {
		return err
	}
	w.execution.Replayed = !f.creator()
	f.cleared(&w.execution)
	return f.end(w.execution)
}

// cleared waits until a run with --rm is archived. The supervisor does it in any case: whoever is killed here misses only
// the waiting.
func (f *follower) cleared(e *api.Execution) {
	if !f.c.Spec.Limits.Archive || e.Outcome != string(session.Completed) {
		return
	}
	var done api.Archived
	err := f.a.progressing(f.d, e.Workspace, func() error {
		return f.a.call(f.a.ctx, f.d, nil, api.MethodArchive, api.Archive{ID: e.ID, Reason: "--rm"}, &done)
	})
	if err != nil {
		f.a.say("%s is not archived yet: %v", e.ID, err)
		return
	}
	e.ArchivedAt = done.Report.ArchivedAt
	if done.Report.Pending != nil || f.v.Verbose {
		f.a.archived(e.ID, done, false)
	}
}

// interrupted is a signal: the creator's first one cancels the run and goes on waiting for the proof; a
// joiner's, and the second, only leaves. Unlike a stop that is refused (K2), this wish stands even where the status
// cannot be read: who gave the order takes it back, and nobody stays who could do so again.
func (f *follower) interrupted(s os.Signal) error {
	if !f.creator() || f.signal != nil {
		return signalled(s)
	}
	f.signal = s
	f.ask.withdraw()
	f.a.say("stopping %s; once more leaves it to itself", f.c.Spec.ID)
	_, err := record.Cancel(f.a.ctx, f.d, f.c.Folder, api.Cancel{
		Action: "stop", Reason: "the verb that ordered it got " + signalName(s), RequestedAt: time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	go func() { _ = f.a.call(f.a.ctx, f.d, nil, api.MethodStop, api.Control{ID: f.c.Spec.ID}, nil) }()
	return nil
}

// signalName is SIGINT where Go says "interrupt".
func signalName(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return unix.SignalName(n)
	}
	return s.String()
}

func signalled(s os.Signal) error {
	if s == syscall.SIGTERM {
		return exit(143)
	}
	return exit(130)
}

// pump prints what the journal has of this attempt by now.
func (f *follower) pump() error {
	if f.reader == nil {
		st, err := record.StatusOf(f.d, f.c.Folder)
		early := st.Session == "" || session.Phase(st.Phase) == session.Queued
		if err != nil || early || st.Attempt < f.c.Spec.Desired.Attempt {
			return ignoreAbsent(err)
		}
		if st.Attempt > f.c.Spec.Desired.Attempt {
			st.Since = 0 // it is of a later attempt
		}
		f.reader = journal.NewReader(f.d.Path(record.JournalDir(st.Session)), st.Since)
	}
	for {
		events, err := f.reader.Next()
		f.shown += len(events)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			if err := f.show(e); err != nil {
				return err
			}
		}
	}
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// drop forgets a file that was being written.
func (f *follower) drop() {
	if f.pending != nil {
		_ = f.pending.Cleanup()
	}
}

// end says how it ended and returns the exit code.
func (f *follower) end(e api.Execution) error {
	if f.v.JSON {
		f.printResult(e)
	}
	if e.ExitCode == nil {
		return waitsFor(e)
	}
	code := *e.ExitCode
	if code == 0 && f.pending != nil {
		if err := f.pending.CloseAtomicallyReplace(); err != nil {
			return fmt.Errorf("-o %s: %w", f.v.Out, state.Full(err))
		}
	}
	if f.v.Verbose || (!f.v.JSON && code != 0) {
		f.a.say("%s", verdictLine(e))
		if next := advice(e); next != "" {
			f.a.say("hint: %s", next)
		}
	}
	if warm := f.c.Spec.Limits.Warm; warm > 0 && code == 0 && f.creator() {
		f.tell("its agent is kept for %s", warm)
	}
	if f.signal != nil {
		return signalled(f.signal)
	}
	if code == 0 {
		return nil
	}
	return exit(code)
}

// waitsFor is the error of a run that goes on only if somebody does something.
func waitsFor(e api.Execution) error {
	why := "has not ended"
	if e.WaitingFor != nil {
		why = "waits: " + reason(e)
	}
	return api.E(api.CodeWaiting, "%s %s", e.ID, why).WithNext(next(e))
}

// next is what helps a run that waits.
func next(e api.Execution) string {
	switch len(e.Permissions) {
	case 0:
		return e.Next
	case 1:
		id := e.Permissions[0].ID
		return "pintle allow " + id + ", or pintle deny " + id
	}
	return "pintle approvals"
}

// advice is what helps where an ending comes of what the order, or whoever gave it, lacks; "" elsewhere.
func advice(e api.Execution) string {
	switch {
	case e.Outcome == string(session.Denied):
		return "allow it with --approve or --policy, or have it wait with --unattended park"
	case e.Cause != nil && e.Cause.Code == "auth":
		return "pintle agents says how to sign in"
	}
	return ""
}

// verdictLine says in one line how a run ended.
func verdictLine(e api.Execution) string {
	line := fmt.Sprintf("%s: %s", e.ID, e.Outcome)
	if e.Cause != nil && e.Cause.Message != "" {
		line += ": " + onLine.Replace(strings.TrimSpace(e.Cause.Message)) // it may name what was asked for
	}
	return line
}
