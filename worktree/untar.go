package worktree

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// adminRecord says in the tar what the git directory's base name was: a submodule's .git file points through it.
const adminRecord = "PINTLE.admin"

// unpack brings back what was kept in the tar. Nothing gets out of the two directories that its names can mean, and no
// link is followed, since those of the tar come last.
func (r *restoration) unpack(ctx context.Context) error {
	if r.k.Tar == "" {
		return nil
	}
	file, err := os.Open(r.k.Tar)
	if errors.Is(err, fs.ErrNotExist) {
		r.note("%s is gone: the files in it are not restored", r.k.Tar)
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	u := &unpacking{restoration: r, r: tar.NewReader(bufio.NewReaderSize(file, 256<<10))}
	if err := u.all(ctx); err != nil {
		return fmt.Errorf("unpack %s: %w", r.k.Tar, err)
	}
	return nil
}

type unpacking struct {
	*restoration
	r     *tar.Reader
	admin string // the base name of the git directory when it was kept
	links []unpacked
	dirs  []unpacked
	dots  []string // .git files in the working tree
}

// unpacked is an entry of which something is left to do.
type unpacked struct {
	root   *os.Root
	name   string
	target string
	mode   fs.FileMode
}

func (u *unpacking) all(ctx context.Context) error {
	for {
		header, err := u.r.Next()
		if errors.Is(err, io.EOF) {
			return u.rest()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = u.one(header)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) one(header *tar.Header) error {
	root, name, err := u.place(header.Name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(header.Mode).Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		u.dirs = append(u.dirs, unpacked{root: root, name: name, mode: mode})
		if was := header.PAXRecords[adminRecord]; was != "" {
			u.admin = was
		}
		return root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		u.links = append(u.links, unpacked{root: root, name: name, target: header.Linkname})
		return nil
	case tar.TypeReg:
		if root == u.tree && path.Base(name) == ".git" {
			u.dots = append(u.dots, name)
		}
		return write(root, name, mode, true, u.r)
	}
	return fmt.Errorf("%q is of a kind that is never kept", header.Name)
}

// place says in which directory a name belongs.
func (u *unpacking) place(name string) (*os.Root, string, error) {
	name = strings.TrimSuffix(name, "/")
	if path.Clean(name) != name {
		return nil, "", fmt.Errorf("%q is no name that was ever kept", name)
	}
	if rest, ok := strings.CutPrefix(name, inTree); ok && filepath.IsLocal(rest) {
		return u.tree, rest, nil
	}
	if rest, ok := strings.CutPrefix(name, inGit); ok && filepath.IsLocal(rest) && (rest == modules || strings.HasPrefix(rest, modules+"/")) {
		return u.git, rest, nil
	}
	return nil, "", fmt.Errorf("%q is no name that was ever kept", name)
}

// rest does what must wait: links, and the permissions of directories, which may forbid to write in them.
func (u *unpacking) rest() error {
	if err := u.repoint(); err != nil {
		return err
	}
	for _, l := range u.links {
		if err := writeLink(l.root, l.name, strings.NewReader(l.target)); err != nil {
			return err
		}
	}
	for _, d := range slices.Backward(u.dirs) {
		if err := d.root.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}

// repoint corrects the .git files of submodules where git gave the worktree's directory another name than before.
func (u *unpacking) repoint() error {
	now := filepath.Base(u.restoration.admin.path)
	if u.admin == "" || u.admin == now {
		return nil
	}
	old, new := "/worktrees/"+u.admin+"/"+modules+"/", "/worktrees/"+now+"/"+modules+"/"
	for _, name := range u.dots {
		text, err := u.tree.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(old)) {
			text = bytes.Replace(text, []byte(old), []byte(new), 1)
			err = write(u.tree, name, 0o644, true, bytes.NewReader(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
