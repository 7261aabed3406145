package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// SnapshotOptions says what else is kept and where.
type SnapshotOptions struct {
	Keep     []string                     // patterns of ignored files that are kept, as in .gitignore
	Tar      string                       // absolute: where they are kept
	Progress func(files int, bytes int64) // told after each file; nil for nobody
}

// Snapshot keeps under ref, and in a tar beside, everything in the worktree at dir that git would not find again
// (X21), and changes nothing in it: no file, index, branch or stash. With nothing to keep it makes neither.
//
// The commits come first, then the reference, then the tar. Killed at any instant it leaves a temporary reference or the
// final one, and what it leaves is overwritten, or taken over, by the next call. A final reference that was not recorded is never lost: if it
// has the same in it, it stands, else its commit becomes a parent of the new one. The caller forbids another snapshot
// once the result is recorded, and sees to it that no git of an earlier one is at work any more: see Own.
func Snapshot(ctx context.Context, dir, ref string, o SnapshotOptions) (Kept, error) {
	s, err := look(ctx, dir, ref)
	if err == nil {
		err = s.clearLocks(ref)
	}
	if err != nil {
		return Kept{}, err
	}
	s.hidden, err = s.converted(ctx)
	var k Kept
	if err == nil {
		k, err = s.snapshot(ctx, ref, o)
	}
	if err != nil {
		return Kept{}, fmt.Errorf("keep what is in %s: %w", dir, err)
	}
	return k, nil
}

func (s *survey) snapshot(ctx context.Context, ref string, o SnapshotOptions) (Kept, error) {
	reader, err := openReader(s.repo.TopLevel, o.Progress)
	if err != nil {
		return Kept{}, err
	}
	defer reader.close()
	k := s.report()
	p := &picture{survey: s, reader: reader, links: map[string]bool{}}
	if p.every, err = s.allUntracked(ctx); err != nil {
		return k, err
	}
	p.whole = s.nested(p.every)
	if s.worth() {
		if err := p.keep(ctx, ref, &k); err != nil {
			return k, err
		}
	} else if s.tmp != "" {
		err = s.refs(ctx, fmt.Sprintf("delete %s %s\n", temporary(ref), s.tmp))
	}
	return k, errors.Join(err, p.keepTar(ctx, o, &k))
}

// report is what is known of the result without reading a file.
func (s *survey) report() Kept {
	return Kept{
		Head: s.repo.Head, Branch: s.repo.Branch, State: operations(s.repo.GitDir, s.state),
	}
}

// worth reports whether there is a reason for a commit. A detached HEAD is one: nothing else may hold its commits
// tomorrow.
func (s *survey) worth() bool {
	return s.repo.Head == "" || s.repo.Detached || s.old != "" ||
		len(s.staged)+len(s.changed)+len(s.untracked)+len(s.hidden) > 0 ||
		slices.ContainsFunc(s.state, weighty) ||
		slices.ContainsFunc(s.entries, func(e entry) bool { return e.tag != "H" || e.stage != "0" })
}

// allUntracked lists untracked files one by one, nested repositories with a slash. The list by directory lacks what is
// in a directory where the index has a file; but then that file counts as deleted.
func (s *survey) allUntracked(ctx context.Context) ([]string, error) {
	if !s.worth() {
		return nil, nil
	}
	return s.names(ctx, "ls-files", "-o", "--exclude-standard", "-z")
}

// clearLocks removes the locks of the references to make that a git left which was killed: they are nobody else's, and
// git would wait for them for ever.
func (s *survey) clearLocks(ref string) (err error) {
	for _, name := range []string{ref, temporary(ref)} {
		err = errors.Join(err, absent(os.Remove(filepath.Join(s.repo.CommonDir, filepath.FromSlash(name)+".lock"))))
	}
	return err
}

// temporary is where fast-import puts what it made, until one transaction makes it the final reference.
func temporary(ref string) string { return "refs/pintle/tmp/" + path.Base(ref) }

