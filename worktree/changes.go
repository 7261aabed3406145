package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Changes counts what is different in a working tree. Binary files count as files and have no lines.
type Changes struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`
}

// Changed counts what changed in the whole working tree of dir since the commit base: committed, staged, not
// staged and untracked, without what is ignored. A rename is one file. An empty base, which is the Head of a
// repository before its first commit, stands for the empty tree.
func Changed(ctx context.Context, dir, base string) (Changes, error) {
	base, err := treeish(ctx, dir, base)
	if err != nil {
		return Changes{}, err
	}
	tracked, err := git(ctx, dir, "diff", "--numstat", "-z", "--find-renames", "--no-ext-diff", "--no-textconv",
		"--no-relative", "--no-color", "--ignore-submodules=none", base, "--")
	if err != nil {
		return Changes{}, err
	}
	untracked, err := git(ctx, dir, "ls-files", "--others", "--exclude-standard", "-z", "--", ":/")
	if err != nil {
		return Changes{}, err
	}
	changes, err := numstat(string(tracked))
	return changes.plus(count(ctx, dir, split(string(untracked)))), err
}

// treeish returns what to compare with. The name of the empty tree depends on the repository's hash.
func treeish(ctx context.Context, dir, base string) (string, error) {
	if strings.HasPrefix(base, "-") {
		return "", fmt.Errorf("count changes in %s: %q is no commit", dir, base)
	}
	if base != "" {
		return base, nil
	}
	out, err := git(ctx, dir, "hash-object", "-t", "tree", "/dev/null")
	return strings.TrimSpace(string(out)), err
}

func (c Changes) plus(d Changes) Changes {
	return Changes{c.Files + d.Files, c.Insertions + d.Insertions, c.Deletions + d.Deletions}
}

// numstat reads `git diff --numstat -z`: "added TAB deleted TAB path NUL", where a rename has an empty path and
// then both names, each with a NUL.
func numstat(out string) (Changes, error) {
	var sum Changes
	fields := split(out)
	for i := 0; i < len(fields); i++ {
		added, rest, _ := strings.Cut(fields[i], "\t")
		deleted, path, ok := strings.Cut(rest, "\t")
		if !ok {
			return Changes{}, fmt.Errorf("read git diff --numstat: unexpected %q", fields[i])
		}
		if path == "" {
			i += 2
		}
		sum = sum.plus(Changes{1, lines(added), lines(deleted)})
	}
	return sum, nil
}

// lines reads a count, which is "-" for a binary file.
func lines(field string) int {
	n, _ := strconv.Atoi(field)
	return n
}

func split(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// count counts untracked files, which git names relative to dir. All count; lines are read as long as the
// budget lasts.
func count(ctx context.Context, dir string, paths []string) Changes {
	sum, left := Changes{Files: len(paths)}, budget{files: maxFiles, bytes: maxBytes}
	for _, path := range paths {
		if ctx.Err() != nil || left.spent() {
			break
		}
		sum.Insertions += left.lines(filepath.Join(dir, path))
	}
	return sum
}
