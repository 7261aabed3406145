package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Salvage keeps what the repository still knows of a worktree whose directory was removed by hand (case 24), before
// Remove has it forget that too: the commit of a detached HEAD, and what was staged. They are under ref then, as a commit;
// with nothing that git would not find again there is none. Files that were in the directory are gone with it.
func (h *Hold) Salvage(ctx context.Context, t Tree, ref string) (k Kept, err error) {
	err = h.visit(t, func(root *os.Root, found []admin) error {
		if there, err := directory(root, t.name()); there || err != nil {
			return err
		}
		for _, a := range found {
			if a.marked && a.ours(t) && a.tree == t.Dir {
				k, err = h.salvage(ctx, a, ref)
				return err
			}
		}
		return nil
	})
	if err != nil {
		return k, fmt.Errorf("keep what is left of %s: %w", t.Dir, err)
	}
	return k, nil
}

func (h *Hold) salvage(ctx context.Context, a admin, ref string) (Kept, error) {
	k, err := headOf(a)
	if err != nil {
		return k, err
	}
	name, email, _ := strings.Cut(strings.TrimSuffix(identity, ">"), " <")
	at := func(args ...string) (string, error) {
		out, err := h.run(ctx, h.repository, []string{"--git-dir=" + a.path}, args)
		return strings.TrimSpace(string(out)), err
	}
	k.Head, err = at("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if refused(err, 1) {
		return k, nil // it had no commit
	}
	if err != nil {
		return k, err // else what only it has would go with it
	}
	commit, staged := k.Head, false
	if tree, err := at("write-tree"); err == nil { // with conflicts there is none
		if was, err := at("rev-parse", "HEAD^{tree}"); err == nil && tree != was {
			commit, err = at("-c", "user.name="+name, "-c", "user.email="+email, "commit-tree", tree, "-p", k.Head, "-m", "pintle: what was staged")
			if err != nil {
				return k, err
			}
			staged = true
		}
	}
	if k.Branch != "" && !staged {
		return k, nil
	}
	_, err = at("update-ref", ref, commit)
	k.Salvaged = ref
	return k, err
}

// headOf reads the branch that is checked out, from the file: git would say where it leads.
func headOf(a admin) (k Kept, err error) {
	text, err := os.ReadFile(filepath.Join(a.path, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if ref, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: "+heads); ok {
		k.Branch = ref
	}
	return k, err
}
