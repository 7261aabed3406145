package worktree

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Resolve returns the full name of the commit that ref names in the repository of dir: a branch, a tag, a commit, or
// whatever else git understands. An empty ref is HEAD, and a HEAD before the first commit is ErrNoCommit.
func Resolve(ctx context.Context, dir, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	if strings.HasPrefix(ref, "-") || strings.ContainsRune(ref, 0) {
		return "", fmt.Errorf("%q names no commit", ref)
	}
	out, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if !refused(err, 1) {
		return "", err
	}
	if branch, err := unborn(ctx, dir); ref == "HEAD" && err == nil {
		return "", fmt.Errorf("%w: nothing is committed on %s in %s", ErrNoCommit, branch, dir)
	}
	return "", fmt.Errorf("%q names no commit in %s", ref, dir)
}

// refused reports whether git ran and ended with a status by which it says no.
func refused(err error, status int) bool {
	exit := new(exec.ExitError)
	return errors.As(err, &exit) && exit.ExitCode() == status
}

// Exists reports whether a repository, named by its common git directory, has a branch.
func Exists(ctx context.Context, repository, branch string) (bool, error) {
	_, err := git(ctx, repository, "--git-dir=.", "show-ref", "--verify", "--quiet", heads+branch)
	if refused(err, 1) {
		return false, nil
	}
	return err == nil, err
}
