package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// spoilt are trees of which something is not as it should be. Remove touches nothing of them.
var spoilt = map[string]struct {
	spoil func(t *testing.T, r tree, p *Tree)
	want  error
}{
	"another record":    {func(_ *testing.T, _ tree, p *Tree) { p.ID = "w-other" }, ErrNotOurs},
	"another home":      {func(_ *testing.T, _ tree, p *Tree) { p.Home = "home2" }, ErrNotOurs},
	"no record":         {func(_ *testing.T, _ tree, p *Tree) { p.ID = "../x" }, ErrNotOurs},
	"outside":           {func(_ *testing.T, r tree, p *Tree) { p.Dir = r.dir }, ErrNotOurs},
	"the main worktree": {func(_ *testing.T, r tree, p *Tree) { p.Root, p.Dir = filepath.Dir(r.dir), r.dir }, ErrNotOurs},
	"the root":          {func(_ *testing.T, _ tree, p *Tree) { p.Dir = p.Root }, ErrNotOurs},
	"deeper":            {func(_ *testing.T, _ tree, p *Tree) { p.Root = filepath.Dir(p.Root) }, ErrNotOurs},
	"a dot-name":        {func(_ *testing.T, _ tree, p *Tree) { p.Dir = filepath.Join(p.Root, ".x") }, ErrNotOurs},
	"no marker":         {func(t *testing.T, _ tree, p *Tree) { must(t, os.Remove(p.admins()+"/pintle")) }, ErrNotOurs},
	"torn marker":       {func(t *testing.T, _ tree, p *Tree) { put(t, p.admins()+"/pintle", "{") }, ErrNotOurs},
	"no .git":           {func(t *testing.T, _ tree, p *Tree) { must(t, os.Remove(p.Dir+"/.git")) }, ErrNotOurs},
	"a repository of its own": {func(t *testing.T, r tree, p *Tree) {
		must(t, os.Remove(p.Dir+"/.git"))
		r.at(p.Dir).git("init", "-q")
	}, ErrNotOurs},
	"pruned": {func(t *testing.T, _ tree, p *Tree) { must(t, os.RemoveAll(p.admins())) }, ErrNotOurs},
	"moved": {func(_ *testing.T, r tree, p *Tree) {
		r.git("worktree", "move", p.Dir, p.Dir+"-moved")
	}, ErrNotOurs},
	"a link instead of it": {func(t *testing.T, _ tree, p *Tree) {
		must(t, os.Rename(p.Dir, p.Dir+"-real"))
		must(t, os.Symlink(p.Dir+"-real", p.Dir))
	}, ErrNotOurs},
	"a link in the way": {func(t *testing.T, _ tree, p *Tree) {
		must(t, os.Rename(p.Root, p.Root+"-real"))
		must(t, os.Symlink(p.Root+"-real", p.Root))
	}, ErrNotOurs},
	"another repository": {func(t *testing.T, _ tree, p *Tree) { p.Repository = committed(t, "other").dir + "/.git" }, ErrNotOurs},
	"locked": {func(_ *testing.T, r tree, p *Tree) {
		r.git("worktree", "lock", "--reason", "on a disk", p.Dir)
	}, ErrLocked},
}

func TestX22_X23_WhatIsNotProvenIsNotRemoved(t *testing.T) {
	for name, test := range spoilt {
		t.Run(name, func(t *testing.T) {
			r := committed(t, "r")
			p := r.plan("one")
			must(t, p.add(t))
			spoiled := p
			test.spoil(t, r, &spoiled)
			before := contents(t, filepath.Dir(p.Root))
			err := spoiled.remove(t)
			want(t, err, test.want)
			if test.want == ErrLocked && !strings.Contains(err.Error(), "on a disk") {
				t.Errorf("does not say why: %v", err)
			}
			if after := contents(t, filepath.Dir(p.Root)); len(after) != len(before) {
				t.Errorf("files before %v, after %v", before, after)
			}
			r.git("status")
		})
	}
}

