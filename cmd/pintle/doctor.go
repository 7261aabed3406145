package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// doctorVerb is `pintle doctor`.
type doctorVerb struct{ output }

// check is one thing that doctor looked at.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warning, error
	Detail string `json:"detail,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// Run looks and repairs nothing.
func (v *doctorVerb) Run(a *app) error {
	checks := []check{a.checkConfig(), checkGit()}
	d, err := a.existing()
	switch {
	case err != nil:
		e := typed(err)
		checks = append(checks, check{"state directory", "error", e.Message, e.Next})
	case d == nil:
		checks = append(checks, check{"state directory", "ok", "none yet", ""})
	default:
		checks = append(checks, check{"state directory", "ok", d.Path(), ""}, a.checkSupervisor(d))
		checks = append(checks, checkRecords(d)...)
	}
	return v.report(a, checks)
}

func (v *doctorVerb) report(a *app, checks []check) error {
	ok := true
	for _, c := range checks {
		ok = ok && c.Status != "error"
	}
	if v.JSON {
		a.print(struct {
			OK     bool    `json:"ok"`
			Checks []check `json:"checks"`
		}{ok, checks})
	} else {
		for _, c := range checks {
			fmt.Fprintf(a.stdout, "%-8s %s: %s\n", c.Status, c.Name, mute(c.Detail))
			if c.Fix != "" {
				fmt.Fprintf(a.stdout, "         fix: %s\n", mute(c.Fix))
			}
		}
	}
	if !ok {
		return exit(api.CodeCorrupt.Exit())
	}
	return nil
}

func (a *app) checkConfig() check {
	cfg, err := a.config()
	if err != nil {
		return check{"configuration", "error", err.Error(), "mend the file"}
	}
	if _, err := os.Stat(cfg.Path()); errors.Is(err, fs.ErrNotExist) {
		if a.getenv("PINTLE_CONFIG") != "" {
			return check{"configuration", "warning", cfg.Path() + ": not there: defaults", "mend or unset PINTLE_CONFIG"}
		}
		return check{"configuration", "ok", "none: defaults", ""}
	}
	return check{"configuration", "ok", cfg.Path(), ""}
}

func checkGit() check {
	path, err := exec.LookPath("git")
	if err != nil {
		return check{"git", "warning", "not found: results name no branch", "install git"}
	}
	return check{"git", "ok", path, ""}
}

func (a *app) checkSupervisor(d *state.Dir) check {
	if serving(a.ctx, d) {
		return check{"supervisor", "ok", "running", ""}
	}
	if supervised(d) {
		return check{"supervisor", "error", "one holds the lock and does not answer", "pintle supervise restart --force"}
	}
	return check{"supervisor", "ok", "not running; started when needed", ""}
}
