package worktree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// state is the commit that holds the index and the state of the git directory.
func (r *restoration) state() string {
	if r.k.Head == "" {
		return r.k.Commit + "^1"
	}
	return r.k.Commit + "^2"
}

// restoreState writes the state files as they were, the index among them. HEAD is no matter of bytes: its branch may
// have moved.
func (r *restoration) restoreState(ctx context.Context) error {
	if r.k.Ref == "" {
		return nil
	}
	blobs, err := r.listTree(ctx, r.state())
	if err != nil {
		return err
	}
	var names, oids []string
	for _, name := range sorted(blobs) {
		if inner, ok := strings.CutPrefix(name, inGit); ok && isState(inner) && inner != "HEAD" {
			names, oids = append(names, inner), append(oids, blobs[name])
		}
	}
	return r.readBlobs(ctx, oids, func(n int, size int64, blob io.Reader) error {
		return write(r.git, names[n], 0o666, false, blob)
	})
}

// restorePieces writes the files that were kept as they were on the disk. Links come last: until then none is in the way.
func (r *restoration) restorePieces(ctx context.Context) error {
	if len(r.kept) == 0 {
		return nil
	}
	return r.writePieces(ctx, r.kept)
}

// restoreModes makes empty directories, and then gives permissions, the inner ones first: a directory's may forbid to
// write in it.
func (r *restoration) restoreModes(context.Context) (err error) {
	for _, p := range r.kept {
		if p.Kind == pieceDir {
			err = errors.Join(err, r.tree.MkdirAll(p.path(), 0o777))
		}
	}
	for _, p := range slices.Backward(r.kept) {
		if (p.Kind == pieceDir || p.Kind == pieceMode) && err == nil {
			err = r.tree.Chmod(p.path(), p.Mode)
		}
	}
	return err
}

func (r *restoration) pieces(ctx context.Context) (pieces []piece, err error) {
	out, err := git(ctx, r.t.Dir, "cat-file", "blob", r.state()+":"+inManifest)
	if err == nil {
		_, pieces, err = readManifest(bytes.NewReader(out))
	}
	return pieces, err
}

func (r *restoration) writePieces(ctx context.Context, pieces []piece) error {
	blobs, err := r.listTree(ctx, r.k.Commit)
	if err != nil {
		return err
	}
	var wanted []piece
	var oids []string
	for _, kind := range []string{pieceFile, pieceLink} {
		for _, p := range pieces {
			if p.Kind != kind {
				continue
			}
			oid, ok := blobs[p.path()]
			if !ok {
				return fmt.Errorf("%q is in the manifest of %s and not in its tree", p.path(), r.k.Commit)
			}
			wanted, oids = append(wanted, p), append(oids, oid)
		}
	}
	return r.readBlobs(ctx, oids, func(n int, size int64, blob io.Reader) error {
		p := wanted[n]
		if p.Kind == pieceLink {
			return writeLink(r.tree, p.path(), blob)
		}
		return write(r.tree, p.path(), p.Mode, true, blob)
	})
}

// listTree returns the blobs of a tree by path.
func (r *restoration) listTree(ctx context.Context, treeish string) (map[string]string, error) {
	out, err := git(ctx, r.t.Dir, "ls-tree", "-r", "-z", "--full-tree", treeish)
	blobs := map[string]string{}
	for _, line := range split(string(out)) {
		meta, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[1] == "blob" {
			blobs[name] = f[2]
		}
	}
	return blobs, err
}

// readBlobs has git print blobs, and hands each over with its number.
func (r *restoration) readBlobs(ctx context.Context, oids []string, take func(n int, size int64, blob io.Reader) error) error {
	if len(oids) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args := []string{"cat-file", "--batch"}
	cmd := command(ctx, slices.Concat(quiet, args))
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.t.Dir, environment(os.Environ()), grace
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(oids, "\n")+"\n"), &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	if err := eachBlob(bufio.NewReaderSize(out, 64<<10), len(oids), take); err != nil {
		cancel()
		return errors.Join(err, ignore(cmd.Wait()))
	}
	if err := cmd.Wait(); err != nil {
		return failure(ctx, r.t.Dir, args, stderr.String(), err)
	}
	return nil
}

// ignore is for the error of a command that we ended.
func ignore(error) error { return nil }

// eachBlob reads "oid type size LF bytes LF", n times.
func eachBlob(out *bufio.Reader, n int, take func(n int, size int64, blob io.Reader) error) error {
	for i := range n {
		line, err := out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read git cat-file: %w", err)
		}
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			return fmt.Errorf("read git cat-file: %s", strings.TrimSpace(line))
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return err
		}
		blob := &io.LimitedReader{R: out, N: size}
		if err := take(i, size, blob); err != nil {
			return err
		}
		if blob.N > 0 {
			return fmt.Errorf("read git cat-file: %w", io.ErrUnexpectedEOF)
		}
		if _, err := out.Discard(1); err != nil {
			return err
		}
	}
	return nil
}

// write makes a file anew, with exactly these permissions or with what the umask leaves of them.
func write(root *os.Root, name string, mode fs.FileMode, exactly bool, from io.Reader) error {
	if err := clearWay(root, name); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err == nil && exactly {
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

const maxTarget = 64 << 10

func writeLink(root *os.Root, name string, from io.Reader) error {
	target, err := io.ReadAll(io.LimitReader(from, maxTarget))
	if err == nil {
		err = clearWay(root, name)
	}
	if err != nil {
		return err
	}
	return root.Symlink(string(target), name)
}

// clearWay makes the directory of a path and removes what has its name: a file, a link, an empty directory.
func clearWay(root *os.Root, name string) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if err := root.Remove(name); err != nil && !vanished(err) {
		return err
	}
	return nil
}
