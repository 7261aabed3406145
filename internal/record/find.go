package record

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Folders returns the directories of all executions, sorted; none if there is no state yet.
func Folders(d *state.Dir) ([]string, error) {
	f, err := os.Open(d.Path("executions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Find returns the folder of the execution that the local user calls id: a key, exactly, or a generated id
// or its unique prefix of 4 digits or more. Of the executions of a session or workspace the newest is meant.
// *api.Error: CodeNotFound, CodeAmbiguous with the candidates.
func Find(d *state.Dir, id string) (string, error) {
	folder, err := Locate(d, FolderOf(id))
	switch {
	case err == nil:
		return folder, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("look up %s: %w", id, err)
	case session.Generated(id):
		return findPrefix(d, id)
	}
	return "", notFound(id)
}

func notFound(id string) error {
	return api.E(api.CodeNotFound, "no run is called %s", Quote(id)).WithNext("pintle ps -a")
}

func findPrefix(d *state.Dir, prefix string) (string, error) {
	folders, err := Folders(d)
	if err != nil {
		return "", err
	}
	found := newest(d, prefix, folders)
	if len(found) == 0 { // those are many, and seldom meant
		found = newest(d, prefix, archivedFolders(d))
	}
	id, err := only(prefix, slices.Collect(maps.Keys(found)))
	return found[id].Folder, err
}

// newest are the executions that have an id which the prefix may mean: of each id the newest one.
func newest(d *state.Dir, prefix string, folders []string) map[string]Listed {
	found := map[string]Listed{}
	for _, folder := range folders {
		e, _ := View(d, folder) // its ids, also of what cannot be read whole
		if e.Controller == Chores {
			continue // its workspace is its run's
		}
		for _, id := range []string{e.ID, e.Session, e.Workspace} {
			was, twice := found[id]
			if strings.HasPrefix(id, prefix) && session.Generated(id) && (!twice || e.CreatedAt.After(was.Execution.CreatedAt)) {
				found[id] = Listed{Folder: folder, Execution: e}
			}
		}
	}
	return found
}

// archivedFolders are those that were archived and whose keys were not freed.
func archivedFolders(d *state.Dir) (folders []string) {
	entries, _ := os.ReadDir(d.Path(archivedDir))
	for _, e := range entries {
		if _, removed := removedAt(e.Name()); !removed {
			folders = append(folders, inArchive(e.Name()))
		}
	}
	return folders
}

// only is the one of the ids that a prefix may mean.
func only(prefix string, ids []string) (string, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids) // a directory that is read while a record is replaced may list it twice
	switch len(ids) {
	case 0:
		return "", notFound(prefix)
	case 1:
		return ids[0], nil
	}
	return "", api.E(api.CodeAmbiguous, "%s may be %s", prefix, strings.Join(ids, ", "))
}

// Listed is one row of a list: an execution, or why it cannot be read.
type Listed struct {
	Folder    string
	Execution api.Execution
	Err       error
}

// List returns the views of all executions, the oldest first. An unreadable one does not hide the others.
func List(d *state.Dir) ([]Listed, error) {
	folders, err := Folders(d)
	if err != nil {
		return nil, err
	}
	rows := make([]Listed, len(folders))
	var wg sync.WaitGroup
	const workers = 4 // reading is as much system calls as decoding
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(folders); i += workers {
				e, err := View(d, folders[i])
				rows[i] = Listed{folders[i], e, err}
			}
		})
	}
	wg.Wait()
	rows = slices.DeleteFunc(rows, func(r Listed) bool {
		return errors.Is(r.Err, fs.ErrNotExist) || r.Execution.Controller == Chores
	})
	slices.SortStableFunc(rows, func(a, b Listed) int { return a.Execution.CreatedAt.Compare(b.Execution.CreatedAt) })
	return rows, nil
}

// FindWorkspace returns the workspace that id names: its own id or a unique prefix, or what Find takes, for that run's.
func FindWorkspace(d *state.Dir, id string) (Workspace, error) {
	if strings.HasPrefix(id, "w-") && session.Generated(id) {
		found, err := workspaceID(d, id)
		if err != nil {
			return Workspace{}, err
		}
		return state.Read[Workspace](d, WorkspaceFile(found))
	}
	folder, err := Find(d, id)
	if api.CodeOf(err) == api.CodeNotFound {
		err = api.E(api.CodeNotFound, "no workspace and no run is called %s", Quote(id)).WithNext("pintle workspace ls -a")
	}
	if err != nil {
		return Workspace{}, err
	}
	e, err := View(d, folder)
	if err != nil {
		return Workspace{}, err
	}
	if e.ResultExpired {
		return Workspace{}, api.E(api.CodeNotFound, "the record of %s has expired, and its workspace with it", e.ID)
	}
	w, err := state.Read[Workspace](d, WorkspaceFile(e.Workspace))
	if errors.Is(err, fs.ErrNotExist) {
		return w, api.E(api.CodeNotFound, "%s has no workspace: it has not begun, or its worktree could not be had", e.ID).WithNext("pintle show " + Quote(e.ID))
	}
	return w, err
}

func workspaceID(d *state.Dir, prefix string) (string, error) {
	ids := slices.DeleteFunc(IDs(d, "workspaces"), func(id string) bool {
		return !strings.HasPrefix(id, prefix) || !session.Generated(id)
	})
	if len(ids) == 0 {
		return "", api.E(api.CodeNotFound, "no workspace is called %s", Quote(prefix)).WithNext("pintle workspace ls -a")
	}
	return only(prefix, ids)
}
