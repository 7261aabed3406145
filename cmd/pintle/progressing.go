package main

import (
	"fmt"
	"time"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// tellEvery is how often a terminal is told how far an archive has come, and from when on.
const tellEvery = 500 * time.Millisecond

// progressing does something that archives a run, and shows on a terminal how much of its work is kept so far.
func (a *app) progressing(d *state.Dir, workspace string, do func() error) error {
	if !terminal(a.stderr) || d == nil || a.getenv("TERM") == "dumb" {
		return do()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	shown := false
	for {
		select {
		case err := <-done:
			if shown {
				fmt.Fprint(a.stderr, "\r\x1b[K")
			}
			return err
		case <-time.After(tellEvery):
			if p := a.progressOf(d, workspace); p != nil {
				shown = true
				fmt.Fprintf(a.stderr, "\r\x1b[Kpintle: keeping %d files, %d MB", p.Files, p.Bytes>>20)
			}
		}
	}
}

// progressOf asks the supervisor, if there is one.
func (a *app) progressOf(d *state.Dir, workspace string) *api.Progress {
	c, _, err := dial(a.ctx, d)
	if err != nil {
		return nil
	}
	defer c.Close()
	var w api.Workspace
	if err := c.Call(a.ctx, api.MethodWsGet, api.Target{ID: workspace}, &w); err != nil {
		return nil
	}
	return w.Progress
}
