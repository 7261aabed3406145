package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/worktree"
)

// treeFlags say which worktree is made.
type treeFlags struct {
	Worktree bool   `help:"Work in a git worktree that is made for it."`
	Branch   string `help:"Name of the worktree's new branch; the first of NAME, NAME-2, … that is free." placeholder:"NAME"`
	Base     string `help:"Commit that the branch is made from; by default that of the directory." placeholder:"REF"`
	Checkout string `help:"A worktree of this branch, which is there already." placeholder:"BRANCH"`
	Pull     *int   `name:"pr" help:"A worktree of this pull request." placeholder:"N"`
	Reuse    string `name:"worktree-reuse" enum:",new,reuse,fail" default:"" help:"What a worktree on the branch that pintle made before means: new, reuse, fail." placeholder:"HOW"`
}

// wanted reports whether a worktree is.
func (f treeFlags) wanted() bool {
	return f.Worktree || f.Branch+f.Base+f.Checkout+f.Reuse != "" || f.Pull != nil
}

// check refuses what makes no sense together.
func (f treeFlags) check() error {
	switch {
	case f.Pull != nil && *f.Pull < 1:
		return usage("--pr %d: pull requests are numbered from 1", *f.Pull)
	case f.Checkout != "" && (f.Branch+f.Base != "" || f.Pull != nil):
		return usage("--checkout takes a branch as it is: it can't be used with --branch, --base and --pr")
	case f.Reuse != "" && f.Branch+f.Checkout == "" && f.Pull == nil:
		return usage("--worktree-reuse is about a branch: give --branch, --checkout or --pr")
	}
	return nil
}

// into puts the words into what makes two orders equal, as they were given.
func (f treeFlags) into(p *session.Payload) {
	p.Worktree, p.Branch, p.Base, p.Checkout = f.wanted(), f.Branch, f.Base, f.Checkout
	if f.Pull != nil {
		p.Pull = *f.Pull
	}
	if f.Reuse != "new" {
		p.Reuse = f.Reuse
	}
}

// order finds out what the words mean now, in the repository of a directory. What it takes from a remote is objects alone.
func (f treeFlags) order(a *app, cwd string) (*record.TreeOrder, error) {
	repo, err := worktree.Probe(a.ctx, cwd)
	if errors.Is(err, worktree.ErrNone) {
		return nil, noRepository(cwd)
	}
	if err != nil {
		return nil, err
	}
	if f.Branch != "" {
		if err := worktree.ValidBranch(a.ctx, repo.CommonDir, f.Branch); err != nil {
			return nil, usage("--branch: %w", err)
		}
	}
	o := record.TreeOrder{Umask: processUmask(), Repository: repo.CommonDir, Source: repo.TopLevel, Branch: f.Branch, Own: f.Checkout == "", Sub: below(repo.TopLevel, cwd)}
	if f.Reuse != "new" {
		o.Reuse = f.Reuse
	}
	o.Commit = repo.Head
	trusted, err := f.resolve(a, cwd, &o)
	if err != nil {
		return nil, err
	}
	if err := a.alone(o); err != nil {
		return nil, err
	}
	o.Recipe, err = a.recipe(repo.CommonDir, trusted)
	return &o, err
}

// alone refuses, if that is asked for, a branch that has a worktree of pintle's. The supervisor looks once more.
func (a *app) alone(o record.TreeOrder) error {
	d, err := a.existing()
	if err != nil || d == nil || o.Reuse != "fail" {
		return err
	}
	for _, t := range supervisor.Worktrees(d) {
		if t.Repository == o.Repository && t.Branch == o.Branch && (t.State == record.TreeReady || t.State == record.TreeMade) {
			return api.E(api.CodeOccupied, "--worktree-reuse fail: %s has a worktree: %s", printable(o.Branch), t.Dir).
				WithNext("--worktree-reuse reuse runs there, new makes another one")
		}
	}
	return nil
}

// noRepository says why there can be no worktree.
func noRepository(cwd string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return usage("a worktree takes git: %w", err)
	}
	return api.E(api.CodeUsage, "%s is in no git repository, so there can be no worktree of it", cwd).
		WithNext("give -C with a directory of one, or leave out what makes a worktree")
}

