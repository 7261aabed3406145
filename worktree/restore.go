package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Restore brings back into t.Dir what was kept of a worktree, and says what is not as it was: mostly that its branch
// has moved since, which leaves HEAD detached where it was. t's own Branch and Commit do not count, k says them.
//
// It may be repeated, as Add may: until the marker is written the worktree is one being made, and what a Restore that
// was killed left behind goes before all is done anew. With the marker it is whole, and another Restore touches
// nothing. What was kept stays kept; Discard is the caller's.
func (h *Hold) Restore(ctx context.Context, t Tree, k Kept) (notes []string, err error) {
	t.Branch, t.Own, t.Commit = "", false, k.Head
	if k.Head == "" {
		t.Commit = k.Commit // git makes no worktree without a commit; HEAD leaves it again
	}
	err = h.visit(t, func(root *os.Root, found []admin) error {
		notes, err = h.restore(ctx, t, k, root, found)
		return err
	})
	if err != nil {
		return notes, fmt.Errorf("restore the worktree %s: %w", t.Dir, err)
	}
	return notes, nil
}

func (h *Hold) restore(ctx context.Context, t Tree, k Kept, root *os.Root, found []admin) ([]string, error) {
	if done, err := h.resume(t, root, found); done || err != nil {
		return nil, err
	}
	if err := reserve(t, root); err != nil {
		return nil, err
	}
	if err := h.link(ctx, t); err != nil {
		return nil, err
	}
	r, err := h.begin(ctx, t, k)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.notes, r.run(ctx)
}

// restoration is one Restore under way, in a worktree that git has made and that is empty.
type restoration struct {
	*Hold
	t     Tree
	k     Kept
	admin admin
	tree  *os.Root // the working tree
	git   *os.Root // its git directory
	kept  []piece
	notes []string
}

// begin verifies what git made and opens it.
func (h *Hold) begin(ctx context.Context, t Tree, k Kept) (*restoration, error) {
	repo, err := Probe(ctx, t.Dir)
	if err != nil {
		return nil, err
	}
	r := &restoration{Hold: h, t: t, k: k, admin: readAdmin(repo.GitDir)}
	if repo.CommonDir != t.Repository || repo.TopLevel != t.Dir || !r.admin.half(t) || r.admin.tree != t.Dir {
		return nil, fmt.Errorf("git made another worktree than was asked for, in %s", repo.GitDir)
	}
	if r.tree, err = os.OpenRoot(t.Dir); err != nil {
		return nil, err
	}
	if r.git, err = os.OpenRoot(repo.GitDir); err != nil {
		r.tree.Close()
		return nil, err
	}
	return r, nil
}

func (r *restoration) close() { _, _ = r.tree.Close(), r.git.Close() }

// run does all steps. The marker is the last one.
func (r *restoration) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.clear, r.restoreState, r.restoreHead, r.checkOut, r.restorePieces, r.unpack, r.restoreModes,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := r.t.marker().write(r.admin.path); err != nil {
		return err
	}
	return unlockOwn(r.t, r.admin)
}

func (r *restoration) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// clear removes what git put into the new git directory by itself, like the sparse rules of the main worktree.
func (r *restoration) clear(context.Context) error {
	names, err := stateFiles(r.admin.path)
	for _, name := range names {
		if name != "HEAD" && !isReftable(name) {
			err = errors.Join(err, r.git.Remove(filepath.FromSlash(name)))
		}
	}
	return err
}

func isReftable(name string) bool { return matches([]string{"reftable/*"}, name) }

// restoreHead puts HEAD onto its branch if that is where it was, or is gone and can be made again. Else HEAD stays
// detached, at the commit that it was at.
func (r *restoration) restoreHead(ctx context.Context) error {
	if r.k.Branch == "" {
		return nil
	}
	b, err := r.lookUp(ctx, r.k.Branch)
	switch {
	case err != nil:
		return err
	case b.worktree != "":
		r.note("branch %s is checked out in %s now: HEAD is detached", r.k.Branch, b.worktree)
		return nil
	case b.commit == "" && r.k.Head != "":
		_, err = r.Hold.git(ctx, "update-ref", "--create-reflog", "-m", "pintle: restored", heads+r.k.Branch, r.k.Head, "")
	case b.commit != r.k.Head:
		r.note("branch %s has moved since, to %s: HEAD is detached", r.k.Branch, b.commit)
		return nil
	}
	if err == nil {
		_, err = r.Hold.run(ctx, r.t.Dir, nil, []string{"symbolic-ref", "HEAD", heads + r.k.Branch})
	}
	return err
}

// checkOut has git write what is in the index, through the filters and rules that the worktree has: all but what was
// kept as it was on the disk. Of that, git must not note the size that a filter would give it: it compares by size.
func (r *restoration) checkOut(ctx context.Context) error {
	if _, err := r.git.Lstat("index"); errors.Is(err, fs.ErrNotExist) {
		if _, err := r.Hold.run(ctx, r.t.Dir, nil, []string{"read-tree", "HEAD"}); err != nil {
			return err
		}
	}
	names, err := r.toCheckOut(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = gitInput(ctx, r.t.Dir, strings.NewReader(strings.Join(names, "\x00")+"\x00"),
		"checkout-index", "-f", "-u", "-q", "-z", "--stdin")
	return err
}

func (r *restoration) toCheckOut(ctx context.Context) (names []string, err error) {
	if r.k.Ref != "" {
		if r.kept, err = r.pieces(ctx); err != nil {
			return nil, err
		}
	}
	own := map[string]bool{}
	for _, p := range r.kept {
		if p.Kind != pieceMode && p.Kind != pieceDir {
			own[p.path()] = true
		}
	}
	out, err := git(ctx, r.t.Dir, "ls-files", "-s", "-v", "-z")
	for _, line := range split(string(out)) {
		e, parseErr := parseEntry(line)
		if parseErr != nil {
			return nil, parseErr
		}
		if !own[e.path] && e.stage == "0" && !strings.EqualFold(e.tag, "S") {
			names = append(names, e.path)
		}
	}
	return names, err
}
