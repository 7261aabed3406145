package record

import (
	"strings"
	"testing"
)

func TestX23_AnOrderNeverLeadsOutOfItsWorktree(t *testing.T) {
	good := TreeOrder{Repository: "/r/.git", Commit: strings.Repeat("a", 40), Own: true}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*TreeOrder){
		"repository": func(o *TreeOrder) { o.Repository = "r/.git" },
		"source":     func(o *TreeOrder) { o.Source = "r" },
		"sub":        func(o *TreeOrder) { o.Sub = "a/../../b" },
		"commit":     func(o *TreeOrder) { o.Commit = "--help" },
		"branch":     func(o *TreeOrder) { o.Own = false },
	} {
		bad := good
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%s is not refused: %+v", name, bad)
		}
	}
}