// resolve finds the commit and the branch, and whose .pintle.toml counts: never a pull request's own (X26).
func (f treeFlags) resolve(a *app, cwd string, o *record.TreeOrder) (trusted string, err error) {
	switch {
	case f.Pull != nil:
		o.Branch = cmp.Or(f.Branch, fmt.Sprintf("pr-%d", *f.Pull))
		o.Commit, trusted, err = worktree.Pull(a.ctx, cwd, *f.Pull)
		if err == nil && f.Base != "" {
			trusted, err = f.base(a, cwd)
		}
		return trusted, refused(err)
	case f.Checkout != "":
		o.Branch = f.Checkout
		if o.Reuse != "reuse" {
			if at, err := worktree.CheckedOut(a.ctx, o.Repository, f.Checkout); err != nil || at != "" {
				return "", elsewhere(f.Checkout, at, err)
			}
		}
		if there, err := worktree.Exists(a.ctx, o.Repository, f.Checkout); err != nil || !there {
			return "", noBranch(f.Checkout, cwd, err)
		}
		o.Commit, err = worktree.Resolve(a.ctx, cwd, "refs/heads/"+f.Checkout)
		return o.Commit, refused(err)
	}
	if f.Base != "" || o.Commit == "" {
		o.Commit, err = f.base(a, cwd)
	}
	return o.Commit, refused(err)
}

// base is the commit that --base names, or that of the directory.
func (f treeFlags) base(a *app, cwd string) (string, error) {
	commit, err := worktree.Resolve(a.ctx, cwd, f.Base)
	switch {
	case errors.Is(err, worktree.ErrNoCommit):
		err = api.E(api.CodeUsage, "%w", err).WithNext("git commit --allow-empty -m 'first commit'")
	case err != nil && f.Base != "":
		err = fmt.Errorf("--base: %w", err)
	}
	return commit, err
}

// noBranch says that there is none to check out.
func noBranch(branch, cwd string, err error) error {
	if err != nil {
		return err
	}
	return api.E(api.CodeUsage, "--checkout %s: there is no such branch in %s", printable(branch), cwd).
		WithNext("git branch --all lists them; --branch makes one, from --base")
}

// refused makes a usage error of what git says about a name that was given.
func refused(err error) error {
	if err == nil || api.CodeOf(err) == api.CodeUsage {
		return err
	}
	return usage("%w", err)
}

// elsewhere says where a branch is checked out (X28).
func elsewhere(branch, at string, err error) error {
	if err != nil {
		return refused(err)
	}
	return api.E(api.CodeOccupied, "--checkout %s: it is checked out in %s", branch, at).
		WithNext("run there with -C, give --worktree-reuse reuse if that is a worktree of pintle's, or branch off with --base " + record.Quote(branch))
}

// below is the path of dir below root, "" if it is none.
func below(root, dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(root, dir)
	if root == "" || err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return ""
	}
	return rel
}

// recipe is what the .pintle.toml of a commit has done to worktrees, once that is trusted.
func (a *app) recipe(repository, commit string) (record.Recipe, error) {
	d, err := a.existing()
	if err != nil {
		return record.Recipe{}, err
	}
	cfg, err := repoConfig(a.ctx, d, repository, commit)
	if err != nil {
		return record.Recipe{}, err
	}
	return recipeOf(cfg), nil
}

func recipeOf(cfg config.Repo) record.Recipe {
	w := cfg.Worktree
	return record.Recipe{
		Setup: w.Setup, SetupTimeout: time.Duration(w.SetupTimeout), Cleanup: w.Cleanup, CleanupTimeout: time.Duration(w.CleanupTimeout),
		Copy: w.Copy, Keep: cfg.Archive.Keep,
	}
}

// inTree reports whether a command is a file of the worktree that is not there yet.
func inTree(p session.Payload) bool {
	return p.Worktree && len(p.Argv) > 0 && strings.Contains(p.Argv[0], "/") && !filepath.IsAbs(p.Argv[0])
}

// plant finds out which worktree is to be made, once.
func (v *runVerb) plant(a *app, spec *record.Spec) (err error) {
	if !v.wanted() || spec.Tree != nil {
		return nil
	}
	if spec.Tree, err = v.treeFlags.order(a, spec.Payload.Cwd); err != nil {
		return err
	}
	if inTree(spec.Payload) {
		spec.Tree.Program = spec.Payload.Argv[0]
	}
	return nil
}
