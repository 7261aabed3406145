package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markerName is a file in a worktree's own git directory, where it makes nothing dirty (X23).
const markerName = "pintle"

// marker says whose a worktree is: the state directory that has its record, and the record.
type marker struct {
	Home     string `json:"home"`
	Worktree string `json:"worktree"`
}

func (t Tree) marker() marker { return marker{t.Home, t.ID} }

// Owner returns whose the worktree is that holds dir, from the files by which git links it: every run in a repository asks
// that, and a git takes longer than all else. The error is fs.ErrNotExist for one that pintle did not make.
func Owner(dir string) (home, id string, err error) {
	at, err := physical(dir)
	if err != nil {
		return "", "", err
	}
	for {
		m, err := markerOf(at)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return m.Home, m.Worktree, err
		}
		parent := filepath.Dir(at) // a submodule has a .git of its own
		if parent == at {
			return "", "", fmt.Errorf("owner of %s: %w", dir, fs.ErrNotExist)
		}
		at = parent
	}
}

// markerOf reads the marker of the worktree whose root is dir.
func markerOf(dir string) (marker, error) {
	info, err := os.Lstat(filepath.Join(dir, ".git"))
	if err != nil || !info.Mode().IsRegular() { // a directory is a repository of its own
		return marker{}, errors.Join(err, fs.ErrNotExist)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".git"))
	if err != nil {
		return marker{}, err
	}
	target, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), "gitdir: ")
	if !ok {
		return marker{}, fs.ErrNotExist
	}
	return readMarker(under(dir, target))
}

// readMarker reads the marker in a git directory. One that cannot be read is nobody's: it is never taken for ours.
func readMarker(gitDir string) (m marker, err error) {
	path := filepath.Join(gitDir, markerName)
	text, err := os.ReadFile(path)
	if err != nil {
		return marker{}, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return marker{}, fmt.Errorf("read %s: %w", path, err)
	}
	return m, nil
}

// write puts the marker into a git directory, to stay there if the power fails. Killed in the middle it leaves half
// a line; the worktree is then still locked as one being made, and is made anew.
func (m marker) write(gitDir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(gitDir, markerName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return err
	}
	return errors.Join(file.Sync(), syncDir(gitDir))
}

// syncDir makes the names in a directory last.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