func TestX22_UndoMindsTheLockToo(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	must(t, p.add(t))
	r.git("worktree", "lock", p.Dir)
	want(t, p.undo(t), ErrLocked)
	r.git("worktree", "unlock", p.Dir)
	must(t, p.undo(t))
	p.gone(t, false)
}

func TestX23_NoLinkIsFollowed(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	must(t, p.add(t))
	outside := t.TempDir()
	put(t, outside+"/dir/file", "precious")
	for i, target := range []string{outside, outside + "/dir/file", r.dir, "/nowhere", "..", "."} {
		must(t, os.Symlink(target, filepath.Join(p.Dir, strings.Repeat("l", i+1))))
	}
	must(t, p.remove(t))
	p.gone(t, true)
	if text, err := os.ReadFile(outside + "/dir/file"); err != nil || string(text) != "precious" {
		t.Errorf("%q, error %v", text, err)
	}
	r.git("status")
}

func TestCase24_RemovedByHand(t *testing.T) {
	for name, remove := range map[string]func(p Tree) error{
		"the directory":         func(p Tree) error { return os.RemoveAll(p.Dir) },
		"the managed directory": func(p Tree) error { return os.RemoveAll(p.Root) },
		"and pruned": func(p Tree) error {
			tree{t, p.Repository}.git("worktree", "remove", "--force", p.Dir)
			return nil
		},
	} {
		for _, effect := range []string{"remove", "undo", "add"} {
			t.Run(name+", "+effect, func(t *testing.T) {
				r := committed(t, "r")
				p := r.plan("one")
				must(t, p.add(t))
				must(t, remove(p))
				switch effect {
				case "remove":
					must(t, p.remove(t))
					p.gone(t, true)
				case "undo":
					must(t, p.undo(t))
					p.gone(t, false)
				case "add":
					must(t, p.add(t))
					p.whole(t)
				}
			})
		}
	}
}

func TestX22_Case24_RemovedByHandButLocked(t *testing.T) {
	r := committed(t, "r")
	p := r.plan("one")
	must(t, p.add(t))
	r.git("worktree", "lock", p.Dir) // as one does where a disk may be missing
	must(t, os.Rename(p.Dir, p.Dir+"-unmounted"))
	want(t, p.remove(t), ErrLocked)
}

// Go's module cache makes such directories. Root may delete in them anyway, so root runs this as somebody else.
func TestX21_DirectoriesThatForbidDeleting(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	dir := t.TempDir()
	put(t, dir+"/grave/a/b/c/file", "x")
	put(t, dir+"/outside/file", "x")
	must(t, os.Symlink(dir+"/outside", dir+"/grave/a/b/link"))
	for _, path := range []string{"/grave/a/b/c", "/grave/a/b", "/grave/a", "/outside"} {
		must(t, os.Chmod(dir+path, 0o500))
		defer func() { _ = os.Chmod(dir+path, 0o700) }()
	}
	must(t, os.Chmod(dir+"/grave", 0))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	must(t, erase(root, "grave"))
	if info, err := os.Stat(dir + "/outside"); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("outside: %v, error %v", info, err)
	}
	must(t, erase(root, "grave")) // what is not there is not missed
}

func asNobody(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "nobody") // its parents can be entered by all
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chown(dir, 65534, 65534))
	binary, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(dir+"/test", binary, 0o755))
	must(t, os.Chmod(dir+"/test", 0o755))
	cmd := exec.Command(dir+"/test", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestX10_ACancelledAddIsTakenBack(t *testing.T) {
	r := committed(t, "r")
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	r.git("config", "filter.slow.smudge", "read line <'"+fifo+"'; cat")
	r.write(".gitattributes", "slow filter=slow\n")
	r.write("slow", "x\n")
	r.commit()
	p := r.plan("one")
	ctx, cancel := context.WithCancel(t.Context())
	h := lock(t, p.Repository)
	ended := make(chan error)
	go func() { ended <- h.Add(ctx, p) }()
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0) // the checkout has come to the filter
	must(t, err)
	cancel()
	end.Close()
	want(t, <-ended, context.Canceled)
	must(t, h.Undo(t.Context(), p))
	p.gone(t, false)
}
