package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Root makes the managed directory of a repository's worktrees and returns its name without symbolic links, which is
// what Tree.Root must be: where a component is a link, nothing is made and nothing deleted (X23).
func Root(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// check refuses a plan that does not say where it is and whose it is. Names of the record become parts of file names.
func (t Tree) check() error {
	base := filepath.Base(t.Dir)
	switch {
	case !filepath.IsAbs(t.Root) || filepath.Clean(t.Root) != t.Root || t.Root == "/":
		return fmt.Errorf("%w: %q is no managed directory", ErrNotOurs, t.Root)
	case t.Dir != filepath.Join(t.Root, base) || strings.HasPrefix(base, "."):
		return fmt.Errorf("%w: %s is not in %s", ErrNotOurs, t.Dir, t.Root)
	case !component(t.ID) || !component(t.Home):
		return fmt.Errorf("%w: %q of %q is no record", ErrNotOurs, t.ID, t.Home)
	}
	return nil
}

func component(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\x00\n")
}

// open opens the managed directory. What is done in it goes through the open directory, so that a name that is
// changed meanwhile leads nowhere else. fs.ErrNotExist means that there is none.
func (t Tree) open() (*os.Root, error) {
	if err := straight(t.Root); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(t.Root)
	if err != nil {
		return nil, err
	}
	if err := same(root, t.Root); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// straight refuses a path of which a component is a symbolic link.
func straight(path string) error {
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%w: %s is no directory", ErrNotOurs, dir)
		}
	}
	return nil
}

// same reports an error unless the directory that was opened is the one that the path names without following a link.
func same(root *os.Root, path string) error {
	opened, err := root.Stat(".")
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, named) {
		return fmt.Errorf("%w: %s was exchanged", ErrNotOurs, path)
	}
	return nil
}

// directory reports whether name is a directory in root. Something else under the name is not ours.
func directory(root *os.Root, name string) (bool, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%w: %s is no directory", ErrNotOurs, filepath.Join(root.Name(), name))
	}
	return true, nil
}

// empty reports whether a directory in root holds nothing.
func empty(root *os.Root, name string) (bool, error) {
	dir, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}
