package worktree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stateNames are what git keeps of one worktree in its own git directory, and what it does not find again when that
// is gone. Directories stand for all in them. Not here is what says where things are (gitdir, commondir), which a new
// worktree has of its own, and what belongs to pintle.
var stateNames = []string{
	"index", "sharedindex.*", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "logs", "AUTO_MERGE", "MERGE_*", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"REBASE_HEAD", "SQUASH_MSG", "COMMIT_EDITMSG", "rebase-merge", "rebase-apply", "sequencer", "BISECT_*", "NOTES_MERGE_*", "info", "config.worktree",
	"refs", "reftable",
}

// usual are the state files that every worktree has: they are kept with others, but are no reason to keep.
var usual = []string{"index", "sharedindex.*", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "logs/HEAD", "COMMIT_EDITMSG", "AUTO_MERGE", "reftable/*"}

// parts are what of the directories is of one worktree, where not all is.
var parts = map[string][]string{
	"refs": {"refs/bisect/", "refs/worktree/", "refs/rewritten/"},
	"logs": {"logs/HEAD"},
	"info": {"info/sparse-checkout"},
}

// isState reports whether a name in the git directory is of the worktree's state. Restore writes no other.
func isState(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	only, some := parts[first]
	return filepath.IsLocal(name) && matches(stateNames, first) && !strings.HasSuffix(name, ".lock") &&
		(!some || slices.ContainsFunc(only, func(prefix string) bool { return strings.HasPrefix(name, prefix) }))
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := filepath.Match(pattern, name)
		return ok
	})
}

// stateFiles lists the state files of a git directory, sorted.
func stateFiles(gitDir string) (names []string, err error) {
	entries, err := os.ReadDir(gitDir)
	for _, e := range entries {
		if matches(stateNames, e.Name()) {
			found, walkErr := filesBelow(gitDir, e.Name())
			names, err = append(names, found...), errors.Join(err, walkErr)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isState(name) }), err
}

func filesBelow(gitDir, name string) (names []string, err error) {
	err = filepath.WalkDir(filepath.Join(gitDir, name), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, gitDir+"/"))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // git removes its files while we look
		}
		return err
	})
	return names, err
}

// weighty reports whether a state file is a reason to keep the state.
func weighty(name string) bool { return !matches(usual, name) }

// operations names what is in progress, from the state files.
func operations(gitDir string, state []string) (all []string) {
	has := func(prefix string) bool {
		return slices.ContainsFunc(state, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	rebase, am := has("rebase-merge/"), has("rebase-apply/applying")
	rebase = rebase || has("rebase-apply/") && !am
	picked := firstWord(filepath.Join(gitDir, "sequencer", "todo"))
	for _, op := range []struct {
		name string
		on   bool
	}{
		{"merge", has("MERGE_HEAD") && !rebase},
		{"rebase", rebase},
		{"am", am},
		{"cherry-pick", !rebase && (has("CHERRY_PICK_HEAD") || picked == "pick")},
		{"revert", !rebase && (has("REVERT_HEAD") || picked == "revert")},
		{"bisect", has("BISECT_LOG") || has("BISECT_START")},
	} {
		if op.on {
			all = append(all, op.name)
		}
	}
	return all
}

func firstWord(path string) string {
	text, _ := os.ReadFile(path)
	word, _, _ := bytes.Cut(text, []byte{' '})
	return string(word)
}

// objectName is what may name an object; git abbreviates in the lists of rebase and cherry-pick.
var objectName = regexp.MustCompile(`\b[0-9a-f]{7,64}\b`)

// maxStateText is how much of a state file is searched for names of objects.
const maxStateText = 8 << 20

// named returns the words of the state files that may name objects: the commits of an operation are on no reference
// (a stash that rebase made, what is yet to be picked), and gc would take them.
func named(gitDir string, state []string) (words []string) {
	seen := map[string]bool{}
	for _, name := range state {
		if name == "index" || strings.HasPrefix(name, "sharedindex.") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(gitDir, name))
		if err != nil || len(text) > maxStateText {
			continue
		}
		for _, word := range objectName.FindAll(text, -1) {
			if w := string(word); !seen[w] && (len(w) >= 40 || !strings.HasPrefix(name, "logs/")) {
				seen[w], words = true, append(words, w)
			}
		}
	}
	return words
}
