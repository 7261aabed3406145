package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// survey is what git says of a worktree before anything of it is read. Names are bytes, relative to the root, as git
// has them.
type survey struct {
	repo       Repository
	entries    []entry  // of the index, those that need a look of their own
	staged     []change // the index against HEAD; all of it before the first commit
	changed    []change // the working tree against the index, files that only look changed included
	untracked  []string // directories that are untracked as a whole are one name, with a slash; empty ones are too
	ignored    []string // likewise
	state      []string // files of the git directory that an operation or a person left there
	hidden     []change // files that git would check out otherwise than they are, although it sees no change
	attributed bool     // there are attributes in the index
	configured bool     // the configuration may convert files
	old, tmp   string   // what the references to make name already
}

// entry is one of the index. The tag is git's: H is a plain one, S is not checked out (skip-worktree), a small letter
// is assumed unchanged.
type entry struct {
	tag, mode, oid, stage, path string
}

const (
	regular = "100644"
	program = "100755"
	symlink = "120000"
	gitlink = "160000" // a submodule
)

// plain reports whether the other questions tell all about an entry.
func (e entry) plain() bool { return e.tag == "H" && e.stage == "0" && e.mode != gitlink }

// change is a line of git's raw format: what a path has become.
type change struct {
	status          byte // A, D, M, T, U
	mode, oid, path string
}

// look asks git everything at once. For a worktree with nothing to keep it is all that is done.
func look(ctx context.Context, dir, ref string) (*survey, error) {
	repo, err := Probe(ctx, dir)
	if err == nil && repo.TopLevel == "" {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("look at the worktree %s: %w", dir, err)
	}
	s := &survey{repo: repo}
	err = together(
		func() error { return s.askChanged(ctx) },
		func() error { return s.askStaged(ctx) },
		func() error { return s.askIndex(ctx) },
		func() error { return s.askUntracked(ctx) },
		func() error { return s.askIgnored(ctx) },
		func() error { return s.askRefs(ctx, ref) },
		func() error { return s.askConfig(ctx) },
		func() (err error) { s.state, err = stateFiles(repo.GitDir); return err },
	)
	if err != nil {
		return nil, fmt.Errorf("look at the worktree %s: %w", dir, err)
	}
	return s, nil
}

// together runs functions side by side. Most of what a git costs is its start.
func together(asks ...func() error) error {
	failed := make([]error, len(asks))
	var all sync.WaitGroup
	for i, ask := range asks {
		all.Go(func() { failed[i] = ask() })
	}
	all.Wait()
	return errors.Join(failed...)
}

// raw are the arguments of what compares: names as they are, nothing guessed, no program run.
var raw = []string{"--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-relative"}

// askChanged does not refresh the index first: a file that was touched, and whose change a filter hides (CRLF), is
// kept as it is rather than as git would write it.
func (s *survey) askChanged(ctx context.Context) (err error) {
	s.changed, err = s.changes(ctx, append([]string{"diff-files", "--ignore-submodules=dirty"}, raw...)...)
	return err
}

func (s *survey) askStaged(ctx context.Context) (err error) {
	if s.repo.Head == "" {
		return nil
	}
	args := append([]string{"diff-index", "--cached", "--ignore-submodules=none"}, raw...)
	s.staged, err = s.changes(ctx, append(args, "HEAD", "--")...)
	return err
}

func (s *survey) changes(ctx context.Context, args ...string) ([]change, error) {
	out, err := git(ctx, s.repo.TopLevel, args...)
	if err != nil {
		return nil, err
	}
	return parseRaw(split(string(out)))
}

// parseRaw reads ":mode mode oid oid status NUL path NUL".
func parseRaw(fields []string) (all []change, err error) {
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(fields[i])
		if len(f) != 5 || !strings.HasPrefix(f[0], ":") {
			return nil, fmt.Errorf("read what git compares: unexpected %q", fields[i])
		}
		all = append(all, change{status: f[4][0], mode: f[1], oid: f[3], path: fields[i+1]})
	}
	return all, nil
}

func (s *survey) askIndex(ctx context.Context) error {
	out, err := git(ctx, s.repo.TopLevel, "ls-files", "-s", "-v", "-z")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if line == "" {
			continue
		}
		e, err := parseEntry(line)
		if err != nil {
			return err
		}
		s.add(e)
	}
	return nil
}

// parseEntry reads "tag mode oid stage TAB path".
func parseEntry(line string) (entry, error) {
	meta, path, ok := strings.Cut(line, "\t")
	f := strings.Fields(meta)
	if !ok || len(f) != 4 {
		return entry{}, fmt.Errorf("read the index: unexpected %q", line)
	}
	return entry{f[0], f[1], f[2], f[3], strings.Clone(path)}, nil
}

func (s *survey) add(e entry) {
	s.attributed = s.attributed || path.Base(e.path) == attributes
	if !e.plain() {
		s.entries = append(s.entries, e)
	}
	if s.repo.Head == "" && e.stage == "0" {
		s.staged = append(s.staged, change{'A', e.mode, e.oid, e.path})
	}
}

func (s *survey) askUntracked(ctx context.Context) (err error) {
	s.untracked, err = s.names(ctx, "ls-files", "-o", "--exclude-standard", "--directory", "-z")
	return err
}

func (s *survey) askIgnored(ctx context.Context) (err error) {
	s.ignored, err = s.names(ctx, "ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
	return err
}

func (s *survey) names(ctx context.Context, args ...string) ([]string, error) {
	out, err := git(ctx, s.repo.TopLevel, args...)
	return split(string(out)), err
}

// askRefs looks for what an earlier call left that was killed before its result was recorded.
func (s *survey) askRefs(ctx context.Context, ref string) error {
	if ref == "" || !s.mayHave(ref) && !s.mayHave(temporary(ref)) {
		return nil
	}
	out, err := git(ctx, s.repo.TopLevel, "for-each-ref", "--format=%(refname) %(objectname)", ref, temporary(ref))
	for line := range strings.Lines(string(out)) {
		switch name, oid, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case ref:
			s.old = oid
		case temporary(ref):
			s.tmp = oid
		}
	}
	return err
}

// mayHave saves asking git for a reference in the usual case that there is none. git has the last word on what it finds.
func (s *survey) mayHave(ref string) bool {
	for _, name := range []string{ref, "reftable"} {
		if _, err := os.Lstat(filepath.Join(s.repo.CommonDir, name)); err == nil {
			return true
		}
	}
	packed, err := os.ReadFile(filepath.Join(s.repo.CommonDir, "packed-refs"))
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || bytes.Contains(packed, []byte(" "+ref+"\n")))
}

// nested returns the repositories inside that git does not store: checked-out submodules, and untracked ones with a slash.
func (s *survey) nested(untracked []string) (all []string) {
	for _, e := range s.entries {
		if e.mode == gitlink && s.there(filepath.Join(e.path, ".git")) {
			all = append(all, e.path)
		}
	}
	for _, name := range untracked {
		if strings.HasSuffix(name, "/") {
			all = append(all, name)
		}
	}
	return all
}

func (s *survey) there(name string) bool {
	_, err := os.Lstat(filepath.Join(s.repo.TopLevel, name))
	return err == nil
}
