package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dotGit returns the git directory that a directory in root points to, which is "" while git has not written that
// yet. The error is fs.ErrNotExist where there is no .git; a .git that is no file is a repository of its own.
func dotGit(root *os.Root, name string) (string, error) {
	path := filepath.Join(name, ".git")
	info, err := root.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", ErrNotOurs
	}
	text, err := root.ReadFile(path)
	target, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), "gitdir: ")
	if err != nil || !ok {
		return "", err
	}
	return under(filepath.Join(root.Name(), name), target), nil
}

// linked reports whether a directory in root points to an administrative directory. They are compared as what they
// are, not by their names.
func linked(root *os.Root, name string, a admin) bool {
	target, err := dotGit(root, name)
	if err != nil {
		return false
	}
	there, err := os.Stat(target)
	if err != nil {
		return false
	}
	here, err := os.Stat(a.path)
	return err == nil && os.SameFile(there, here)
}

// severed reports whether a directory in root is none that anybody works with: it is empty, or it points to a git
// directory that is not there or not yet named.
func severed(root *os.Root, name string) (bool, error) {
	target, err := dotGit(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty(root, name)
	case errors.Is(err, ErrNotOurs):
		return false, nil
	case err != nil || target == "":
		return err == nil, err
	}
	_, err = os.Stat(target)
	return errors.Is(err, fs.ErrNotExist), nil
}
