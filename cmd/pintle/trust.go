package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// trustVerb is `pintle trust`.
type trustVerb struct {
	output
	Dir    string `short:"C" name:"dir" help:"Directory in the repository; the caller's if not given." placeholder:"DIR"`
	Ref    string `xor:"what" help:"The commit whose .pintle.toml is meant; HEAD if not given." placeholder:"REF"`
	Revoke bool   `xor:"what" help:"Forget all that was trusted of the repository."`
}

// Help is more of `pintle trust --help`.
func (v *trustVerb) Help() string {
	return "Prints what it trusts, and asks nothing: look at the file first if you do not know it."
}

// trustReport is what --json prints.
type trustReport struct {
	Repository  string   `json:"repository"`
	Commit      string   `json:"commit,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Setup       []string `json:"setup"`
	Cleanup     []string `json:"cleanup"`
	Copy        []string `json:"copy"`
	Trusted     bool     `json:"trusted"`
	Already     bool     `json:"already"`
}

// Run trusts what a repository's .pintle.toml has done to worktrees, or nothing of it any more.
func (v *trustVerb) Run(a *app) error {
	dir := cmp.Or(v.Dir, ".")
	repo, err := worktree.Probe(a.ctx, dir)
	switch {
	case errors.Is(err, worktree.ErrNone):
		return usage("%s is in no git repository", dir)
	case errors.Is(err, fs.ErrNotExist):
		return usage("-C %s: no such directory", dir)
	case err != nil:
		return err
	case v.Revoke:
		return v.revoke(a, repo.CommonDir)
	}
	commit, err := worktree.Resolve(a.ctx, dir, v.Ref)
	if err != nil {
		return usage("%w", err)
	}
	cfg, err := repoFile(a.ctx, repo.CommonDir, commit)
	if err != nil {
		return err
	}
	if cfg.Empty() {
		return v.nothing(a, repo.CommonDir, commit, cfg)
	}
	return v.trust(a, repo.CommonDir, commit, cfg)
}

func (v *trustVerb) trust(a *app, repository, commit string, cfg config.Repo) error {
	d, err := a.open(a.ctx)
	if err != nil {
		return err
	}
	already, err := record.Trust(a.ctx, d, repository, cfg.Fingerprint(), time.Now())
	if err != nil {
		return err
	}
	if v.JSON {
		a.print(reportOf(repository, commit, cfg, already))
		return nil
	}
	fmt.Fprint(a.stdout, recited(cfg))
	if already {
		a.say("trusted already in %s", repository)
	} else {
		a.say("trusted in %s, as it is at %s", repository, short(commit))
	}
	return nil
}

func reportOf(repository, commit string, cfg config.Repo, already bool) trustReport {
	w := cfg.Worktree
	return trustReport{
		Repository: repository, Commit: commit, Fingerprint: cfg.Fingerprint(),
		Setup: array(w.Setup), Cleanup: array(w.Cleanup), Copy: array(w.Copy), Trusted: true, Already: already,
	}
}

// array is never null in JSON.
func array(values []string) []string { return append([]string{}, values...) }

// nothing says that there is nothing to trust, which is no failure: a script need not know whether there is.
func (v *trustVerb) nothing(a *app, repository, commit string, cfg config.Repo) error {
	if v.JSON {
		a.print(reportOf(repository, commit, cfg, true))
		return nil
	}
	a.say("nothing to trust: %s at %s has no commands and copies, or is not there", config.RepositoryFile, short(commit))
	return nil
}

func (v *trustVerb) revoke(a *app, repository string) error {
	d, err := a.existing()
	had := false
	if err == nil && d != nil {
		had, err = record.Distrust(a.ctx, d, repository)
	}
	switch {
	case err != nil:
		return err
	case v.JSON:
		r := reportOf(repository, "", config.Repo{}, !had)
		r.Fingerprint, r.Trusted = "", false
		a.print(r)
	case had:
		a.say("nothing is trusted any more in %s", repository)
	default:
		a.say("nothing was trusted in %s", repository)
	}
	return nil
}

// recited is what trust covers, one a line behind its kind. A command of several lines is indented, so that none of them
// passes for another command; control characters are never printed, since whoever reads this decides by it.
func recited(cfg config.Repo) string {
	var b strings.Builder
	w := cfg.Worktree
	for _, part := range []struct {
		kind   string
		values []string
	}{{"setup", w.Setup}, {"cleanup", w.Cleanup}, {"copy", w.Copy}} {
		for _, value := range part.values {
			fmt.Fprintf(&b, "%-9s%s\n", part.kind, strings.ReplaceAll(mute(strings.TrimRight(value, "\n")), "\n", "\n         "))
		}
	}
	return b.String()
}

func short(commit string) string { return commit[:min(12, len(commit))] }

// repoFile reads the .pintle.toml of a commit; one that is not there says nothing.
func repoFile(ctx context.Context, repository, commit string) (config.Repo, error) {
	text, err := worktree.File(ctx, repository, commit, config.RepositoryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return config.DefaultRepo(), nil
	}
	if err != nil {
		return config.Repo{}, err
	}
	cfg, err := config.Repository(config.RepositoryFile+" at "+short(commit), text)
	if err != nil {
		return cfg, usage("%w", err)
	}
	return cfg, nil
}

// repoConfig is the .pintle.toml of the commit on which a worktree is to be based, if nothing of it needs trust that it
// does not have. Errors: *api.Error with CodeUntrusted, or CodeUsage for a file that is wrong; those of package state.
func repoConfig(ctx context.Context, d *state.Dir, repository, commit string) (config.Repo, error) {
	cfg, err := repoFile(ctx, repository, commit)
	if err != nil || cfg.Empty() {
		return cfg, err
	}
	ok := false
	if d != nil { // else nothing is trusted yet
		ok, err = record.Trusted(d, repository, cfg.Fingerprint())
	}
	if err != nil {
		return config.Repo{}, err
	}
	if !ok {
		return config.Repo{}, untrusted(cfg, repository, commit)
	}
	return cfg, nil
}

// untrusted says what is not trusted, and how to change that: from a main worktree's directory, as the user knows it.
func untrusted(cfg config.Repo, repository, commit string) error {
	dir := repository
	if filepath.Base(dir) == ".git" {
		dir = filepath.Dir(dir)
	}
	what := "copy"
	if len(cfg.Worktree.Setup)+len(cfg.Worktree.Cleanup) > 0 {
		what = "run"
	}
	first := slices.Concat(cfg.Worktree.Setup, cfg.Worktree.Cleanup, cfg.Worktree.Copy)[0]
	return api.E(api.CodeUntrusted, "%s at %s wants to %s %s and is not trusted", config.RepositoryFile, short(commit), what, excerpt(first)).
		WithNext("pintle trust -C " + record.Quote(dir) + " --ref " + short(commit))
}

// excerpt quotes the beginning of what may be long.
func excerpt(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
