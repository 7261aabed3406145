package worktree

import (
	"context"
	"fmt"
	"os/exec"
)

type umaskKey struct{}

// Umask has git, when it is called with the context, make files under that mask: they are for whoever ordered the worktree,
// and in his repository, while the caller may serve others with a mask of its own.
func Umask(ctx context.Context, mask int) context.Context {
	return context.WithValue(ctx, umaskKey{}, mask)
}

// command is git, to be run with these words. The mask is the process's own, so another process has to set it.
func command(ctx context.Context, words []string) *exec.Cmd {
	mask, ok := ctx.Value(umaskKey{}).(int)
	if !ok {
		return exec.CommandContext(ctx, "git", words...)
	}
	set := fmt.Sprintf(`umask %04o && exec git "$@"`, mask)
	return exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", set, "git"}, words...)...)
}
