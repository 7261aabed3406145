package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// A target is a fuzzer, as `go test -fuzz` takes it: one at a time, by package and name.
type target struct{ pkg, name string }

// fuzz runs every fuzzer of the module for a while and returns how many failed.
func fuzz(length string, out io.Writer) (failed int, err error) {
	var listed strings.Builder
	list := exec.Command("go", "test", "-list", "^Fuzz", "./...")
	list.Stdout, list.Stderr = &listed, out
	if err := list.Run(); err != nil {
		return 0, fmt.Errorf("list fuzzers: %w", err)
	}
	for _, t := range targets(listed.String()) {
		fmt.Fprintf(out, "== %s %s\n", t.pkg, t.name)
		c := exec.Command("go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+length, t.pkg)
		c.Stdout, c.Stderr = out, out
		if c.Run() != nil {
			failed++
		}
	}
	return failed, nil
}

// targets reads what `go test -list` prints: the names of a package, and then its line.
func targets(list string) (found []target) {
	var names []string
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && strings.HasPrefix(words[0], "Fuzz"):
			names = append(names, words[0])
		case len(words) > 1 && words[0] == "ok":
			for _, name := range names {
				found = append(found, target{words[1], name})
			}
			names = nil
		}
	}
	return found
}
