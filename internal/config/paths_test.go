package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestPath(t *testing.T) {
	for _, test := range []struct {
		env  environ
		want string
	}{
		{environ{"HOME": "/h"}, "/h/.config/pintle/config.toml"},
		{environ{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/pintle/config.toml"},
		{environ{"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/pintle/config.toml"}, // as XDG says
		{environ{"XDG_CONFIG_HOME": "/x"}, "/x/pintle/config.toml"},
		{environ{"PINTLE_CONFIG": "/c.toml", "XDG_CONFIG_HOME": "/x"}, "/c.toml"},
	} {
		if got, err := Path(test.env.get); got != test.want || err != nil {
			t.Errorf("Path(%v) = %q, %v, want %q", test.env, got, err, test.want)
		}
	}
}

func TestStateDir(t *testing.T) {
	t.Chdir(t.TempDir())
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		env  environ
		want string
	}{
		{environ{"HOME": "/h"}, "/h/.local/state/pintle"},
		{environ{"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/pintle"},
		{environ{"HOME": "/h", "XDG_STATE_HOME": "./x"}, "/h/.local/state/pintle"},
		{environ{"PINTLE_HOME": "/p/", "XDG_STATE_HOME": "/x"}, "/p"},
		{environ{"PINTLE_HOME": "p/../q"}, filepath.Join(cwd, "q")},
	} {
		if got, err := StateDir(test.env.get); got != test.want || err != nil {
			t.Errorf("StateDir(%v) = %q, %v, want %q", test.env, got, err, test.want)
		}
	}
}

func TestStateDirAtTheCallersDirectory(t *testing.T) {
	got, err := StateDirAt(environ{"PINTLE_HOME": "../s"}.get, "/work/dir")
	if got != "/work/s" || err != nil {
		t.Errorf("StateDirAt = %q, %v", got, err)
	}
}

func TestHomeIsNeededOnlyWhereNothingElseSaysTheDirectory(t *testing.T) {
	if _, err := StateDir(environ{}.get); !errors.Is(err, ErrNoHome) {
		t.Errorf("StateDir: %v", err)
	}
	if _, err := Load(environ{}.get); !errors.Is(err, ErrNoHome) {
		t.Errorf("Load: %v", err)
	}
	if _, err := StateDir(environ{"HOME": "relative"}.get); err == nil {
		t.Error("a relative HOME was taken")
	}
	if _, err := Load(environ{"XDG_CONFIG_HOME": t.TempDir()}.get); err != nil {
		t.Errorf("Load without HOME: %v", err)
	}
}

func TestEnvFileIsFoundFromAnywhere(t *testing.T) {
	for file, want := range map[string]string{"/a/b": "/a/b", "~/b": "/home/a/b"} {
		c, err := load(t, "[env]\nfile = \""+file+"\"\n")
		if err != nil || c.Env.File != want {
			t.Errorf("file %s became %s, error %v", file, c.Env.File, err)
		}
	}
}
