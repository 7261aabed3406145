package worktree

import "testing"

func TestAdd_IsRepeatedAndTakenBack(t *testing.T) {
	r := newTree(t, "two words ünï-日本")
	r.write("a/b", "text\n")
	r.commit()
	p := r.plan("one")
	must(t, p.add(t))
	p.whole(t)
	must(t, p.add(t))
	p.whole(t)
	must(t, p.undo(t))
	p.gone(t, false)
	must(t, p.undo(t))
	must(t, p.add(t))
	p.whole(t)
	must(t, p.remove(t))
	p.gone(t, true)
	must(t, p.remove(t))
}
