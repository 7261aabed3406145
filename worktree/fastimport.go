package worktree

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// importing is how git takes in what is kept. It lasts before the call returns; it is one pack, however many files;
// what is bigger than 16 MiB is streamed, so that memory is bounded; and names that could not be checked out on another
// system are names all the same.
var importing = []string{
	"-c", "core.fsync=all", "-c", "core.fsyncObjectFiles=true", "-c", "core.logAllRefUpdates=false",
	"-c", "fastimport.unpackLimit=0", "-c", "core.bigFileThreshold=16m", "-c", "pack.compression=1",
	"-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=now",
}

// identity is pintle's own: the user's has no part in it, and there may be none.
const identity = "pintle <pintle@localhost>"

// importer writes to a `git fast-import`. No filter of the repository touches what is written. If it is given up
// before done, or killed, no reference was made, and git clears its temporary pack away in time.
type importer struct {
	ctx    context.Context
	dir    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	w      *bufio.Writer
	stdout bytes.Buffer
	stderr bytes.Buffer
	cancel context.CancelFunc
	marks  int
}

func startImport(ctx context.Context, dir string) (*importer, error) {
	ctx, cancel := context.WithCancel(ctx)
	i := &importer{ctx: ctx, dir: dir, cancel: cancel}
	i.cmd = command(ctx, slices.Concat(quiet, importing))
	i.cmd.Dir, i.cmd.Env, i.cmd.WaitDelay = dir, environment(os.Environ()), grace
	i.cmd.Stdout, i.cmd.Stderr = &i.stdout, &i.stderr
	var err error
	if i.in, err = i.cmd.StdinPipe(); err == nil {
		err = i.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("git fast-import in %s: %w", dir, err)
	}
	i.w = bufio.NewWriterSize(i.in, 64<<10)
	return i, nil
}

// printf writes a command. Its error stands until done reports it.
func (i *importer) printf(format string, args ...any) { fmt.Fprintf(i.w, format, args...) }

// blob begins a blob of a size and returns its mark; the caller writes exactly that much to w.
func (i *importer) blob(size int64) int {
	i.marks++
	i.printf("blob\nmark :%d\ndata %d\n", i.marks, size)
	return i.marks
}

// text stores bytes that are at hand.
func (i *importer) text(b []byte) int {
	mark := i.blob(int64(len(b)))
	_, _ = i.w.Write(b)
	i.printf("\n")
	return mark
}

// commit begins a commit on ref and returns its mark.
func (i *importer) commit(ref, message string) int {
	i.marks++
	i.printf("commit %s\nmark :%d\ncommitter %s now\ndata %d\n%s\n", ref, i.marks, identity, len(message), message)
	return i.marks
}

// put has a path hold what was marked.
func (i *importer) put(mode string, mark int, path string) {
	i.printf("M %s :%d %s\n", mode, mark, quote(path))
}

// set has a path hold an object that the repository has.
func (i *importer) set(mode, oid, path string) { i.printf("M %s %s %s\n", mode, oid, quote(path)) }

func (i *importer) drop(path string) { i.printf("D %s\n", quote(path)) }

// done ends the import and returns the name of the commit that was marked.
func (i *importer) done(mark int) (string, error) {
	defer i.cancel()
	i.printf("get-mark :%d\ndone\n", mark)
	writeErr := i.w.Flush()
	_ = i.in.Close()
	if err := i.cmd.Wait(); err != nil {
		return "", failure(i.ctx, i.dir, []string{"fast-import"}, i.stderr.String(), err)
	}
	return strings.TrimSpace(i.stdout.String()), writeErr
}

// giveUp ends an import of which nothing shall be. After done it does nothing.
func (i *importer) giveUp() {
	i.cancel()
	_ = i.in.Close()
	_ = i.cmd.Wait()
}

// quote writes a path as fast-import reads it: any byte but NUL can be in a name.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// storable reports whether git takes a path into a tree. It refuses, by version, what could pass for its own.
func storable(path string, mode fs.FileMode) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") || mode&fs.ModeSymlink != 0 && strings.EqualFold(part, ".gitmodules") {
			return false
		}
	}
	return true
}
