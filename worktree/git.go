package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// quiet switches off what would run programs or write, whatever the configuration says: hooks, the file
// system monitor (which is a hook by another name), and the index being written after a diff. Clean filters
// (git-lfs) stay: without them every file that they keep would look changed.
var quiet = []string{
	"--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
	"-c", "diff.autoRefreshIndex=false",
}

// Own reports whether a command line is that of a git that this package runs. One whose caller was killed goes on for a
// while.
func Own(command string) bool {
	return strings.HasPrefix(command, "git "+strings.Join(quiet[:5], " "))
}

// kept are the variables of git that say how to reach things and where configuration is. Everything else that
// begins with GIT_ describes another repository, index or command: a verb called from a hook has GIT_DIR and
// GIT_INDEX_FILE set, and would be told about the hook's repository.
var kept = []string{
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*",
	"GIT_EXEC_PATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_*", "GIT_PROXY_COMMAND",
}

// grace is how long a cancelled git's children may keep its output open.
const grace = 2 * time.Second

// git runs a command in dir and returns what it printed, also when it failed.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := command(ctx, slices.Concat(quiet, args))
	cmd.Dir = dir
	cmd.Env = environment(os.Environ())
	cmd.WaitDelay = grace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), failure(ctx, dir, args, stderr.String(), err)
	}
	return stdout.Bytes(), nil
}

// environment is what git gets: messages in English, no optional locks, nobody asked for a password.
func environment(host []string) []string {
	env := slices.DeleteFunc(slices.Clone(host), foreign)
	return append(env, "LC_ALL=C", "LANGUAGE=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true", "SSH_ASKPASS=true", "SSH_ASKPASS_REQUIRE=force")
}

// foreign reports whether a NAME=value is git's and not one of those to keep.
func foreign(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return strings.HasPrefix(name, "GIT_") && !slices.ContainsFunc(kept, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// failure names the command and git's reason.
func failure(ctx context.Context, dir string, args []string, stderr string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	verb := args[0]
	if i := slices.IndexFunc(args, func(s string) bool { return !strings.HasPrefix(s, "-") }); i > 0 {
		verb = args[i]
	}
	if why := reason(stderr); why != "" {
		return fmt.Errorf("git %s in %s: %s: %w", verb, dir, why, err)
	}
	return fmt.Errorf("git %s in %s: %w", verb, dir, err)
}

// reason is the line of what git said that says why: the fatal one, where advice follows it, else the last. Advice that is
// a command is told, too.
func reason(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	for _, line := range lines {
		if strings.HasPrefix(line, "fatal: ") && line != last {
			if strings.HasPrefix(last, "git ") {
				return line + " (" + last + ")"
			}
			return line
		}
	}
	return last
}
