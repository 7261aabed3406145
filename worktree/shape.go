package worktree

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// shape is what git does not see of a working tree: empty directories, special files, and all permissions but one.
type shape struct {
	*picture
	read    map[string]bool // files that were read, with their permissions
	outside map[string]bool // what is kept as a whole, or not at all
	usual   fs.FileMode     // what git gives to a file
}

// shape adds it to the pieces. The .git file shows what git gives here: it depends on the umask that git had then.
func (p *picture) shape(read map[string]bool) error {
	s := &shape{p, read, map[string]bool{".git": true}, 0o644}
	if info, err := p.root.Lstat(".git"); err == nil && info.Mode().IsRegular() {
		s.usual = info.Mode().Perm()
	}
	for _, name := range slices.Concat(p.ignored, p.whole) {
		s.outside[strings.TrimSuffix(name, "/")] = true
	}
	return s.walk(".")
}

func (s *shape) walk(dir string) error {
	entries, err := s.list(dir)
	if vanished(err) {
		return nil
	}
	if err == nil && dir != "." {
		err = s.directory(dir, len(entries) == 0)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if s.outside[name] {
			continue
		}
		if err := s.visit(name, e); err != nil {
			return err
		}
	}
	return err
}

func (s *shape) visit(name string, e fs.DirEntry) error {
	switch mode := e.Type(); {
	case mode.IsDir():
		return s.walk(name)
	case mode.IsRegular():
		return s.file(name, e)
	case mode&fs.ModeSymlink == 0:
		s.skipped = append(s.skipped, name)
	}
	return nil
}

// file notes permissions that git would not give.
func (s *shape) file(name string, e fs.DirEntry) error {
	if s.read[name] {
		return nil
	}
	info, err := e.Info()
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode != s.usual && mode != executable(s.usual) {
		s.pieces = append(s.pieces, newPiece(name, pieceMode, mode))
	}
	return nil
}

// directory notes one that is empty, or has permissions that git would not give.
func (s *shape) directory(name string, empty bool) error {
	info, err := s.root.Lstat(name)
	if err == nil && (empty || info.Mode().Perm() != executable(s.usual)) {
		s.pieces = append(s.pieces, newPiece(name, pieceDir, info.Mode()))
	}
	if vanished(err) {
		err = nil
	}
	return err
}

// executable lets execute who may read.
func executable(mode fs.FileMode) fs.FileMode { return mode | mode&0o444>>2 }
