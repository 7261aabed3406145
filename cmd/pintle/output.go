package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/pintle/pintle/internal/record"
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
	b, err := spoken(e)
	if err != nil {
		return err
	}
	if f.v.JSON {
		f.a.event(e)
	}
	if e.Type == "agent_message_chunk" && (f.v.JSON || f.spokenTo()) {
		f.hear(e, b)
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
func (f *follower) hear(e journal.Event, b []byte) {
	var c struct{ MessageID string }
	f.text.All = f.spokenTo()
	if json.Unmarshal(e.Data, &c) == nil && c.MessageID != f.message {
		f.message = c.MessageID
		f.text.Reset()
		f.breakLine()
	}
	f.text.Add(b)
}

// spoken is what an agent wrote on its standard output or standard error, raw; nothing of other events.
func spoken(e journal.Event) ([]byte, error) {
	if e.Type != "agent_message_chunk" && e.Type != "stderr" {
		return nil, nil
	}
	b, err := command.Bytes(e.Data)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return b, nil
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
