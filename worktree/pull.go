package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// discreet keeps a fetch from leaving anything but objects: no reference of the user's, no FETCH_HEAD, no tags, no
// submodules, nothing pruned, and no asking for a password.
var discreet = []string{
	"--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-prune", "--no-auto-maintenance",
	"--no-write-commit-graph", "--refmap=",
}

// Pull fetches pull request n from the remote of dir's branch, else from origin, else from the only one, and returns
// its commit and the commit of the remote's default branch. Forges name pull requests refs/pull/N/head, GitLab
// refs/merge-requests/N/head.
//
// It asks the remote first what it has and then fetches those very commits, since a fetch says only in FETCH_HEAD,
// which is the user's, what it got.
func Pull(ctx context.Context, dir string, n int) (head, base string, err error) {
	remote, err := remoteOf(ctx, dir)
	if err == nil {
		head, base, err = pull(ctx, dir, remote, n)
	}
	if err != nil {
		return "", "", fmt.Errorf("pull request %d of %s: %w", n, shown(remote), err)
	}
	return head, base, nil
}

func pull(ctx context.Context, dir, remote string, n int) (head, base string, err error) {
	request := []string{fmt.Sprintf("refs/pull/%d/head", n), fmt.Sprintf("refs/merge-requests/%d/head", n)}
	there, err := advertised(ctx, dir, remote, append(request, "HEAD")...)
	if err != nil {
		return "", "", err
	}
	if head = there[request[0]]; head == "" {
		head = there[request[1]]
	}
	base = there["HEAD"]
	if head == "" {
		return "", "", errors.New("the remote has no such pull request")
	}
	if base == "" {
		return "", "", errors.New("the remote has no default branch")
	}
	_, err = git(ctx, dir, slices.Concat([]string{"fetch"}, discreet, []string{"--", remote, head, base})...)
	return head, base, err
}

// advertised returns the commits of those references that the remote has.
func advertised(ctx context.Context, dir, remote string, refs ...string) (map[string]string, error) {
	out, err := git(ctx, dir, append([]string{"ls-remote", "--quiet", "--", remote}, refs...)...)
	there := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if commit, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			there[ref] = commit
		}
	}
	return there, err
}

// remoteOf returns the remote that a fetch in dir would take, and the only one where there is just one.
func remoteOf(ctx context.Context, dir string) (string, error) {
	if branch, err := unborn(ctx, dir); err == nil {
		out, err := git(ctx, dir, "config", "--get", "branch."+branch+".remote")
		if remote := strings.TrimSpace(string(out)); err == nil && remote != "" && remote != "." {
			return remote, nil
		}
	}
	out, err := git(ctx, dir, "remote")
	remotes := strings.Fields(string(out))
	switch {
	case err != nil:
		return "", err
	case len(remotes) == 0:
		return "", errors.New("the repository has no remote")
	case len(remotes) == 1:
		return remotes[0], nil
	}
	for _, remote := range remotes {
		if remote == "origin" {
			return remote, nil
		}
	}
	return "", fmt.Errorf("it is not clear which of the remotes %s to ask", strings.Join(remotes, ", "))
}

// shown is the remote as an error may show it: an address has no password.
func shown(remote string) string {
	switch {
	case remote == "":
		return "an unknown remote"
	case strings.Contains(remote, "@") && strings.Contains(remote, "://"):
		scheme, rest, _ := strings.Cut(remote, "://")
		return "remote " + scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return "remote " + remote
}
