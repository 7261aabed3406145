package supervisor

import (
	"errors"
	"io/fs"
	"os"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/worktree"
)

// writeText puts the text beside the record; no file is an empty one.
func (r *run) writeText(text []byte) error {
	path := record.TextFile(r.folder)
	if len(text) > 0 {
		return r.s.dir.WriteSide(path, text)
	}
	if err := os.Remove(r.s.dir.Path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// changes names what the run left changed in its repository.
func (r *run) changes() {
	if r.st.Base == "" {
		return
	}
	r.s.forks.RLock()
	defer r.s.forks.RUnlock()
	repo, err := worktree.Probe(r.s.ctx, r.st.Cwd)
	if err != nil {
		return
	}
	r.st.Head, r.st.Branch = repo.Head, repo.Branch
	if c, err := worktree.Changed(r.s.ctx, r.st.Cwd, r.st.Base); err == nil {
		r.st.Changes = &api.Changes{Files: c.Files, Insertions: c.Insertions, Deletions: c.Deletions}
	}
}
