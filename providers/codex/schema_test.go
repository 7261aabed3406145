package codex

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a schema as codex makes them, with two methods.
const small = `{"definitions": {
	"ClientRequest": {"oneOf": [
		{"properties": {"method": {"enum": ["thread/start"], "type": "string"}, "params": {"$ref": "#/definitions/v2/Params"}}, "type": "object"}
	]},
	"ServerNotification": {"anyOf": [
		{"$ref": "#/definitions/ServerNotification"},
		{"properties": {"method": {"const": "told"}, "params": {"anyOf": [{"$ref": "#/definitions/v2/Params"}, {"type": "null"}]}}, "type": "object"}
	]},
	"Answer": {"properties": {"old": {"type": "string"}}, "type": "object"},
	"v2": {
		"Params": {
			"properties": {
				"kind": {"oneOf": [{"enum": ["a"], "type": "string"}, {"properties": {"big": {"type": "object", "properties": {}}}, "type": "object"}]},
				"list": {"items": {"properties": {"name": {"type": ["string", "null"]}}, "type": "object"}, "type": ["array", "null"]},
				"map": {"additionalProperties": {"enum": ["x"], "type": "string"}, "type": "object"},
				"anything": true,
				"described": {"description": "may be anything"},
				"number": {"type": "integer"}
			},
			"oneOf": [{"properties": {"variant": {"type": "string"}}, "type": "object"}],
			"additionalProperties": false, "type": "object"
		}
	}
}}`

func TestUses_Missing(t *testing.T) {
	there := []string{
		"kind", "kind=a", "kind.big", "list[].name", "list[].name=any", "map{}", "map{}=x", "map.key=x", "anything.below[].it=so",
		"described.below", "variant=some", "number",
	}
	gone := []string{"other", "kind=b", "kind.bigger", "kind.big.below", "list.name", "list[].other", "map{}=y", "map.key=y", "number=1", "number.below"}
	got, err := Uses{
		Requests: []Use{
			{"thread/start", slices.Concat(there, gone), "Answer", []string{"old", "new"}},
			{Method: "thread/stop", Params: []string{"kind"}},
		},
		Notifications: []Use{{Method: "initialized"}},
		Told:          []Use{{Method: "told", Params: []string{"kind=a", "other"}}, {Method: "untold"}},
	}.Missing([]byte(small))
	var want []string
	for _, path := range gone {
		want = append(want, "thread/start "+path)
	}
	want = append(want, "thread/start → new", "thread/stop", "initialized", "told other", "untold")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "{", "[]x"} {
		if _, err := (Uses{}).Missing([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a schema", bad)
		}
	}
	if got, err := Used().Missing([]byte("[1]")); err != nil || len(got) < 20 {
		t.Errorf("of nothing there is all but %q, %v", got, err)
	}
}

// What the fold names and what is in the list are the same: neither is forgotten when the other changes.
func TestUsed_IsWhatTheFoldNames(t *testing.T) {
	var listed []string
	u := Used()
	for _, uses := range [][]Use{u.Requests, u.Notifications, u.Asked, u.Told} {
		for _, use := range uses {
			listed = append(listed, use.Method)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(namedMethods(t), listed); diff != "" {
		t.Errorf("(-named in the fold +listed)\n%s", diff)
	}
}

// method is what methods look like that are more than a word.
var method = regexp.MustCompile(`^(thread|turn|item|config|mcpServer|serverRequest)(/[a-zA-Z]+)+$`)

// words are the methods that are one word.
var words = []string{"initialize", "initialized", "error", "warning", "configWarning", "guardianWarning", "execCommandApproval", "applyPatchApproval"}

// namedMethods are the methods in the texts of the fold's source, but for the list's own.
func namedMethods(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "schema.go" {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && (method.MatchString(s) || slices.Contains(words, s)) {
					all = append(all, s)
				}
			}
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}
