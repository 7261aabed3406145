package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/worktree"
)

// TreeOrder is how an execution's worktree is to be made, as the verb found out when the order was given: what the words
// of the order meant then is what they mean over any crash.
type TreeOrder struct {
	Repository string `json:"repository"`        // the common git directory
	Source     string `json:"source,omitempty"`  // root of the caller's checkout, from which Copy is taken; "" in a bare one
	Sub        string `json:"sub,omitempty"`     // of the caller's directory, below that root
	Commit     string `json:"commit"`            // what is checked out
	Branch     string `json:"branch,omitempty"`  // the name that is wanted
	Own        bool   `json:"own,omitempty"`     // it is made at Commit; else it is there
	Reuse      string `json:"reuse,omitempty"`   // reuse or fail: what a worktree of pintle's on that branch means
	Umask      int    `json:"umask"`             // the caller's, under which its files are made
	Program    string `json:"program,omitempty"` // a relative path to be resolved in the worktree
	Recipe
}

// Check refuses an order that no verb of ours would give: it may come over the socket.
func (o TreeOrder) Check() error {
	switch {
	case !filepath.IsAbs(o.Repository) || o.Source != "" && !filepath.IsAbs(o.Source):
		return errors.New("repository and source are absolute paths")
	case o.Sub != "" && !filepath.IsLocal(o.Sub):
		return fmt.Errorf("%q is not below the root of the worktree", o.Sub)
	case len(o.Commit) < 40 || strings.Trim(o.Commit, "0123456789abcdef") != "":
		return fmt.Errorf("%q is no full name of a commit", o.Commit)
	case !o.Own && o.Branch == "":
		return errors.New("which branch is not said")
	}
	return nil
}

// Recipe is what the repository's .pintle.toml says, at the base commit.
type Recipe struct {
	Setup          []string      `json:"setup,omitempty"`
	SetupTimeout   time.Duration `json:"setupTimeout,omitempty"`
	Cleanup        []string      `json:"cleanup,omitempty"`
	CleanupTimeout time.Duration `json:"cleanupTimeout,omitempty"`
	Copy           []string      `json:"copy,omitempty"`
	Keep           []string      `json:"keep,omitempty"`
}

// Chore is what pintle runs for itself in a workspace.
type Chore struct {
	Kind      string `json:"kind"` // setup or cleanup
	Workspace string `json:"workspace"`
	For       string `json:"for,omitempty"` // folder of the execution that waits for it
}

// Chores is the controller of what pintle gives itself to do.
const Chores = "pintle"

// The states of a worktree. From each only the next follows, but for ready, which an archive that is called off and a
// restore come back to.
const (
	TreePlanned = "planned" // its names are fixed; it may be half made
	TreeMade    = "made"    // it is there, and nothing has run in it but set-up
	TreeReady   = "ready"   // work may have been done in it
	TreeLeaving = "leaving" // nothing may refer to it any more; it goes
	TreeGone    = "gone"    // its directory is away
	TreeComing  = "coming"  // it is brought back
)

// Worktree is worktrees/<id>.json: a worktree that pintle made.
type Worktree struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	State      string    `json:"state"`
	Root       string    `json:"root"`
	Dir        string    `json:"dir"`
	Repository string    `json:"repository"`
	Branch     string    `json:"branch,omitempty"`
	Own        bool      `json:"own,omitempty"`
	Commit     string    `json:"commit"`
	CreatedAt  time.Time `json:"createdAt"`
	// Workspaces are those that refer to it and are not archived (X20).
	Workspaces []string `json:"workspaces,omitempty"`
	Recipe     Recipe   `json:"recipe,omitzero"`
	Umask      int      `json:"umask"` // under which git makes files in it, and in its repository
	// Environment is what of the environment of who made it may be stored: clean-up gets that.
	Environment Environment `json:"environment,omitzero"`
	// Kept is where its work was kept, and As the workspace under whose name: the first of them that was archived.
	Kept *worktree.Kept `json:"kept,omitempty"`
	As   string         `json:"as,omitempty"`
	// Past is where its work was kept before it was restored. It stays there until gc removes it.
	Past []PastKept `json:"past,omitempty"`
	// Expired says that gc has removed what was kept, or is about to.
	Expired bool `json:"expired,omitempty"`
	// Kepts counts how often work was kept: each time under a name of its own.
	Kepts int `json:"kepts,omitempty"`
}

// PastKept is where work was kept that was restored since.
type PastKept struct {
	worktree.Kept
	RestoredAt time.Time `json:"restoredAt"`
}

// Tree is what package worktree is told of it.
func (t Worktree) Tree(home string) worktree.Tree {
	return worktree.Tree{
		ID: t.ID, Home: home, Root: t.Root, Dir: t.Dir, Repository: t.Repository, Branch: t.Branch, Own: t.Own, Commit: t.Commit,
	}
}

// Source is what a worktree is brought back from. Of one that was removed by hand only what it was made from is known.
func (t Worktree) Source() worktree.Kept {
	switch {
	case t.Kept != nil && t.Expired:
		return worktree.Kept{Head: t.Kept.Head, Branch: t.Kept.Branch}
	case t.Kept != nil:
		return *t.Kept
	}
	return worktree.Kept{Head: t.Commit, Branch: t.Branch}
}

// Errand is pending/<workspace>.json: what was begun with a workspace and is not done.
type Errand struct {
	Version   int       `json:"version"`
	Workspace string    `json:"workspace"`
	Session   string    `json:"session,omitempty"`
	Action    string    `json:"action"`           // create, archive, restore, or remove: what of an archive is left to do
	Folder    string    `json:"folder,omitempty"` // the execution that was named
	Refuse    bool      `json:"refuseDirty,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	At        time.Time `json:"at"`
	// Cwd and Tree are what is created, and Failed is why it could not be: then what there is of it is taken back.
	Cwd    string     `json:"cwd,omitempty"`
	Tree   *TreeOrder `json:"tree,omitempty"`
	Failed *api.Cause `json:"failed,omitempty"`
	// Stuck is why a directory could not be removed yet.
	Stuck *api.Stuck `json:"stuck,omitempty"`
}

// WorktreeFile is the path of a worktree's record.
func WorktreeFile(id string) string { return "worktrees/" + id + ".json" }

// ErrandFile is the path of what is pending with a workspace.
func ErrandFile(workspace string) string { return "pending/" + workspace + ".json" }

// KeptFile is the path of the files of a workspace that never go into git.
func KeptFile(name string) string { return "kept/" + name + ".tar" }

// IDs are those of the records in a directory that has one file each: workspaces, worktrees, pending. A directory that is
// read while a record in it is replaced may list it twice; here each is once.
func IDs(d *state.Dir, dir string) (ids []string) {
	entries, _ := os.ReadDir(d.Path(dir)) // where there is none, there are none
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), ".json"); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
