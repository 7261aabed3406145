package main

import (
	"fmt"
)

// configVerb is `pintle config`.
type configVerb struct{ output }

// Run prints the configuration in force.
func (v *configVerb) Run(a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !v.JSON {
		fmt.Fprint(a.stdout, cfg.Resolve())
		return nil
	}
	data, err := cfg.JSON()
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, string(data))
	return nil
}
