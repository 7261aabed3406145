package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// diverge makes two branches that conflict in a: theirs, and the worktree's own with three commits.
func (a archived) diverge() {
	a.repo.git("checkout", "-q", "-b", "theirs")
	a.repo.write("a", "theirs\n")
	a.repo.commit()
	a.repo.write("t", "theirs\n")
	a.repo.commit()
	a.repo.git("checkout", "-q", "main")
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		a.write("a", text)
		a.write("file-"+strings.TrimSpace(text), text)
		a.commit()
	}
	a.write("u", "untracked\n")
}

// settle resolves the conflict and goes on.
func (a archived) settle(args ...string) {
	a.t.Helper()
	a.write("a", "settled\n")
	a.git("add", "a")
	a.t.Setenv("GIT_EDITOR", "true")
	a.git(args...)
}

// operations of git that have stopped in the middle, and what goes on with each.
var stopped = map[string]struct {
	begin func(archived)
	state string
	goOn  func(archived)
}{
	"merge": {
		func(a archived) { a.fails("merge", "theirs") }, "merge",
		func(a archived) { a.settle("merge", "--continue"); a.git("rev-parse", "HEAD^2") },
	},
	"merge, half resolved": {
		func(a archived) {
			a.fails("merge", "theirs")
			a.write("a", "mine\n")
			a.git("add", "a")
			a.write("a", "again\n")
		}, "merge",
		func(a archived) { a.git("checkout", "-m", "--", "a"); a.settle("merge", "--continue") },
	},
	"rebase": {
		func(a archived) { a.git("stash", "push", "-qu"); a.fails("rebase", "theirs") }, "rebase",
		func(a archived) {
			for range 2 { // the next two commits conflict as well
				a.write("a", "settled\n")
				a.git("add", "a")
				a.fails("-c", "core.editor=true", "rebase", "--continue")
			}
			a.settle("rebase", "--continue")
			a.git("show", "HEAD:file-three", "HEAD:t")
		},
	},
	"rebase, interactive": {
		func(a archived) {
			a.t.Setenv("GIT_SEQUENCE_EDITOR", "sed -i -e '1s/^pick/edit/' -e '2s/^pick/squash/'")
			a.git("rebase", "-i", "HEAD~3")
			a.write("a", "amended\n")
		}, "rebase",
		func(a archived) {
			a.git("checkout", "-q", "a")
			a.t.Setenv("GIT_EDITOR", "true")
			a.git("rebase", "--continue")
		},
	},
	"rebase, with autostash": {
		func(a archived) { a.write("b", "stashed\n"); a.fails("rebase", "--autostash", "theirs") }, "rebase",
		func(a archived) {
			a.git("rebase", "--abort")
			if text, err := os.ReadFile(filepath.Join(a.dir, "b")); err != nil || string(text) != "stashed\n" {
				a.t.Errorf("b: %q %v", text, err)
			}
		},
	},
	"rebase, of patches": {
		func(a archived) { a.fails("rebase", "--apply", "theirs") }, "rebase",
		func(a archived) { a.git("rebase", "--abort") },
	},
	"am": {
		func(a archived) {
			patch := filepath.Join(a.t.TempDir(), "p")
			must(a.t, os.WriteFile(patch, []byte(a.git("format-patch", "--stdout", "-2", "theirs")+"\n"), 0o600))
			a.fails("am", patch)
		}, "am",
		func(a archived) { a.settle("am", "--continue"); a.git("show", "HEAD:t") },
	},
	"cherry-pick": {
		func(a archived) { a.fails("cherry-pick", "theirs~1", "theirs") }, "cherry-pick",
		func(a archived) { a.settle("cherry-pick", "--continue"); a.git("show", "HEAD:t") },
	},
	"cherry-pick of what is on no branch": {
		func(a archived) {
			a.fails("cherry-pick", "theirs~1", "theirs")
			a.repo.git("branch", "-D", "theirs")
		}, "cherry-pick",
		func(a archived) { a.settle("cherry-pick", "--continue"); a.git("show", "HEAD:t") },
	},
	"revert": {
		func(a archived) { a.fails("revert", "HEAD~1") }, "revert",
		func(a archived) { a.settle("revert", "--continue") },
	},
	"bisect": {
		func(a archived) { a.git("bisect", "start", "HEAD", "HEAD~3") }, "bisect",
		func(a archived) { a.git("bisect", "good"); a.git("bisect", "reset"); a.git("rev-parse", "HEAD") },
	},
	"resolved": {
		func(a archived) { a.fails("merge", "theirs"); a.settle("merge", "--continue"); a.write("b", "x") }, "",
		func(a archived) { a.git("status") },
	},
}

func TestCase22_OperationsInProgressGoOn(t *testing.T) {
	for name, op := range stopped {
		t.Run(name, func(t *testing.T) {
			a := newArchived(t)
			a.diverge()
			op.begin(a)
			k := a.roundTrip()
			if got := strings.Join(k.State, " "); got != op.state {
				t.Errorf("in progress: %q, want %q", got, op.state)
			}
			op.goOn(a)
		})
	}
}
