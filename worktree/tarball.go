package worktree

import (
	"archive/tar"
	"bufio"
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
	"syscall"
)

// A tar holds what must not get into git, or cannot. Its names begin with where they belong: tree/ is the working
// tree, git/ the worktree's git directory (of submodules).
const (
	inTree  = "tree/"
	modules = "modules"
)

// keepTar writes the tar if there is anything for it.
func (p *picture) keepTar(ctx context.Context, o SnapshotOptions, k *Kept) error {
	secret, err := p.divide(o.Keep, k)
	if err != nil {
		return err
	}
	k.Files, k.Nested = atMost(secret), atMost(p.whole)
	names := slices.Concat(secret, p.whole, p.tarred)
	if len(names) == 0 {
		return nil
	}
	if o.Tar == "" {
		return fmt.Errorf("keep %q: no place for a tar is given", names[0])
	}
	k.Tar = o.Tar
	return replace(o.Tar, func(w io.Writer) error { return p.writeTar(ctx, w, names) })
}

// divide parts what git ignores: what matches a pattern is returned, the rest is listed in the report.
func (p *picture) divide(keep patterns, k *Kept) (secret []string, err error) {
	for _, name := range p.ignored {
		found := []string{}
		if strings.HasSuffix(name, "/") {
			found, err = p.matching(keep, strings.TrimSuffix(name, "/"))
		} else if keep.match(name) {
			found = []string{name}
		}
		if err != nil {
			return nil, err
		}
		if secret = append(secret, found...); len(found) == 0 || strings.HasSuffix(name, "/") {
			k.Ignored = append(k.Ignored, name)
		}
	}
	k.IgnoredN = len(k.Ignored)
	k.Ignored = atMost(k.Ignored)
	slices.Sort(secret)
	return slices.Compact(secret), nil
}

// matching looks for files to keep in a directory that is ignored as a whole. Its deletion would go through all of it
// as well.
func (p *picture) matching(keep patterns, dir string) (found []string, err error) {
	if len(keep) == 0 {
		return nil, nil
	}
	entries, err := p.list(dir)
	if vanished(err) {
		return nil, nil
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			more, walkErr := p.matching(keep, name)
			found, err = append(found, more...), errors.Join(err, walkErr)
		} else if keep.match(name) {
			found = append(found, name)
		}
	}
	return found, err
}

// replace writes a file that only its owner reads, whole or not at all. The temporary name is always the same, so that
// one that a death left is overwritten by the next try.
func replace(name string, write func(io.Writer) error) error {
	temp := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".tmp")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 256<<10)
	err = write(w)
	if err == nil {
		err = errors.Join(w.Flush(), file.Sync())
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(name))
}

func (p *picture) writeTar(ctx context.Context, w io.Writer, names []string) error {
	t := &tarrer{ctx: ctx, w: tar.NewWriter(w), picture: p, known: map[string]bool{".": true}}
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		if err := t.parents(path.Dir(name)); err != nil {
			return err
		}
		if err := t.add(p.reader, inTree, name); err != nil {
			return err
		}
	}
	if err := t.addModules(); err != nil {
		return err
	}
	return t.w.Close()
}

// tarrer writes files, links and directories into a tar.
type tarrer struct {
	ctx context.Context
	w   *tar.Writer
	*picture
	known map[string]bool // directories above what is kept, which are in the tar
}

// parents writes the directories above a path, for their permissions.
func (t *tarrer) parents(dir string) error {
	if t.known[dir] {
		return nil
	}
	t.known[dir] = true
	if err := t.parents(path.Dir(dir)); err != nil {
		return err
	}
	info, err := t.root.Lstat(dir)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.header(inTree, dir, info)
}

// addModules keeps the git directories of submodules, which are in the worktree's own.
func (t *tarrer) addModules() error {
	if _, err := os.Lstat(filepath.Join(t.repo.GitDir, modules)); err != nil {
		return nil
	}
	from, err := openReader(t.repo.GitDir, nil)
	if err != nil {
		return err
	}
	defer from.close()
	return t.add(from, inGit, modules)
}

// add writes a path and all below it. What is gone meanwhile is left out.
func (t *tarrer) add(from *reader, prefix, name string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	info, err := from.root.Lstat(name)
	switch {
	case vanished(err):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return t.directory(from, prefix, name, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return t.link(from, prefix, name, info)
	case !info.Mode().IsRegular():
		t.report(name)
		return nil
	}
	return t.file(from, prefix, name)
}

// report notes a special file. Those in a git directory (sockets of its daemons) are of no interest.
func (t *tarrer) report(name string) { t.skipped = append(t.skipped, name) }

func (t *tarrer) directory(from *reader, prefix, name string, info fs.FileInfo) error {
	if err := t.header(prefix, name, info); err != nil {
		return err
	}
	entries, err := from.list(name)
	for _, e := range entries {
		if err := t.add(from, prefix, path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	if vanished(err) {
		err = nil
	}
	return err
}

func (t *tarrer) header(prefix, name string, info fs.FileInfo) error {
	header := &tar.Header{Typeflag: tar.TypeDir, Name: prefix + name + "/", Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX}
	if prefix == inGit {
		header.PAXRecords = map[string]string{adminRecord: filepath.Base(t.repo.GitDir)}
	}
	return t.w.WriteHeader(header)
}

func (t *tarrer) link(from *reader, prefix, name string, info fs.FileInfo) error {
	target, err := from.root.Readlink(name)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeSymlink, Name: prefix + name, Linkname: target, Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX,
	})
}

// file may write a file several times, if it changes meanwhile: the last one counts when the tar is unpacked.
func (t *tarrer) file(from *reader, prefix, name string) error {
	err := from.content(name, sink{
		begin: func(info fs.FileInfo) (io.Writer, error) {
			return t.w, t.w.WriteHeader(&tar.Header{
				Typeflag: tar.TypeReg, Name: prefix + name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX,
			})
		},
		end: func() error { return nil },
	})
	if vanished(err) {
		return nil
	}
	return err
}
