package main

import (
	"encoding/json"
	"fmt"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// showVerb is `pintle show`.
type showVerb struct {
	output
	Field string `help:"Print one field alone, as in cause.status." placeholder:"F"`
	ID    string `arg:"" help:"The run."`
}

// Run prints one run: the record, checked against what lives.
func (v *showVerb) Run(a *app) error {
	e, d, folder, err := a.look(v.ID)
	if err != nil {
		return err
	}
	if session.Phase(e.Phase) != session.Ended {
		e = a.now(d, folder, e)
	}
	if text, err := record.Text(d, folder); err == nil && session.Phase(e.Phase) == session.Ended {
		s := string(text)
		e.Text = &s
	}
	if v.Field != "" {
		return a.field(e, v.Field, v.JSON)
	}
	if v.JSON {
		a.print(e)
		return nil
	}
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, a.shown(string(data)))
	return nil
}

// look finds a run and how it is now.
func (a *app) look(id string) (api.Execution, *state.Dir, string, error) {
	d, err := a.need(id)
	if err != nil {
		return api.Execution{}, nil, "", err
	}
	folder, err := record.Find(d, id)
	if err != nil {
		return api.Execution{}, nil, "", err
	}
	e, err := record.View(d, folder)
	return e, d, folder, err
}

// field prints one field as JSON; a string as it is, unless JSON is asked for.
func (a *app) field(e api.Execution, path string, asJSON bool) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var at any
	if err := json.Unmarshal(data, &at); err != nil {
		return err
	}
	for _, name := range splitPath(path) {
		m, ok := at.(map[string]any)
		if !ok {
			at = nil
			break
		}
		at = m[name]
	}
	word, isWord := at.(string)
	switch {
	case at == nil:
		return api.E(api.CodeNotFound, "%s has no field %s", e.ID, path).WithNext("pintle show " + record.Quote(e.ID))
	case isWord && !asJSON:
		fmt.Fprintln(a.stdout, a.shown(word))
	default:
		a.print(at)
	}
	return nil
}

func splitPath(path string) (names []string) {
	start := 0
	for i := range len(path) + 1 {
		if i == len(path) || path[i] == '.' {
			names, start = append(names, path[start:i]), i+1
		}
	}
	return names
}

// resultVerb is `pintle result`.
type resultVerb struct {
	output
	ID string `arg:"" help:"The run."`
}

// Run prints a run's text and exits with its code; 15 while it has not ended, or its end was not taken in.
func (v *resultVerb) Run(a *app) error {
	e, d, folder, err := a.look(v.ID)
	if err != nil {
		return err
	}
	switch {
	case session.Phase(e.Phase) != session.Ended && e.WaitingFor != nil:
		return waitsFor(e)
	case session.Phase(e.Phase) != session.Ended:
		return api.E(api.CodeWaiting, "%s has not ended: %s", e.ID, e.Phase).WithNext("pintle wait " + record.Quote(e.ID))
	case e.EndedAt == nil:
		return untaken(e)
	}
	text, err := record.Text(d, folder)
	if err != nil {
		return err
	}
	if v.JSON {
		s := string(text)
		e.Text = &s
		a.print(e)
	} else {
		_ = printText(a.stdout, e.Provider, text)
		a.expired(e)
	}
	return codeOf(e)
}

// expired says why there is no text.
func (a *app) expired(e api.Execution) {
	if e.ResultExpired {
		a.say("%s: what it said has expired; its outcome is known", e.ID)
	}
}

// untaken is the error of a run that is over and whose end no supervisor has taken in: what it said may not be in its
// text yet, and of its tree something may live.
func untaken(e api.Execution) error {
	return api.E(api.CodeWaiting, "the end of %s (%s) has not been taken in", e.ID, e.Outcome).WithNext("pintle wait " + record.Quote(e.ID))
}

// codeOf is a run's exit code as the verb's own.
func codeOf(e api.Execution) error {
	if e.ExitCode == nil {
		return waitsFor(e)
	}
	if *e.ExitCode == 0 {
		return nil
	}
	return exit(*e.ExitCode)
}
