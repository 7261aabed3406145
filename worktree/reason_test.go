package worktree

import (
	"path/filepath"
	"testing"
)

// Of what git said the line that says why is told, with the command that it advises.
func TestReason(t *testing.T) {
	for said, want := range map[string]string{
		"":                       "",
		"fatal: not a tree\n":    "fatal: not a tree",
		"warning: x\nfatal: y\n": "fatal: y",
		"error: x\nerror: y":     "error: y",
		"fatal: Unable to create 'l': File exists.\n\nAnother git process seems to run.\nremove the file manually to continue.\n": "fatal: Unable to create 'l': File exists.",
		"fatal: detected dubious ownership\nTo add an exception, call:\n\n\tgit config --add d\n":                                 "fatal: detected dubious ownership (git config --add d)",
	} {
		if got := reason(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

func TestValidBranch(t *testing.T) {
	r := newTree(t, "r")
	for name, want := range map[string]bool{
		"feat": true, "a/b": true, "ä": true, "pintle/k": true, "a b": false, "a..b": false, "-x": false, "x.lock": false,
		"HEAD": false, "@": false, "@{-1}": false, "refs/heads/x": false, "a\nb": false, "": false, "a/": false, "x\x00": false,
	} {
		if err := ValidBranch(t.Context(), filepath.Join(r.dir, ".git"), name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
