package main

import (
	"github.com/pintle/pintle/internal/record"
)

// rmVerb is `pintle rm`.
type rmVerb struct {
	output
	selection
}

// Help is more of `pintle rm --help`.
func (v *rmVerb) Help() string { return noneIsFine }

// Run frees keys. The records are kept under archived/, so that nothing is lost by it.
func (v *rmVerb) Run(a *app) error {
	d, targets, err := a.targets(v.selection, false, false)
	if err != nil {
		return a.content(err, v.JSON, map[string]any{"removed": false})
	}
	return a.each(targets, func(t target) error {
		if err := record.Remove(a.ctx, d, t.folder); err != nil {
			return err
		}
		if v.JSON {
			a.print(map[string]any{"id": t.id, "removed": true})
		}
		return nil
	})
}
