// Package internal has no code: it holds the test of the import arrows.
package internal

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pintle/pintle/"

// arrows has what each package may import besides the standard library, and why no more.
var arrows = map[string]struct {
	may []string
	why string
}{
	"cmd/pintle": {[]string{"internal/config", "internal/crash", "internal/environ", "internal/policy", "internal/proc", "internal/record", "internal/session",
		"internal/shim", "internal/supervisor", "providers", "providers/*", "rpc", "rpc/api", "state", "state/journal", "worktree",
		"github.com/alecthomas/kong", "github.com/google/renameio/v2", "golang.org/x/sys/*", "golang.org/x/term"},
		"the verbs tie all together; heavy dependencies stay out of the base binary"},
	"internal/config":    {[]string{"internal/policy", "github.com/BurntSushi/toml"}, "files and the environment come in, values go out"},
	"internal/crash":     {nil, "is compiled into everything"},
	"internal/environ":   {nil, "is pure: the environment comes in as an argument"},
	"internal/fakemodel": {nil, "is a stranger's server: it knows nothing of pintle"},
	"internal/policy":    {[]string{"mvdan.cc/sh/v3/syntax"}, "is pure: what an agent wants and what the user says come in"},
	"internal/proc":      {[]string{"golang.org/x/sys/*"}, "knows processes and nothing of pintle; the only one that signals"},
	"internal/record": {[]string{"internal/crash", "internal/policy", "internal/proc", "internal/session", "internal/shim", "rpc/api", "state", "state/journal", "worktree"},
		"short-lived verbs use it too, which start nothing and need no supervisor"},
	"internal/session": {nil, "is pure: no I/O, no clock, the standard library alone"},
	"internal/shim":    {[]string{"internal/crash", "internal/proc", "state", "golang.org/x/sys/*"}, "stays small: there may be hundreds of it"},
	"internal/supervisor": {[]string{"internal/config", "internal/crash", "internal/environ", "internal/policy", "internal/proc", "internal/record", "internal/session",
		"internal/shim", "providers", "providers/*", "rpc", "rpc/api", "state", "state/journal", "worktree"},
		"never the command line: only cmd prints and exits"},
	"providers":            {[]string{"internal/session"}, "is the contract of the folds"},
	"providers/*":          {[]string{"internal/session", "providers", "providers/wire", "github.com/google/go-cmp/*"}, "providers translate; they never spawn, lock or write"},
	"rpc":                  {[]string{"rpc/api", "github.com/sourcegraph/jsonrpc2", "golang.org/x/sys/*"}, "carries messages and knows none of them"},
	"rpc/api":              {nil, "is the one list of the wire, for others to import"},
	"state":                {[]string{"internal/crash", "github.com/gofrs/flock", "github.com/google/renameio/v2", "golang.org/x/sys/*"}, "knows records and not what is in them"},
	"state/journal":        {[]string{"internal/crash", "state"}, "knows events and not what they mean"},
	"worktree":             {nil, "drives git(1) and nothing else"},
	"docs":                 {[]string{"*"}, "tests only"},
	"testscripts":          {[]string{"*"}, "tests only"},
	"testscripts/agents":   {[]string{"*"}, "tests only"},
	"testscripts/agents/*": {[]string{"*"}, "tests only"},
	"testscripts/ci":       {[]string{"*"}, "tests only"},
	"testscripts/standin":  {nil, "stands for a stranger's program"},
	"testscripts/storm":    {[]string{"*"}, "tests only"},
}

// matches reports whether path is one of patterns, which may end in /*.
func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return p == path || wild && strings.HasPrefix(path, prefix)
	})
}

// packages returns the directories of the module that hold Go code, relative to its root.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if base := e.Name(); path != ".." && (strings.HasPrefix(base, ".") || base == "testdata") {
			return filepath.SkipDir
		}
		if found, _ := filepath.Glob(path + "/*.go"); len(found) > 0 && path != "../internal" {
			dirs = append(dirs, strings.TrimPrefix(path, "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func rule(dir string) (may []string, why string, ok bool) {
	if r, ok := arrows[dir]; ok {
		return r.may, r.why, true
	}
	r, ok := arrows[filepath.Dir(dir)+"/*"]
	return r.may, r.why, ok
}

func TestArrows(t *testing.T) {
	for _, dir := range packages(t) {
		may, why, ok := rule(dir)
		if !ok {
			t.Errorf("%s is in no rule: add it, with what it may import and why", dir)
			continue
		}
		for _, system := range []string{"linux", "darwin"} {
			ctx := build.Default
			ctx.GOOS = system
			p, err := ctx.ImportDir("../"+dir, 0)
			if none := new(build.NoGoError); errors.As(err, &none) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range p.Imports {
				first, _, _ := strings.Cut(path, "/")
				if own := strings.TrimPrefix(path, module); strings.Contains(first, ".") && !matches(may, own) {
					t.Errorf("%s imports %s: it %s", dir, own, why)
				}
			}
		}
	}
}

// calls are what only some packages may do, as selector expressions.
var calls = []struct {
	what []string
	only []string
	why  string
}{
	{[]string{"syscall.Kill", "unix.Kill", "unix.Tgkill", "unix.PidfdSendSignal", "os.FindProcess"},
		[]string{"internal/proc", "internal/crash"}, "only internal/proc signals, and only what it has identified"},
	{[]string{"os.Exit", "log.Fatal", "log.Fatalf", "syscall.Exit"}, []string{"cmd/*", "testscripts/*"}, "only cmd exits"},
	{[]string{"fmt.Print", "fmt.Printf", "fmt.Println", "os.Stdout"}, []string{"cmd/*", "testscripts/*"}, "only cmd prints to standard output"},
	{[]string{"os.WriteFile"}, []string{"state", "state/journal", "testscripts/*", "internal/config"}, "records are written by package state alone"},
}

func TestCalls_AreWhereTheyBelong(t *testing.T) {
	for _, dir := range packages(t) {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				checkFile(t, dir, file)
			}
		}
	}
}

func checkFile(t *testing.T, dir, file string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				t.Errorf("%s: no init functions: what happens, somebody calls", set.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			if base, ok := n.X.(*ast.Ident); ok {
				checkCall(t, dir, set.Position(n.Pos()), base.Name+"."+n.Sel.Name)
			}
			if inner, ok := n.X.(*ast.SelectorExpr); ok && inner.Sel.Name == "Process" && (n.Sel.Name == "Kill" || n.Sel.Name == "Signal") {
				checkCall(t, dir, set.Position(n.Pos()), "os.FindProcess") // the same rule
			}
		}
		return true
	})
}

func checkCall(t *testing.T, dir string, at token.Position, name string) {
	t.Helper()
	for _, c := range calls {
		if slices.Contains(c.what, name) && !matches(c.only, dir) && !strings.HasPrefix(dir, "testscripts") {
			t.Errorf("%s: %s: %s", at, name, c.why)
		}
	}
}
