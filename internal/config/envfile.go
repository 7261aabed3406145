package config

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxEnvFile bounds what is read: nobody keeps more in such a file, and a wrong path may lead anywhere.
const maxEnvFile = 1 << 20

// Read returns the variables of `[env] file`, nothing if none is configured. Configured and not there is an error:
// an agent without its key fails later and less clearly.
func (e Env) Read() (map[string]string, error) {
	if e.File == "" {
		return nil, nil
	}
	return ReadEnvFile(e.File)
}

// ReadEnvFile reads NAME=value lines. It refuses a file that others than its owner can read or write. Errors name
// the line and never what stands there.
func ReadEnvFile(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read environment file: %w", err)
	}
	defer file.Close()
	if err := private(file); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read environment file: %w", err)
	case len(text) > maxEnvFile:
		return nil, fmt.Errorf("environment file %s is larger than %s", path, Bytes(maxEnvFile))
	}
	return parseEnv(path, string(text))
}

// private checks the open file, not the path, which could change in between.
func private(file *os.File) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("read environment file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("environment file %s is no regular file", file.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("environment file %s has mode %04o: it holds secrets and must be 0600 or stricter (chmod 600 it)",
			file.Name(), info.Mode().Perm())
	}
	return nil
}

func parseEnv(path, text string) (map[string]string, error) {
	vars := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		name, value, err := parseEnvLine(strings.TrimSpace(line))
		if err != nil {
			return nil, &Error{File: path, Line: i + 1, Key: name, Problem: err.Error()}
		}
		if name != "" {
			vars[name] = value
		}
	}
	return vars, nil
}
