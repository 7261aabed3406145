package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A file may have other bytes than git would check out although git is sure that it is unchanged: line endings are
// converted when it is added, and are gone from git's sight then. Such a file is kept like a changed one.
//
// It is looked for where something converts, and told by its size, which the index has, being another than the
// blob's. Files behind a filter program (git-lfs) are left to that: it gives back what it took.

// converted returns the files that git would check out otherwise than they are.
func (s *survey) converted(ctx context.Context) ([]change, error) {
	if !s.converts() {
		return nil, nil
	}
	suspects, err := s.suspects(ctx)
	if err != nil || len(suspects) == 0 {
		return nil, err
	}
	suspects, err = s.unfiltered(ctx, suspects)
	if err != nil || len(suspects) == 0 || s.attributesChanged() {
		return suspects, err
	}
	return s.compare(ctx, suspects)
}

// attributesChanged reports whether the rules are others on the disk than in the index: then what git would check out
// now is not what it will check out when the worktree is restored.
func (s *survey) attributesChanged() bool {
	return slices.ContainsFunc(s.changed, func(c change) bool { return path.Base(c.path) == attributes }) ||
		slices.ContainsFunc(s.untracked, func(name string) bool { return strings.HasSuffix(name, "/") || path.Base(name) == attributes })
}

const attributes = ".gitattributes"

// converts reports whether anything could convert files: attributes in the repository, or the configuration.
func (s *survey) converts() bool {
	_, err := os.Lstat(filepath.Join(s.repo.CommonDir, "info", "attributes"))
	return s.attributed || s.configured || err == nil
}

func (s *survey) askConfig(ctx context.Context) error {
	out, err := git(ctx, s.repo.TopLevel, "config", "-z", "--get-regexp", `^core\.(autocrlf|eol|attributesfile)$`)
	s.configured = len(out) > 0
	if len(out) == 0 && ctx.Err() == nil {
		return nil // it fails when there is none
	}
	return err
}

// suspects are the entries of which the size on the disk, when git last looked, is not that of the blob.
func (s *survey) suspects(ctx context.Context) ([]change, error) {
	out, err := git(ctx, s.repo.TopLevel, "ls-files", "-s", "-v", "-z", "--debug")
	if err != nil {
		return nil, err
	}
	var all []change
	var sizes []string
	var oids strings.Builder
	for rest := string(out); rest != ""; {
		var e entry
		var size string
		if e, size, rest, err = parseDebug(rest); err != nil {
			return nil, err
		}
		if e.plain() && (e.mode == regular || e.mode == program) && size != "0" {
			all, sizes = append(all, change{'M', e.mode, e.oid, e.path}), append(sizes, size)
			oids.WriteString(e.oid + "\n")
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	out, err = gitInput(ctx, s.repo.TopLevel, strings.NewReader(oids.String()), "cat-file", "--batch-check=%(objectsize)")
	blobs := strings.Fields(string(out))
	if err != nil || len(blobs) != len(all) {
		return nil, err // a blob is missing, as in a partial clone: there is nothing to compare with
	}
	suspects := all[:0]
	for i, c := range all {
		if blobs[i] != sizes[i] {
			suspects = append(suspects, c)
		}
	}
	return suspects, nil
}

// parseDebug reads an entry and, from the lines that --debug puts behind it, its size: "size: 5 TAB flags: 0 LF" is the last.
func parseDebug(text string) (e entry, size, rest string, err error) {
	line, rest, _ := strings.Cut(text, "\x00")
	e, err = parseEntry(line)
	_, after, _ := strings.Cut(rest, "\n  size: ")
	size, after, ok := strings.Cut(after, "\t")
	_, rest, found := strings.Cut(after, "\n")
	if _, sizeErr := strconv.Atoi(size); err == nil && (!ok || !found || sizeErr != nil) {
		err = errors.New("read the index: unexpected form")
	}
	return e, size, rest, err
}

// unfiltered leaves out what a filter program is set for.
func (s *survey) unfiltered(ctx context.Context, suspects []change) ([]change, error) {
	in := strings.Join(pathsOf(suspects), "\x00") + "\x00"
	out, err := gitInput(ctx, s.repo.TopLevel, strings.NewReader(in), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	filtered := map[string]bool{}
	for fields := split(string(out)); len(fields) >= 3; fields = fields[3:] {
		filtered[fields[0]] = fields[2] != "unspecified" && fields[2] != "unset"
	}
	return slices.DeleteFunc(suspects, func(c change) bool { return filtered[c.path] }), nil
}

// scratch is a directory in the worktree's git directory. It is emptied before and after use, and goes with the worktree.
const scratch = "pintle-compared"

// compare has git check the suspects out beside, and returns those that are otherwise on the disk.
func (s *survey) compare(ctx context.Context, suspects []change) (all []change, err error) {
	dir := filepath.Join(s.repo.GitDir, scratch)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in := strings.Join(pathsOf(suspects), "\x00") + "\x00"
	if _, err := gitInput(ctx, s.repo.TopLevel, strings.NewReader(in), "checkout-index", "--prefix="+dir+"/", "-q", "-z", "--stdin"); err != nil {
		return nil, err
	}
	for _, c := range suspects {
		equal, err := equalFiles(filepath.Join(s.repo.TopLevel, c.path), filepath.Join(dir, c.path))
		if err != nil {
			return nil, err
		}
		if !equal {
			all = append(all, c)
		}
	}
	return all, nil
}

// equalFiles compares two files. One that is gone is equal to none, and whoever reads it next finds that out.
func equalFiles(one, other string) (bool, error) {
	a, err := os.Open(one)
	if err != nil {
		return false, absent(err)
	}
	defer a.Close()
	b, err := os.Open(other)
	if err != nil {
		return false, absent(err)
	}
	defer b.Close()
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return true, readErrors(errA, errB)
		}
	}
}

func readErrors(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	return nil
}
