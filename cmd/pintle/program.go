package main

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
)

// afterDashes are the words after the first --, from the raw arguments: only they tell "-" from "-- -".
func afterDashes(args []string) ([]string, bool) {
	i := slices.Index(args, "--")
	if i < 0 {
		return nil, false
	}
	return args[i+1:], true
}

// program resolves a command as execvp would, in the caller's directory and with the agent's PATH.
func program(name, cwd, path string) (string, error) {
	word := name
	missing := api.E(api.CodeNoAgent, "command %s: not found", record.Quote(name)).WithNext("check the command, and PATH")
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		_, err := exec.LookPath(name)
		switch {
		case err == nil:
			return name, nil
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			return name, missing
		}
		return name, api.E(api.CodeNoAgent, "command %s: cannot be executed: %w", record.Quote(word), errors.Unwrap(err)).
			WithNext("check the command")
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		candidate := filepath.Join(dir, name)
		if found, err := exec.LookPath(candidate); err == nil {
			return found, nil
		}
	}
	return "", missing
}
