package worktree

import (
	"fmt"
	"os"
	"path/filepath"
)

// physical returns dir as git sees it: absolute, without symbolic links, so that going up is the same for both.
func physical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("find the repository of %s: %w", dir, err)
	}
	return abs, nil
}

// inside reports whether dir or a directory above it looks like a repository. It only saves starting git for
// the many directories that are in none: git has the last word on what it finds.
func inside(dir string) bool {
	for {
		if marked(dir) || isGitDir(dir) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// marked reports whether dir holds a .git: a directory, or the file by which linked worktrees and submodules
// point to theirs. git goes past a directory that is no repository, but stops at a file.
func marked(dir string) bool {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return false
	}
	return info.Mode().IsRegular() || isGitDir(dotGit)
}

// isGitDir is git's own test: a HEAD, objects and refs. A dangling HEAD link is valid.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
