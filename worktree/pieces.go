package worktree

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// picture is a worktree being read into an import.
type picture struct {
	*survey
	*reader
	to      *importer
	pieces  []piece
	every   []string // untracked, one by one; repositories with a slash
	whole   []string // repositories inside, which go into the tar as a whole
	tarred  []string // untracked files that git takes under no name
	skipped []string
	links   map[string]bool // directories of which one above, or itself, is a symbolic link
}

// gather reads all of the working tree that differs from HEAD, or may: what git compares by its stat alone, or is told
// not to compare, is taken as it is.
func (p *picture) gather(ctx context.Context, untracked []string) error {
	seen := map[string]bool{}
	staged, dropped := p.byDeletion()
	for _, c := range slices.Concat(p.flagged(), p.changed, p.hidden, staged, asChanges(untracked)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if seen[c.path] || strings.HasSuffix(c.path, "/") {
			continue
		}
		seen[c.path] = true
		if err := p.take(c); err != nil {
			return fmt.Errorf("keep %q: %w", c.path, err)
		}
	}
	for _, c := range dropped {
		if !seen[c.path] {
			p.missing(c)
		}
	}
	return p.shape(seen)
}

// byDeletion parts what is staged. A path that was taken out of the index is not read for that: if it is on the disk,
// it is untracked, or ignored, and then it must not get into git.
func (s *survey) byDeletion() (staged, dropped []change) {
	for _, c := range s.staged {
		if c.status == 'D' {
			dropped = append(dropped, c)
		} else {
			staged = append(staged, c)
		}
	}
	return staged, dropped
}

// flagged are the entries that git's comparison passes over, or says too little of.
func (s *survey) flagged() (all []change) {
	for _, e := range s.entries {
		switch {
		case e.mode == gitlink:
		case e.stage != "0", e.tag != "S" && e.tag != "s" || s.there(e.path):
			all = append(all, change{'M', e.mode, e.oid, e.path})
		}
	}
	return all
}

func asChanges(untracked []string) (all []change) {
	for _, name := range untracked {
		all = append(all, change{'A', "", "", name})
	}
	return all
}

// take takes one path as it is on the disk.
func (p *picture) take(c change) error {
	if c.mode == gitlink {
		p.pieces = append(p.pieces, piece{Path: c.path, oid: c.oid, mode: gitlink})
		return nil
	}
	info, err := p.lstat(c.path)
	switch {
	case err == nil && !info.IsDir():
		err = p.read(c.path, info)
		if !vanished(err) {
			return err
		}
	case err != nil && !vanished(err):
		return err
	}
	p.missing(c)
	return nil
}

// missing notes that a path is not on the disk: deleted, or never checked out (sparse), which leaves what is staged.
func (p *picture) missing(c change) {
	switch {
	case p.sparse(c.path) && c.status != 'D':
		p.pieces = append(p.pieces, piece{Path: c.path, oid: c.oid, mode: c.mode})
	case c.mode != "" || c.status == 'D':
		p.pieces = append(p.pieces, newPiece(c.path, pieceGone, 0))
	}
}

func (p *picture) sparse(name string) bool {
	return slices.ContainsFunc(p.entries, func(e entry) bool { return e.path == name && strings.EqualFold(e.tag, "S") })
}

// lstat looks at a path without following a link, also not one in the place of a directory above it: what is behind
// such a link is not the file that git means.
func (p *picture) lstat(name string) (fs.FileInfo, error) {
	if p.behindLink(path.Dir(name)) {
		return nil, fs.ErrNotExist
	}
	return p.root.Lstat(name)
}

func (p *picture) behindLink(dir string) bool {
	if dir == "." {
		return false
	}
	if linked, known := p.links[dir]; known {
		return linked
	}
	linked := p.behindLink(path.Dir(dir))
	if !linked {
		info, err := p.root.Lstat(dir)
		linked = err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	p.links[dir] = linked
	return linked
}

// read stores a file or a link. A special file is as good as none.
func (p *picture) read(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case !storable(name, mode):
		p.tarred = append(p.tarred, name)
	case mode&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(name)
		if err != nil {
			return err
		}
		link := newPiece(name, pieceLink, 0)
		link.mark = p.to.text([]byte(target))
		p.pieces = append(p.pieces, link)
	case mode.IsRegular():
		return p.store(name)
	default:
		return fs.ErrNotExist
	}
	return nil
}

func (p *picture) store(name string) error {
	var got piece
	err := p.content(name, sink{
		begin: func(info fs.FileInfo) (io.Writer, error) {
			got = newPiece(name, pieceFile, info.Mode())
			got.mark = p.to.blob(info.Size())
			return p.to.w, nil
		},
		end: func() error { return p.to.w.WriteByte('\n') },
	})
	if err == nil {
		p.pieces = append(p.pieces, got)
	}
	return err
}

// list reads a directory. fs.FS would refuse names that are not UTF-8.
func (r *reader) list(name string) ([]fs.DirEntry, error) {
	dir, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}