// keep makes the commits and the reference. The commit's tree is the working tree; its first parent is HEAD, unless
// that is unborn; the next one holds the index and the state of the git directory, and has what they name for parents.
func (p *picture) keep(ctx context.Context, ref string, k *Kept) error {
	more, err := p.ask(ctx)
	if err != nil {
		return err
	}
	if p.to, err = startImport(ctx, p.repo.TopLevel); err != nil {
		return err
	}
	defer p.to.giveUp()
	if err := p.gather(ctx, p.every); err != nil {
		return err
	}
	state, err := p.commitState(temporary(ref), more)
	if err != nil {
		return err
	}
	made, err := p.to.done(p.commitTree(temporary(ref), state))
	if err != nil {
		return err
	}
	k.Changed, k.Skipped = p.count(), atMost(p.skipped)
	k.Ref = ref
	k.Commit, err = p.publish(ctx, ref, made)
	return errors.Join(err, syncDir(filepath.Join(p.repo.CommonDir, "objects", "pack")))
}

func (p *picture) count() (n int) {
	for _, piece := range p.pieces {
		if piece.Kind != pieceDir && piece.Kind != pieceMode {
			n++
		}
	}
	return n
}

// commitTree commits the working tree: HEAD's, with all that differs. Deletions come first, since what is now a file
// may have been a directory.
func (p *picture) commitTree(ref string, state int) int {
	mark := p.to.commit(ref, "pintle: the working tree at "+p.repo.TopLevel)
	if p.repo.Head == "" {
		p.to.printf("from :%d\ndeleteall\n", state)
	} else {
		p.to.printf("from %s\nmerge :%d\n", p.repo.Head, state)
	}
	for _, piece := range p.pieces {
		if piece.Kind == pieceGone {
			p.to.drop(piece.path())
		}
	}
	for _, piece := range p.pieces {
		switch {
		case piece.oid != "":
			p.to.set(piece.mode, piece.oid, piece.path())
		case piece.mark != 0:
			p.to.put(piece.gitMode(), piece.mark, piece.path())
		}
	}
	return mark
}

// publish makes the final reference name what was made, in one transaction that also deletes the temporary one.
func (s *survey) publish(ctx context.Context, ref, made string) (string, error) {
	drop := fmt.Sprintf("delete %s %s\n", temporary(ref), made)
	if s.old == "" {
		return made, s.refs(ctx, fmt.Sprintf("create %s %s\n", ref, made)+drop)
	}
	same, err := s.same(ctx, s.old, made)
	if err != nil {
		return "", err
	}
	if same {
		return s.old, s.refs(ctx, drop)
	}
	joined, err := s.join(ctx, made, s.old)
	if err != nil {
		return "", err
	}
	return joined, s.refs(ctx, fmt.Sprintf("update %s %s %s\n", ref, joined, s.old)+drop)
}

// same reports whether two snapshots have the same in them.
func (s *survey) same(ctx context.Context, one, other string) (bool, error) {
	var found [2]string
	for i, commit := range []string{one, other} {
		args := []string{"rev-parse", commit + "^{tree}", commit + "^1", commit + "^2^{tree}"}
		if s.repo.Head == "" {
			args = []string{"rev-parse", commit + "^{tree}", commit + "^1^{tree}"}
		}
		out, err := git(ctx, s.repo.TopLevel, args...)
		if err != nil && (i == 1 || ctx.Err() != nil) {
			return false, err
		}
		found[i] = string(out)
	}
	return found[0] == found[1], nil
}

// join makes a commit with the tree and parents of made, and old for one more parent.
func (s *survey) join(ctx context.Context, made, old string) (string, error) {
	out, err := git(ctx, s.repo.TopLevel, "rev-parse", made+"^@")
	if err != nil {
		return "", err
	}
	name, email, _ := strings.Cut(strings.TrimSuffix(identity, ">"), " <")
	args := []string{"-c", "core.fsync=all", "-c", "user.name=" + name, "-c", "user.email=" + email, "commit-tree", "-m", "pintle: kept again"}
	for _, parent := range append(strings.Fields(string(out)), old) {
		args = append(args, "-p", parent)
	}
	out, err = git(ctx, s.repo.TopLevel, append(args, made+"^{tree}")...)
	return strings.TrimSpace(string(out)), err
}

// refs runs one transaction: all of it happens, or nothing.
func (s *survey) refs(ctx context.Context, commands string) error {
	return updateRefs(ctx, s.repo.TopLevel, commands)
}

func atMost(names []string) []string { return names[:min(len(names), MaxListed)] }
