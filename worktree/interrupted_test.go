package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// step brings the disk one step further, as Add or Remove would before it is killed.
type step struct {
	name string
	run  func(*testing.T, *Hold, Tree)
}

// admins is where git will put what it knows of the tree.
func (p Tree) admins() string { return filepath.Join(p.Repository, "worktrees", p.name()) }

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// adding are all states in which Add can be killed, each on top of the one before. git's own are as strace shows them.
var adding = []step{
	{"nothing", func(*testing.T, *Hold, Tree) {}},
	{"reserved", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Mkdir(p.Dir, 0o700)) }},
	{"branch made", func(t *testing.T, h *Hold, p Tree) { must(t, h.plant(t.Context(), p)) }},
	{"locked by git", func(t *testing.T, _ *Hold, p Tree) { put(t, p.admins()+"/locked", p.making()) }},
	{"gitdir opened", func(t *testing.T, _ *Hold, p Tree) { put(t, p.admins()+"/gitdir", "") }},
	{"gitdir written", func(t *testing.T, _ *Hold, p Tree) { put(t, p.admins()+"/gitdir", p.Dir+"/.git\n") }},
	{".git opened", func(t *testing.T, _ *Hold, p Tree) { put(t, p.Dir+"/.git", "") }},
	{".git written", func(t *testing.T, _ *Hold, p Tree) { put(t, p.Dir+"/.git", "gitdir: "+p.admins()+"\n") }},
	{"linked", func(t *testing.T, h *Hold, p Tree) {
		must(t, os.RemoveAll(p.admins()))
		must(t, os.Remove(p.Dir+"/.git"))
		must(t, h.link(t.Context(), p))
	}},
	{"half checked out", func(t *testing.T, _ *Hold, p Tree) {
		put(t, p.admins()+"/index.lock", "")
		put(t, p.Dir+"/a/b", "te")
	}},
	{"checked out", func(t *testing.T, h *Hold, p Tree) {
		must(t, os.Remove(p.admins()+"/index.lock"))
		_, err := h.run(t.Context(), p.Dir, nil, []string{"reset", "--quiet", "--hard"})
		must(t, err)
	}},
	{"marker torn", func(t *testing.T, _ *Hold, p Tree) { put(t, p.admins()+"/pintle", `{"home":"ho`) }},
	{"marked", func(t *testing.T, _ *Hold, p Tree) { must(t, p.marker().write(p.admins())) }},
	{"complete", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Remove(p.admins()+"/locked")) }},
}

// removing are all states in which Remove can be killed.
var removing = []step{
	{"nothing", func(*testing.T, *Hold, Tree) {}},
	{"unknown to git", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Rename(p.admins(), p.buried())) }},
	{"out of the way", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Rename(p.Dir, filepath.Join(p.Root, p.grave()))) }},
	{"half deleted", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Remove(filepath.Join(p.Root, p.grave(), ".git"))) }},
	{"deleted", func(t *testing.T, _ *Hold, p Tree) { must(t, os.RemoveAll(filepath.Join(p.Root, p.grave()))) }},
	{"proof half deleted", func(t *testing.T, _ *Hold, p Tree) { must(t, os.Remove(p.buried()+"/pintle")) }},
	{"all deleted", func(t *testing.T, _ *Hold, p Tree) { must(t, os.RemoveAll(p.buried())) }},
}

// killed calls then in each state, in a repository of its own; prune says whether the user prunes before it.
func killed(t *testing.T, steps []step, before func(*testing.T, Tree), then func(*testing.T, Tree)) {
	t.Helper()
	for i, last := range steps {
		for _, prune := range []bool{false, true} {
			name := last.name
			if prune {
				name += ", pruned"
			}
			t.Run(name, func(t *testing.T) {
				r := newTree(t, "r")
				r.write("a/b", "text\n")
				r.commit()
				p := r.plan("one")
				before(t, p)
				h := lock(t, p.Repository)
				for _, step := range steps[:i+1] {
					step.run(t, h, p)
				}
				h.Release()
				if prune {
					r.git("worktree", "prune")
				}
				then(t, p)
			})
		}
	}
}

func TestX8_AnAddThatWasKilledIsMadeAnew(t *testing.T) {
	killed(t, adding, func(*testing.T, Tree) {}, func(t *testing.T, p Tree) {
		must(t, p.add(t))
		p.whole(t)
		must(t, p.undo(t))
		p.gone(t, false)
	})
}

func TestX7_AnAddThatWasKilledIsTakenBack(t *testing.T) {
	killed(t, adding, func(*testing.T, Tree) {}, func(t *testing.T, p Tree) {
		must(t, p.undo(t))
		p.gone(t, false)
		must(t, p.undo(t))
	})
}

func TestX23_ARemoveThatWasKilledIsFinished(t *testing.T) {
	added := func(t *testing.T, p Tree) { must(t, p.add(t)) }
	killed(t, removing, added, func(t *testing.T, p Tree) {
		must(t, p.remove(t))
		p.gone(t, true)
		must(t, p.remove(t))
	})
}

func TestX23_ARemoveThatWasKilledIsFinishedByUndo(t *testing.T) {
	added := func(t *testing.T, p Tree) { must(t, p.add(t)) }
	killed(t, removing, added, func(t *testing.T, p Tree) {
		must(t, p.undo(t))
		p.gone(t, false)
	})
}

func TestX21_ARemoveThatWasKilledIsFinishedByTheNextAdd(t *testing.T) {
	added := func(t *testing.T, p Tree) { must(t, p.add(t)) }
	killed(t, removing, added, func(t *testing.T, p Tree) {
		must(t, p.add(t))
		p.whole(t)
		must(t, p.undo(t))
		p.gone(t, false)
	})
}
