package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// MaxFile bounds what File reads.
const MaxFile = 1 << 20

// File returns the file at a path of a commit, as git stores it: no filter and no attribute of the repository has a say.
// repository is the common git directory; commit is a full name. Errors: fs.ErrNotExist when the commit has nothing at
// the path; others when there is a directory, a symbolic link or more than MaxFile.
func File(ctx context.Context, repository, commit, path string) ([]byte, error) {
	// The directory is named, not looked for: safe.bareRepository forbids to find it from within.
	at := []string{"--git-dir=."}
	out, err := git(ctx, repository, append(at, "ls-tree", "-l", "-z", "--full-tree", "--end-of-options", commit, path)...)
	if err != nil {
		return nil, fmt.Errorf("read %s at %.12s: %w", path, commit, err)
	}
	blob, err := blobOf(string(out), path)
	if err != nil {
		return nil, fmt.Errorf("%s at %.12s: %w", path, commit, err)
	}
	return git(ctx, repository, append(at, "cat-file", "blob", blob)...)
}

// blobOf reads ls-tree's line of a path: mode, type, object and size, then the path behind a tab.
func blobOf(out, path string) (blob string, err error) {
	entry, name, _ := strings.Cut(strings.TrimSuffix(out, "\x00"), "\t")
	fields := strings.Fields(entry)
	switch {
	case len(fields) != 4 || name != path:
		return "", fs.ErrNotExist
	case fields[1] != "blob":
		return "", fmt.Errorf("is no file but a %s", map[string]string{"tree": "directory", "commit": "submodule"}[fields[1]])
	case fields[0] == "120000":
		return "", errors.New("is no file but a symbolic link")
	}
	if size, err := strconv.ParseInt(fields[3], 10, 64); err != nil || size > MaxFile {
		return "", fmt.Errorf("is larger than %d bytes", MaxFile)
	}
	return fields[2], nil
}
