package worktree

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// gitInput runs a command that reads its standard input.
func gitInput(ctx context.Context, dir string, in io.Reader, args ...string) ([]byte, error) {
	cmd := command(ctx, slices.Concat(quiet, args))
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environment(os.Environ()), grace
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		name := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") || strings.Contains(a, "=") })
		return stdout.Bytes(), failure(ctx, dir, name, stderr.String(), err)
	}
	return stdout.Bytes(), nil
}

// updateRefs runs one transaction on references: all of it happens, or nothing. Nobody's reflog notes it.
func updateRefs(ctx context.Context, dir, commands string) error {
	words := []string{"-c", "core.fsync=all", "-c", "core.logAllRefUpdates=false", "update-ref", "--stdin"}
	if isGitDir(dir) {
		words = append([]string{"--git-dir=."}, words...)
	}
	_, err := gitInput(ctx, dir, strings.NewReader(commands), words...)
	return err
}

// Discard deletes an archive's reference; what only it held goes with the next gc of git. One that is gone is fine.
func Discard(ctx context.Context, repository, ref string) error {
	out, err := git(ctx, repository, "--git-dir=.", "for-each-ref", "--format=%(refname) %(objectname)", ref)
	for line := range strings.Lines(string(out)) {
		if name, oid, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref && err == nil {
			err = updateRefs(ctx, repository, fmt.Sprintf("delete %s %s\n", ref, oid))
		}
	}
	if err != nil {
		return fmt.Errorf("discard %s: %w", ref, err)
	}
	return nil
}

// Size returns about how many bytes on the disk an archive's reference alone holds.
func Size(ctx context.Context, repository, ref string) (bytes int64, err error) {
	out, err := git(ctx, repository, "--git-dir=.", "rev-list", "--disk-usage", "--objects", ref, "--not", "--branches", "--tags", "--remotes", "--")
	if err == nil {
		bytes, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", ref, err)
	}
	return bytes, nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
