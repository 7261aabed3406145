package worktree

import "errors"

// Tree is a worktree that pintle makes, as it was planned: all of it is on record before anything of it is made, so
// that a death at any instant leaves nothing that nobody accounts for. Paths are absolute.
type Tree struct {
	ID         string // of its record; the marker in its git directory says it (X23)
	Home       string // id of the state directory that has the record: the marker says that too
	Root       string // the managed directory that it is in; nothing outside is ever deleted
	Dir        string // the working tree: Root/<slug>
	Repository string // the common git directory
	Branch     string // without refs/heads/; "" leaves HEAD detached
	Own        bool   // the branch is made for it, at Commit
	Commit     string // the full name of what is checked out
}

// Errors that callers tell apart.
var (
	// ErrTaken is returned by Add: the branch, or the directory, is there and is another's. Plan another name.
	ErrTaken = errors.New("the name is taken")
	// ErrElsewhere is returned by Add for a branch that another worktree has checked out (X28); the message says where.
	ErrElsewhere = errors.New("the branch is checked out elsewhere")
	// ErrNotOurs is returned for a directory that is not the worktree of the record (X23): nothing is touched.
	ErrNotOurs = errors.New("it is not the worktree of the record")
	// ErrLocked is returned by Remove while `git worktree lock` holds (X22); the message has the reason that was given.
	ErrLocked = errors.New("the worktree is locked")
	// ErrNoCommit is returned by Resolve in a repository before its first commit.
	ErrNoCommit = errors.New("the repository has no commit yet")
)

// Kept says where what git would not find again was kept, and what of it (X21). It is recorded before the directory goes.
type Kept struct {
	Ref      string   `json:"ref,omitempty"`     // refs/pintle/archive/<workspace>; "" when there was nothing to keep
	Commit   string   `json:"commit,omitempty"`  // what Ref named when it was made
	Tar      string   `json:"tar,omitempty"`     // absolute: files that never go into git; "" when there were none
	Head     string   `json:"head,omitempty"`    // the commit of HEAD; "" before the first one
	Branch   string   `json:"branch,omitempty"`  // "" when HEAD was detached
	State    []string `json:"state,omitempty"`   // operations in progress: merge, rebase, cherry-pick, revert, bisect, am
	Changed  int      `json:"changed,omitempty"` // files kept under Ref: changed, staged, deleted or untracked
	Files    []string `json:"files,omitempty"`   // ignored files that are in the tar, at most MaxListed
	Ignored  []string `json:"ignored,omitempty"` // ignored files and directories/ that are not kept, at most MaxListed
	IgnoredN int      `json:"ignoredCount,omitempty"`
	Nested   []string `json:"nested,omitempty"`   // submodules and repositories/ inside, which are in the tar, at most MaxListed
	Salvaged string   `json:"salvaged,omitempty"` // the reference under which Salvage kept what it could
	Skipped  []string `json:"skipped,omitempty"`  // pipes, sockets and devices, which cannot be kept, at most MaxListed
}

// MaxListed bounds lists of names in reports.
const MaxListed = 200
