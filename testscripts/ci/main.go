// Package main is what .ci/run needs beside the go command: it counts tests, and it looks for what they
// left behind. It is a Go program so that continuous integration needs nothing but Go and git.
//
//	go test -json ./... | ci count FILE     reports as tests end, writes "N passed, N failed, N skipped" to FILE
//	ci left DIR                             lists processes and files that still belong to DIR
//	ci fuzz DURATION                        runs each fuzzer of the module for so long
//
// They exit 1 if they found something that should not be. It is no part of pintle and imports nothing of it.
package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// grace is how long what was told to end may take to be gone from /proc.
const grace = 3 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, talk io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(talk, "ci: usage: ci count FILE | ci left DIR | ci fuzz DURATION")
		return 2
	}
	var found int
	var err error
	switch verb, path := args[0], args[1]; verb {
	case "count":
		found, err = countTo(path, in, out)
	case "left":
		found, err = leftIn(path, out)
	case "fuzz":
		found, err = fuzz(path, out)
	default:
		err = fmt.Errorf("unknown verb %q", verb)
	}
	if err != nil {
		fmt.Fprintln(talk, "ci:", err)
		return 2
	}
	if found > 0 {
		return 1
	}
	return 0
}

func countTo(path string, in io.Reader, out io.Writer) (failed int, err error) {
	c, err := count(in, out)
	if err != nil {
		return 0, fmt.Errorf("read test events: %w", err)
	}
	return c.failed, os.WriteFile(path, []byte(c.String()+"\n"), 0o600)
}

func leftIn(dir string, out io.Writer) (found int, err error) {
	left, err := leftovers(dir, grace)
	for _, l := range left {
		fmt.Fprintln(out, "left behind:", l)
	}
	return len(left), err
}
