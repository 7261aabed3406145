// Package worktree knows the git repository of a directory, and what was changed in it, and makes and removes
// worktrees.
//
// It asks git(1). No command of it runs a hook or asks a question. What asks writes nothing and takes no lock, but for
// Pull, which fetches objects. What makes or removes something is a method of Hold, the lock of a repository.
// It trusts neither the caller's GIT_ variables nor the user's taste in output. It does not know sessions,
// records or leases.
package worktree

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNone is returned by Probe for a directory that is in no repository, and where there is no git. Callers go
// on without a repository.
var ErrNone = errors.New("no git repository")

// Repository is the repository of a directory, as it was at one moment. Paths are absolute and without symbolic
// links.
type Repository struct {
	CommonDir string // where objects and references are: the same for all worktrees of a repository
	TopLevel  string // root of the working tree; "" where there is none
	GitDir    string // what belongs to this working tree alone
	Branch    string // without refs/heads/; "" when detached
	Head      string // commit; "" before the first one
	Bare      bool
	Detached  bool
}

// mark parts the answers of one rev-parse. It echoes options that it does not know; no line would do, since
// paths may hold newlines.
const mark = "--pintle-mark-9f2c"

// Probe returns the repository of dir. It starts one git, two before a repository's first commit, and none
// where no parent directory looks like a repository.
func Probe(ctx context.Context, dir string) (Repository, error) {
	dir, err := physical(dir)
	if err != nil {
		return Repository{}, err
	}
	if !inside(dir) {
		return Repository{}, ErrNone
	}
	// What can fail stands last: before the first commit there is no HEAD, and what was printed until then holds.
	out, err := git(ctx, dir, "rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--show-cdup", mark,
		"--absolute-git-dir", mark, "--git-common-dir", mark, "HEAD", "--symbolic-full-name", "HEAD")
	if errors.Is(err, exec.ErrNotFound) {
		return Repository{}, ErrNone
	}
	repo, whole := parse(dir, string(out))
	switch {
	case whole && err == nil:
		return repo, nil
	case whole:
		repo.Branch, err = unborn(ctx, dir)
		return repo, err
	}
	return Repository{}, err
}

// parse reads rev-parse's answer. It is whole if everything that stands before HEAD is there.
func parse(dir, out string) (repo Repository, whole bool) {
	parts := strings.SplitN(out, mark+"\n", 4)
	if len(parts) != 4 {
		return Repository{}, false
	}
	repo.setTree(dir, strings.Split(parts[0], "\n"))
	repo.GitDir = absolute(dir, strings.TrimSuffix(parts[1], "\n"))
	repo.CommonDir = absolute(dir, strings.TrimSuffix(parts[2], "\n"))
	repo.setHead(parts[3])
	return repo, true
}

// setTree reads whether there is a working tree and the way up to its root. --show-toplevel would say the root
// itself, but fails where there is none, and --show-cdup then prints nothing or an empty line.
func (r *Repository) setTree(dir string, lines []string) {
	r.Bare = lines[0] == "true"
	if len(lines) > 2 && lines[1] == "true" {
		r.TopLevel = absolute(dir, lines[2])
	}
}

// setHead reads the commit and the reference of HEAD, which is HEAD itself when detached. Before the first
// commit the word HEAD stands there alone.
func (r *Repository) setHead(answer string) {
	head, ref, ok := strings.Cut(strings.TrimSuffix(answer, "\n"), "\n")
	if !ok {
		return
	}
	r.Head = head
	r.Detached = ref == "HEAD"
	if !r.Detached {
		r.Branch = strings.TrimPrefix(ref, "refs/heads/")
	}
}

// unborn returns the branch that the first commit will make. rev-parse does not resolve it.
func unborn(ctx context.Context, dir string) (string, error) {
	out, err := git(ctx, dir, "symbolic-ref", "HEAD")
	return strings.TrimPrefix(strings.TrimSuffix(string(out), "\n"), "refs/heads/"), err
}

// absolute makes a path absolute that git gave relative to dir, and resolves its links where that is possible.
func absolute(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
