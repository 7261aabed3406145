package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers/command"
	"github.com/pintle/pintle/state"
)

// promptOrder is the payload of an order to an agent that is spoken to.
func (v *runVerb) promptOrder(a *app, p session.Payload) (session.Payload, error) {
	p.Model, p.Mode, p.AgentArgs, p.Approve, p.Unattended = v.Model, v.Mode, v.AgentArg, v.Approve, v.Unattended
	var err error
	p.Prompt, err = v.prompt(a)
	switch {
	case err != nil:
		return p, err
	case strings.TrimSpace(p.Prompt) == "":
		return p, usage("the prompt is blank")
	case !utf8.ValidString(p.Prompt):
		return p, usage("the prompt is not valid UTF-8")
	}
	return p, nil
}

// prompt is one argument, and what a file or standard input has: - alone is standard input, PROMPT - the prompt, an
// empty line, and standard input, and -f FILE likewise. Behind -- a word is what it is.
func (v *runVerb) prompt(a *app) (string, error) {
	words := slices.Clone(v.Words)
	literal, _ := afterDashes(a.args)
	var more io.Reader
	if n := len(words); n > len(literal) && words[n-1-len(literal)] == "-" {
		words = slices.Delete(words, n-1-len(literal), n-len(literal))
		more = a.stdin
	}
	switch {
	case len(words) > 1:
		return "", usage("a prompt is one argument, and there are %d: quote it", len(words))
	case v.File != "" && more != nil:
		return "", usage("-f and - can't be used together")
	case len(words) == 0 && v.File == "" && more == nil:
		return "", usage(`no prompt: give it as one argument, as in %s "fix the test"`, v.typed())
	case v.File != "":
		data, err := os.ReadFile(v.File)
		if err != nil {
			return "", usage("-f: %w", err)
		}
		more = bytes.NewReader(data)
	}
	if more == nil {
		return words[0], nil
	}
	rest, err := io.ReadAll(more)
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return strings.Join(append(words, string(rest)), "\n\n"), nil
}

// printText prints a run's text: a command's as it is; an agent's message ends a line.
func printText(out io.Writer, provider string, text []byte) error {
	if provider != command.Name && len(text) > 0 && !bytes.HasSuffix(text, []byte{'\n'}) {
		text = append(slices.Clone(text), '\n')
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("write output: %w", state.Full(err))
	}
	return nil
}

// typed is how such an order begins.
func (v *runVerb) typed() string {
	switch {
	case v.sends:
		return "pintle send " + record.Quote(v.Session)
	case v.Session != "":
		return "pintle run --session " + record.Quote(v.Session)
	case v.Agent == "": // it is the default
		return "pintle run"
	}
	return "pintle run -a " + record.Quote(v.Agent)
}
