package main

import (
	"fmt"
	"io"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// show prints one event of the attempt that is being waited for.
func (f *follower) show(e journal.Event) error {
	if e.Execution != f.c.Spec.ID || e.Turn != fmt.Sprintf("t%d", f.c.Spec.Desired.Attempt) {
		return nil
	}
	if err := f.moved(e); err != nil {
		return err
	}
	b, message, err := spoken(e)
	if err != nil {
		return err
	}
	if f.v.JSON {
		f.a.event(e)
	}
	if e.Type == "agent_message_chunk" && (f.v.JSON || f.spokenTo()) {
		f.hear(b, message)
	}
	if f.v.JSON || (f.spokenTo() && !f.live()) {
		return nil
	}
	if len(b) > 0 && f.live() && f.spokenTo() {
		f.midline = b[len(b)-1] != '\n'
	}
	return f.a.write(e.Type, b, f.sink)
}

// breakLine ends a line of what is shown as it comes, before something else is said.
func (f *follower) breakLine() {
	if f.midline {
		f.midline = false
		fmt.Fprintln(f.a.stdout)
	}
}

// spokenTo reports whether the run's text is its last message, and not all that it says.
func (f *follower) spokenTo() bool { return f.c.Spec.Payload.Provider != command.Name }

// live reports whether what an agent says is shown as it comes.
func (f *follower) live() bool { return f.v.Out == "" && terminal(f.a.stdout) }

// hear adds to the text.
func (f *follower) hear(b []byte, message string) {
	f.text.All = f.spokenTo()
	if message != f.message {
		f.message = message
		f.text.Reset()
		f.breakLine()
	}
	f.text.Add(b)
}

// spoken is what an agent wrote on its standard output or standard error, raw, and of which message it is; nothing of other
// events.
func spoken(e journal.Event) (b []byte, message string, err error) {
	if e.Type != "agent_message_chunk" && e.Type != "stderr" {
		return nil, "", nil
	}
	if b, message, err = session.Heard(e.Data); err != nil {
		err = fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return b, message, err
}

// write writes an agent's output to where it goes, by the type of its event.
func (a *app) write(kind string, b []byte, out io.Writer) error {
	switch {
	case len(b) == 0:
		return nil
	case kind == "stderr":
		_, _ = a.stderr.Write(b)
		return nil
	}
	if _, err := out.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// event prints an event as everybody sees it: its commit is the journal's own business.
func (a *app) event(e journal.Event) {
	e.Commit = nil
	a.print(e)
}

// conclude prints an agent's text, if it was not shown as it came. What it said so far is not the text yet.
func (f *follower) conclude(e api.Execution) error {
	switch {
	case f.v.JSON || !f.spokenTo():
		return nil
	case f.live():
		f.breakLine()
		return nil
	case e.ExitCode == nil:
		return nil
	}
	return printText(f.sink, f.c.Spec.Payload.Provider, f.text.Bytes())
}

// printResult prints the last line. The text is what was followed: the file may be a later attempt's by now.
func (f *follower) printResult(e api.Execution) {
	text := f.text.Bytes()
	if f.reader == nil {
		text, _ = record.Text(f.d, f.c.Folder)
	}
	s := string(text)
	e.Text = &s
	f.a.print(result{"result", e})
}
