package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Unsaved is what git would not find again if a worktree went (X22).
type Unsaved struct {
	Changed   Names
	Staged    Names
	Untracked Names    // repositories inside have a slash at the end
	Nested    Names    // submodules with commits that no remote has
	Commits   Names    // reachable from HEAD and from no reference that stays
	Detached  string   // the commit of a HEAD that is on no branch
	State     []string // operations in progress
}

// Names is a list that is cut at MaxListed, and how many there are.
type Names struct {
	N    int
	List []string
}

func namesOf(all []string) Names { return Names{len(all), atMost(all)} }

// FindUnsaved asks git what a worktree has that git would not find again. It changes nothing.
func FindUnsaved(ctx context.Context, dir string) (Unsaved, error) {
	s, err := look(ctx, dir, "")
	if err != nil {
		return Unsaved{}, err
	}
	u, err := s.unsaved(ctx)
	if err != nil {
		return Unsaved{}, fmt.Errorf("look for what is unsaved in %s: %w", dir, err)
	}
	return u, nil
}

func (s *survey) unsaved(ctx context.Context) (u Unsaved, err error) {
	u.State, u.Staged = operations(s.repo.GitDir, s.state), namesOf(pathsOf(s.staged))
	untracked, err := s.allUntracked(ctx)
	if err != nil {
		return u, err
	}
	u.Untracked = namesOf(untracked)
	if u.Changed, err = s.reallyChanged(ctx); err != nil {
		return u, err
	}
	if u.Nested, err = s.ahead(ctx); err != nil {
		return u, err
	}
	if s.repo.Detached {
		u.Detached = s.repo.Head
		u.Commits, err = s.unreachable(ctx)
	}
	return u, err
}

func pathsOf(changes []change) (paths []string) {
	for _, c := range changes {
		paths = append(paths, c.path)
	}
	return paths
}

// reallyChanged compares contents too, unlike askChanged: who refuses wants to be right. Submodules count if anything
// in them does.
func (s *survey) reallyChanged(ctx context.Context) (Names, error) {
	if len(s.changed) == 0 && !slices.ContainsFunc(s.entries, func(e entry) bool { return e.mode == gitlink }) {
		return Names{}, nil
	}
	changed, err := s.names(ctx, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "--no-relative", "--ignore-submodules=none")
	slices.Sort(changed)
	return namesOf(slices.Compact(changed)), err // an unmerged path is named twice
}

// ahead looks into the submodules that are checked out, whose git directories go with the worktree.
func (s *survey) ahead(ctx context.Context) (Names, error) {
	var found []string
	for _, name := range s.nested(nil) {
		out, err := git(ctx, filepath.Join(s.repo.TopLevel, name), "rev-list", "-1", "HEAD", "--branches", "--tags", "--not", "--remotes", "--")
		if err != nil {
			return Names{}, err
		}
		if len(out) > 0 {
			found = append(found, name)
		}
	}
	return namesOf(found), nil
}

// unreachable lists the commits that only this worktree's HEAD holds. References of this worktree alone go with it;
// pintle's are no place where anybody looks.
func (s *survey) unreachable(ctx context.Context) (Names, error) {
	out, err := git(ctx, s.repo.TopLevel, "log", "--format=%h %s", "--no-show-signature", "--no-color", "HEAD", "--not",
		"--exclude=refs/bisect/*", "--exclude=refs/worktree/*", "--exclude=refs/rewritten/*", "--exclude=refs/pintle/*", "--glob=refs/*", "--")
	return namesOf(strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })), err
}

// Empty reports whether git would find everything again.
func (u Unsaved) Empty() bool { return len(u.Lines()) == 0 }

// Lines says for people what there is, a line each.
func (u Unsaved) Lines() (lines []string) {
	for _, op := range u.State {
		lines = append(lines, "in progress: "+op)
	}
	if u.Detached != "" {
		lines = append(lines, "HEAD is detached at "+u.Detached)
	}
	for _, group := range []struct {
		what string
		Names
	}{
		{"commit on no branch", u.Commits}, {"staged", u.Staged}, {"changed", u.Changed}, {"untracked", u.Untracked},
		{"submodule with commits of its own", u.Nested},
	} {
		for _, name := range group.List {
			lines = append(lines, group.what+": "+printable(name))
		}
		if more := group.N - len(group.List); more > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d more", group.what, more))
		}
	}
	return lines
}

// printable quotes a name that would not be one line, or would not be read as it is.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
