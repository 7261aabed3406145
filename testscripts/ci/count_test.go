package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines as go1.26 prints them, Time and Elapsed left out.
const (
	passing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: no quota file system\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.2s\n"}
{"Action":"pass","Package":"p"}
`
	failing = `{"Action":"start","Package":"q"}
{"Action":"output","Package":"q","Output":"-test.shuffle 42\n"}
{"Action":"run","Package":"q","Test":"TestC"}
{"Action":"output","Package":"q","Test":"TestC","Output":"=== PAUSE TestC\n"}
{"Action":"output","Package":"q","Test":"TestC","Output":"    c_test.go:7: got 1, want 2\n"}
{"Action":"fail","Package":"q","Test":"TestC"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
`
	unbuilt = `{"ImportPath":"r [r.test]","Action":"build-output","Output":"r/r.go:3: undefined: x\n"}
{"ImportPath":"r [r.test]","Action":"build-fail"}
{"Action":"start","Package":"r"}
{"Action":"output","Package":"r","Output":"FAIL\tr [build failed]\n"}
{"Action":"fail","Package":"r","FailedBuild":"r [r.test]"}
`
	untested = `{"Action":"start","Package":"s"}
{"Action":"output","Package":"s","Output":"?   \ts\t[no test files]\n"}
{"Action":"skip","Package":"s"}
`
	exited = `{"Action":"start","Package":"t"}
{"Action":"run","Package":"t","Test":"TestD"}
{"Action":"run","Package":"t","Test":"TestD/sub"}
{"Action":"output","Package":"t","Test":"TestD/sub","Output":"about to exit\n"}
{"Action":"output","Package":"t","Output":"exit status 3\n"}
{"Action":"fail","Package":"t"}
`
)

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		name, events, want, says, silent string
	}{
		{"passing", passing, "2 passed, 0 failed, 1 skipped", "no quota file system|ok  \tp\t0.2s", "chatter|PASS"},
		{"failing", passing + failing, "2 passed, 1 failed, 1 skipped", "got 1, want 2|-test.shuffle 42|FAIL\tq", "chatter|PAUSE"},
		{"does not build", unbuilt, "0 passed, 1 failed, 0 skipped", "undefined: x|build failed", ""},
		{"no test files", untested, "0 passed, 0 failed, 0 skipped", "no test files", ""},
		{"exit in mid-test", exited, "0 passed, 2 failed, 0 skipped", "about to exit|never ended|exit status 3", ""},
		{"stream ends in mid-test", `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"run","Package":"p","Test":"TestA"}`, "0 passed, 1 failed, 0 skipped", "p TestA", ""},
		{"stream ends before a test", `{"Action":"start","Package":"p"}`, "0 passed, 1 failed, 0 skipped", "", ""},
		{"no JSON", "go: cannot find main module\n", "0 passed, 0 failed, 0 skipped", "cannot find main module", ""},
		{"a long line", `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" +
			`{"Action":"output","Package":"p","Test":"TestA","Output":"` + strings.Repeat("x", 1<<20) + `"}` + "\n" +
			`{"Action":"pass","Package":"p","Test":"TestA"}`, "1 passed, 0 failed, 0 skipped", "", "x"},
		{"nothing", "", "0 passed, 0 failed, 0 skipped", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got, err := count(strings.NewReader(tt.events), &out)
			if err != nil || got.String() != tt.want {
				t.Errorf("count = %s, %v; want %s", got, err, tt.want)
			}
			for _, s := range fields(tt.says) {
				if !strings.Contains(out.String(), s) {
					t.Errorf("report lacks %q:\n%s", s, out.String())
				}
			}
			for _, s := range fields(tt.silent) {
				if strings.Contains(out.String(), s) {
					t.Errorf("report has %q:\n%s", s, out.String())
				}
			}
		})
	}
}

func TestCountToldOfABrokenStream(t *testing.T) {
	if _, err := count(iotest.ErrReader(os.ErrDeadlineExceeded), &strings.Builder{}); err == nil {
		t.Error("no error")
	}
}

func TestRunExitCodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	for _, tt := range []struct {
		args []string
		in   string
		want int
	}{
		{[]string{"count", file}, passing, 0},
		{[]string{"count", file}, failing, 1},
		{[]string{"count", filepath.Join(file, "no")}, passing, 2},
		{[]string{"left", filepath.Join(file, "no")}, "", 2},
		{[]string{"left", t.TempDir()}, "", 0},
		{[]string{"tally", file}, "", 2},
		{nil, "", 2},
	} {
		var out, talk strings.Builder
		if got := run(tt.args, strings.NewReader(tt.in), &out, &talk); got != tt.want {
			t.Errorf("run(%q) = %d, want %d; %s", tt.args, got, tt.want, talk.String())
		}
	}
	got, err := os.ReadFile(file)
	if want := "0 passed, 1 failed, 0 skipped\n"; err != nil || string(got) != want {
		t.Errorf("counts file = %q, %v; want %q", got, err, want)
	}
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '|' })
}

func TestTargets(t *testing.T) {
	list := "FuzzA\nFuzzB\nok  \tp\t0.1s\nok  \tq\t0.1s\n?   \tr\t[no test files]\nFuzzC\nok  \ts/t\t(cached)\n"
	want := []target{{"p", "FuzzA"}, {"p", "FuzzB"}, {"s/t", "FuzzC"}}
	if got := targets(list); !slices.Equal(got, want) {
		t.Errorf("targets = %v, want %v", got, want)
	}
}
