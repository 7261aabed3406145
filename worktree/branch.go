package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// heads is where branches are.
const heads = "refs/heads/"

// Free returns want, or want-2, want-3 and so on: the first that can be made a branch. It is free as long as the
// lock is held, as far as pintle is concerned; a user's own git asks nobody, and then Add says ErrTaken.
func (h *Hold) Free(ctx context.Context, want string) (string, error) {
	if err := h.valid(ctx, want); err != nil {
		return "", err
	}
	// A pattern stands for the reference of that name and all below it; * does not reach over a slash.
	patterns := []string{heads + want, heads + want + "-*", heads + want + "-*/**"}
	there, err := h.branches(ctx, append(patterns, above(want)...)...)
	if err != nil {
		return "", err
	}
	for _, parent := range above(want) {
		if there[parent] {
			return "", fmt.Errorf("branch %s: %w: %s is a branch", want, ErrTaken, strings.TrimPrefix(parent, heads))
		}
	}
	name := want
	for n := 2; occupied(there, heads+name); n++ {
		name = fmt.Sprintf("%s-%d", want, n)
	}
	return name, nil
}

// valid refuses what git takes for no branch's name.
func (h *Hold) valid(ctx context.Context, name string) error {
	return ValidBranch(ctx, h.repository, name)
}

// ValidBranch refuses what git takes for no branch's name, or for another one's: @ is HEAD, @{-1} the branch before this
// one, and refs/heads/x would become refs/heads/refs/heads/x.
func ValidBranch(ctx context.Context, repository, name string) error {
	bad := name == "@" || strings.HasPrefix(name, "refs/") || strings.ContainsAny(name, "\x00\n")
	if !bad {
		out, err := git(ctx, repository, "--git-dir=.", "check-ref-format", "--branch", name)
		if err != nil && !refused(err, 128) {
			return err
		}
		bad = err != nil || strings.TrimSuffix(string(out), "\n") != name
	}
	if bad {
		return fmt.Errorf("%q is no name for a branch", name)
	}
	return nil
}

// above returns the references that a branch would lie below, of which none can be a branch itself.
func above(branch string) (refs []string) {
	for i, r := range branch {
		if r == '/' {
			refs = append(refs, heads+branch[:i])
		}
	}
	return refs
}

// branches returns the references that match patterns.
func (h *Hold) branches(ctx context.Context, patterns ...string) (map[string]bool, error) {
	out, err := h.git(ctx, append([]string{"for-each-ref", "--format=%(refname)"}, patterns...)...)
	there := map[string]bool{}
	for _, ref := range strings.Fields(string(out)) {
		there[ref] = true
	}
	return there, err
}

// occupied reports whether a reference is there, or one below it: both cannot be.
func occupied(there map[string]bool, ref string) bool {
	for name := range there {
		if name == ref || strings.HasPrefix(name, ref+"/") {
			return true
		}
	}
	return false
}

// branch is where a branch points, and which worktree has it checked out.
type branch struct {
	commit, worktree string
}

// lookUp returns what a branch is; a branch that is not there has no commit. git says of a bare repository that its
// HEAD were checked out, in the repository itself.
func (h *Hold) lookUp(ctx context.Context, name string) (branch, error) {
	out, err := h.git(ctx, "for-each-ref", branchFormat, heads+name)
	return branchOf(string(out), name, h.repository), err
}

const branchFormat = "--format=%(refname)%00%(objectname)%00%(worktreepath)%00"

// branchOf reads the answer. A pattern also stands for what is below it.
func branchOf(out, name, repository string) branch {
	fields := strings.Split(out, "\x00")
	for ; len(fields) > 3; fields = fields[3:] {
		if strings.TrimPrefix(fields[0], "\n") != heads+name {
			continue
		}
		b := branch{fields[1], fields[2]}
		if b.worktree == repository {
			b.worktree = ""
		}
		return b
	}
	return branch{}
}

// CheckedOut returns the working tree that has a branch checked out, "" if none has.
func CheckedOut(ctx context.Context, repository, name string) (dir string, err error) {
	out, err := git(ctx, repository, "--git-dir=.", "for-each-ref", branchFormat, heads+name)
	return branchOf(string(out), name, repository).worktree, err
}

// message is what the reflog of a branch says that was made for a worktree. It is how the branch is known again.
func (t Tree) message() string { return "pintle: " + t.ID }

// makeBranch makes the branch of a worktree, which must not be there. One that is there and that this made before it
// was killed is as good.
func (h *Hold) makeBranch(ctx context.Context, t Tree) error {
	err := h.updateBranch(ctx, t.Branch, "--create-reflog", "-m", t.message(), heads+t.Branch, t.Commit, "")
	if err == nil || ctx.Err() != nil {
		return err
	}
	if ours, logErr := h.madeFor(ctx, t); ours || logErr != nil {
		return logErr
	}
	names := append(above(t.Branch), heads+t.Branch)
	there, listErr := h.branches(ctx, names...) // and what is below them
	if listErr == nil && slices.ContainsFunc(names, func(name string) bool { return there[name] }) || occupied(there, heads+t.Branch) {
		return fmt.Errorf("branch %s: %w: %w", t.Branch, ErrTaken, err)
	}
	return err
}

// madeFor reports whether a branch is there and was made for the worktree: the oldest entry of its reflog says so.
// Where that has expired, in months, the branch counts as the user's.
func (h *Hold) madeFor(ctx context.Context, t Tree) (bool, error) {
	b, err := h.lookUp(ctx, t.Branch)
	if err != nil || b.commit == "" {
		return false, err
	}
	out, err := h.git(ctx, "log", "--walk-reflogs", "--format=%gs", heads+t.Branch, "--")
	entries := strings.Split(strings.TrimSpace(string(out)), "\n")
	return err == nil && entries[len(entries)-1] == t.message(), err
}

// dropBranch deletes the branch if it was made for the worktree and nothing happened to it since: it is where it
// was made, and no worktree has it checked out.
func (h *Hold) dropBranch(ctx context.Context, t Tree) error {
	if !t.Own || t.Branch == "" {
		return nil
	}
	b, err := h.lookUp(ctx, t.Branch)
	if err != nil || b.commit != t.Commit || b.worktree != "" {
		return err
	}
	if ours, err := h.madeFor(ctx, t); err != nil || !ours {
		return err
	}
	return h.updateBranch(ctx, t.Branch, "-d", heads+t.Branch, t.Commit)
}

// stale is the age at which a lock of a branch that is our own is nobody's: git holds it for milliseconds.
const stale = 3 * time.Second

// updateBranch runs update-ref on a branch that is pintle's own. A git that was killed in it left the branch locked, with
// no end to it: no git of pintle's is at work under the repository's lock, so that such a lock is taken away.
func (h *Hold) updateBranch(ctx context.Context, branch string, args ...string) error {
	lock := filepath.Join(h.repository, filepath.FromSlash(heads+branch)+".lock")
	for {
		_, err := h.git(ctx, append([]string{"update-ref"}, args...)...)
		info, statErr := os.Lstat(lock)
		if err == nil || ctx.Err() != nil || statErr != nil {
			return err
		}
		if time.Since(info.ModTime()) > stale {
			err = absent(os.Remove(lock))
		} else {
			err = pause(ctx)
		}
		if err != nil {
			return err
		}
	}
}
