package worktree

import (
	"os"
	"testing"
)

func TestCase24_WhatIsLeftOfARemovedDirectoryIsKept(t *testing.T) {
	for name, act := range map[string]func(at tree){
		"detached": func(at tree) {
			at.git("checkout", "-q", "--detach")
			at.write("new", "committed")
			at.git("add", ".")
			at.git("commit", "-qm", "on no branch")
		},
		"staged": func(at tree) {
			at.write("new", "staged")
			at.git("add", ".")
		},
		"nothing": func(at tree) { at.write("new", "untracked") },
	} {
		t.Run(name, func(t *testing.T) {
			repo := committed(t, "r")
			plan := repo.plan("gone")
			hold := lock(t, plan.Repository)
			if err := hold.Add(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			act(repo.at(plan.Dir))
			if err := os.RemoveAll(plan.Dir); err != nil {
				t.Fatal(err)
			}
			k, err := hold.Salvage(t.Context(), plan, "refs/pintle/archive/w-1")
			if err != nil {
				t.Fatal(err)
			}
			if want := name != "nothing"; (k.Salvaged != "") != want {
				t.Fatalf("%+v", k)
			}
			if err := hold.Remove(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			if k.Salvaged != "" {
				if got := repo.git("show", k.Salvaged+":new"); got == "" {
					t.Error("what was committed or staged is not in it")
				}
			}
			if k.Head == "" || (k.Branch == "") != (name == "detached") {
				t.Errorf("%+v", k)
			}
		})
	}
}
