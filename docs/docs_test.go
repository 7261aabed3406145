// Package docs_test holds the documents to the code: lists and tables that a reader relies on are compared
// with what they describe.
package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// between returns the part of a document that is marked <!-- NAME: begin --> … <!-- NAME: end -->.
func between(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "<!-- "+name+": begin -->")
	part, _, closed := strings.Cut(rest, "<!-- "+name+": end -->")
	if !ok || !closed {
		t.Fatalf("no part called %s", name)
	}
	return part
}

var code = regexp.MustCompile("`([^`\n]+)`")

// quoted are the words in backquotes.
func quoted(text string) (words []string) {
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// rows are the cells of a table's rows, without its head.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all[1:]
}

func TestEnvironmentLists(t *testing.T) {
	text := read(t, "environment.md")
	if diff := cmp.Diff(environ.Published(), quoted(between(t, text, "published"))); diff != "" {
		t.Errorf("published list (-code +document):\n%s", diff)
	}
	var nesting [][]string
	for _, n := range environ.Nesting() {
		nesting = append(nesting, []string{"`" + n.Pattern + "`", n.Reason})
	}
	if diff := cmp.Diff(nesting, rows(between(t, text, "nesting"))); diff != "" {
		t.Errorf("nesting table (-code +document):\n%s", diff)
	}
	var own []string
	for _, row := range rows(between(t, text, "own")) {
		own = append(own, strings.Trim(row[0], "`"))
	}
	if diff := cmp.Diff(environ.Own(), own); diff != "" {
		t.Errorf("own (-code +document):\n%s", diff)
	}
}

// What may be stored and what counts as a secret is asked of the code by example: it keeps these lists to
// itself.
func TestEnvironmentStoredAndSecret(t *testing.T) {
	text := read(t, "environment.md")
	var host []string
	for _, name := range environ.Published() {
		host = append(host, strings.ReplaceAll(name, "*", "X")+"=value")
	}
	stored := environ.Policy{}.Compose(host).Stored()
	var want []string
	for _, name := range quoted(between(t, text, "stored")) {
		want = append(want, strings.ReplaceAll(name, "*", "X"))
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(stored)), want); diff != "" {
		t.Errorf("stored (-code +document):\n%s", diff)
	}
	for _, word := range quoted(between(t, text, "words")) {
		e := environ.Policy{Pass: []string{"*"}}.Compose([]string{"MY_" + strings.ToLower(word) + "_1=12345678"})
		if len(e.SecretValues()) != 1 {
			t.Errorf("%s does not make a secret", word)
		}
	}
}

// section returns what stands under a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %s", heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

func TestReadmeExitCodes(t *testing.T) {
	part := section(t, read(t, "../README.md"), "Exit codes")
	got := map[api.Code]int{}
	for _, row := range rows(part) {
		for _, name := range quoted(row[2]) {
			exit, err := strconv.Atoi(row[0])
			if err != nil {
				t.Fatal(err)
			}
			got[api.Code(name)] = exit
		}
	}
	source := read(t, "../rpc/api/errors.go")
	declared := regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"|^\tCode\w+ += "(\w+)"`)
	want := map[api.Code]int{}
	for _, m := range declared.FindAllStringSubmatch(source, -1) {
		c := api.Code(m[1] + m[2])
		want[c] = c.Exit()
	}
	if len(want) < 30 {
		t.Fatalf("found %d codes in rpc/api/errors.go", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit codes (-code +README):\n%s", diff)
	}
	for _, m := range regexp.MustCompile("`(\\w+)` (\\d+)").FindAllStringSubmatch(part, -1) {
		if exit := session.Outcome(m[1]).Exit(); strconv.Itoa(exit) != m[2] {
			t.Errorf("outcome %s: exit %d, README says %s", m[1], exit, m[2])
		}
	}
}

var printed = regexp.MustCompile(`(?m)^(\S+) = `)

func TestReadmeConfigurationKeys(t *testing.T) {
	part := section(t, read(t, "../README.md"), "Configuration")
	for _, m := range printed.FindAllStringSubmatch(config.Default().Resolve(), -1) {
		if !strings.Contains(part, "`"+m[1]+"`") {
			t.Errorf("README has no %s", m[1])
		}
	}
}

func pintle(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "pintle")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/pintle").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func help(t *testing.T, bin string, verb ...string) string {
	t.Helper()
	out, err := exec.Command(bin, append(verb, "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v --help: %v\n%s", verb, err, out)
	}
	return string(out)
}

// Every verb of `pintle --help` and every flag of every verb is in the README.
func TestReadmeVerbsAndFlags(t *testing.T) {
	text := section(t, read(t, "../README.md"), "Verbs")
	bin := pintle(t)
	_, commands, ok := strings.Cut(help(t, bin), "\nCommands:\n")
	if !ok {
		t.Fatal("help lists no commands")
	}
	flag := regexp.MustCompile(`(?m)^ +(?:-\w, )?(?:    )?(--[a-z-]+)`)
	for _, m := range regexp.MustCompile(`(?m)^  (\S+)(?: (\S+))?  +\S`).FindAllStringSubmatch(commands, -1) {
		verb, under := m[1], m[2]
		if !strings.Contains(text, "`pintle "+verb) || !strings.Contains(text, under) {
			t.Errorf("README has no verb %s %s", verb, under)
		}
		words := slices.DeleteFunc([]string{verb, under}, func(s string) bool { return s == "" })
		for _, f := range flag.FindAllStringSubmatch(help(t, bin, words...), -1) {
			if !strings.Contains(text, f[1]) {
				t.Errorf("README has no %s of %s", f[1], verb)
			}
		}
	}
}

// A link to a file of the repository leads somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	var documents []string
	for _, pattern := range []string{"../README.md", "*.md", "contract/*.md"} {
		found, _ := filepath.Glob(pattern)
		documents = append(documents, found...)
	}
	for _, document := range documents {
		for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), m[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}
