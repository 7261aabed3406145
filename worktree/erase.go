package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// erase deletes a directory in root with all that is in it. It follows no symbolic link. Where a directory in it
// forbids that, as those of Go's module cache do, they are opened first.
func erase(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlock(root, name); err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// unlock lets the owner change name and all directories below it.
func unlock(parent *os.Root, name string) error {
	dir, err := enter(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := subdirectories(dir)
	for _, name := range names {
		if err := unlock(dir, name); err != nil {
			return err
		}
	}
	return err
}

// enter opens a directory, and makes that possible first. A link that takes its place meanwhile leads at worst to
// what is deleted with it: root is not left, and another directory than the one that was there is refused.
func enter(parent *os.Root, name string) (*os.Root, error) {
	before, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is no directory", name)
	}
	if err := parent.Chmod(name, before.Mode().Perm()|0o700); err != nil {
		return nil, err
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(before, opened) {
		dir.Close()
		return nil, errors.Join(err, fmt.Errorf("%s was exchanged", name))
	}
	return dir, nil
}

// subdirectories returns the names of the directories in dir, which are no links.
func subdirectories(dir *os.Root) (names []string, err error) {
	self, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	entries, err := self.ReadDir(-1)
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
