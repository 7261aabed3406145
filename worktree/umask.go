package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
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
	if !ok || mask == ownUmask() {
		return exec.CommandContext(ctx, "git", words...)
	}
	set := fmt.Sprintf(`umask %04o && exec git "$@"`, mask)
	return exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", set, "git"}, words...)...)
}

// ownUmask is this process's mask, which the kernel says where there is /proc; -1 elsewhere: to find out by setting it would
// give another thread's files a wrong one.
var ownUmask = sync.OnceValue(func() int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if text, ok := strings.CutPrefix(string(line), "Umask:"); ok {
			if mask, err := strconv.ParseInt(strings.TrimSpace(text), 8, 32); err == nil {
				return int(mask)
			}
		}
	}
	return -1
})
