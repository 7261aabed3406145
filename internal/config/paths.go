package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoHome is returned by Load, Path and StateDir when a directory is to be found below $HOME and that is not
// set. The user sets HOME or the variable that the message names.
var ErrNoHome = errors.New("HOME is not set")

// Path returns where the configuration is: $PINTLE_CONFIG, else $XDG_CONFIG_HOME/pintle/config.toml, else
// ~/.config/pintle/config.toml. It is always absolute.
func Path(getenv func(string) string) (string, error) {
	if path := getenv("PINTLE_CONFIG"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := base(getenv, "XDG_CONFIG_HOME", ".config")
	if err != nil {
		return "", fmt.Errorf("find the configuration: %w (or set PINTLE_CONFIG)", err)
	}
	return filepath.Join(dir, "pintle", "config.toml"), nil
}

// StateDir returns where the state is: $PINTLE_HOME, else $XDG_STATE_HOME/pintle, else ~/.local/state/pintle.
// It is always absolute; a relative PINTLE_HOME starts at this process's directory.
func StateDir(getenv func(string) string) (string, error) {
	if home := getenv("PINTLE_HOME"); home != "" && !filepath.IsAbs(home) {
		cwd, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("make PINTLE_HOME=%s absolute: %w", home, err)
		}
		return StateDirAt(getenv, cwd)
	}
	return StateDirAt(getenv, "")
}

// StateDirAt is StateDir for a caller in cwd.
func StateDirAt(getenv func(string) string, cwd string) (string, error) {
	if home := getenv("PINTLE_HOME"); home != "" {
		return against(cwd, home), nil
	}
	dir, err := base(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state"))
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w (or set PINTLE_HOME)", err)
	}
	return filepath.Join(dir, "pintle"), nil
}

// base returns a directory of the XDG specification, which says to ignore values that are not absolute.
func base(getenv func(string) string, variable, below string) (string, error) {
	if dir := getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := homeDir(getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, below), nil
}

func homeDir(getenv func(string) string) (string, error) {
	home := getenv("HOME")
	switch {
	case home == "":
		return "", ErrNoHome
	case !filepath.IsAbs(home):
		return "", fmt.Errorf("HOME=%s is not absolute", home)
	}
	return home, nil
}

// expandHome resolves a leading ~/, which no shell sees in a file.
func expandHome(path string, getenv func(string) string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := homeDir(getenv)
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

func against(cwd, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}
