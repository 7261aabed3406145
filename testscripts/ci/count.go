package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An event is a line of `go test -json` (`go doc test2json`, `go help buildjson`).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// A name is a test or a subtest; without Test it is the package itself.
type name struct{ Package, Test string }

// counts are of tests and subtests. A package that fails without a failing test of its own, because it did
// not build, or its TestMain or a goroutine ended it, counts as one failed: else a broken run could end
// with "0 failed".
type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// count reads events up to the end of r and writes to w what a reader wants to see: the line of each
// package, everything that a failed test or package said, why a test was skipped.
func count(r io.Reader, w io.Writer) (counts, error) {
	t := tally{w: w, said: map[name]string{}, running: map[name]bool{}, failures: map[string]int{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n') // not a Scanner: a test may print a line of any length
		if line != "" {
			t.take(line)
		}
		if errors.Is(err, io.EOF) {
			t.settle(func(name) bool { return true })
			return t.counts, nil
		}
		if err != nil {
			return t.counts, err
		}
	}
}

// A tally is the state of a count.
type tally struct {
	w        io.Writer
	said     map[name]string
	running  map[name]bool  // tests and packages that began and have not ended
	failures map[string]int // failed tests of a package
	counts
}

func (t *tally) take(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(t.w, line) // the go command itself, which speaks no JSON
		return
	}
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.w, e.Output)
	case "start", "run":
		t.running[n] = true
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT: of those that ran beside it, too
			t.said[n] += e.Output
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e.Package, e.Action)
		} else {
			t.endTest(n, e.Action)
		}
	}
}

func (t *tally) endTest(n name, action string) {
	switch action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		fmt.Fprint(t.w, t.said[n])
	case "fail":
		t.failed++
		t.failures[n.Package]++
		fmt.Fprintf(t.w, "FAIL %s %s\n%s", n.Package, n.Test, t.said[n])
	}
	delete(t.said, n)
	delete(t.running, n)
}

func (t *tally) endPackage(pkg, action string) {
	t.settle(func(n name) bool { return n.Package == pkg && n.Test != "" })
	n := name{Package: pkg}
	if action != "fail" {
		fmt.Fprint(t.w, last(t.said[n]))
	} else {
		fmt.Fprint(t.w, t.said[n])
		if t.failures[pkg] == 0 {
			t.failed++
		}
	}
	delete(t.said, n)
	delete(t.running, n)
}

// settle fails what began and never ended: its process ended in mid-test, by a panic, os.Exit or a timeout.
func (t *tally) settle(which func(name) bool) {
	var names []name
	for n := range t.running {
		if which(n) {
			names = append(names, n)
		}
	}
	// The tests of a package before the package, which has failed by itself only if none of them has.
	slices.SortFunc(names, func(a, b name) int { return strings.Compare(b.Package+" "+b.Test, a.Package+" "+a.Test) })
	for _, n := range names {
		if n.Test == "" {
			t.endPackage(n.Package, "fail")
			continue
		}
		t.said[n] += "    began and never ended\n"
		t.endTest(n, "fail")
	}
}

// last is the last line of text, which of a package is its verdict.
func last(text string) string {
	return text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
}
