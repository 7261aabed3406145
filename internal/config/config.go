// Package config reads the user's configuration and finds pintle's directories.
//
// A file that cannot be read whole is an error that names file, line and key: a misspelt limit that is silently
// not in force is worse than a verb that refuses to start. Flags win over the environment, and that over the
// file; flags are the callers' business. Values of secrets are never read here: `[env] file` is read when a run
// needs it, by Env.Read. A repository's .pintle.toml is another file, which Repository reads: a
// stranger may have written it.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Config is the user's configuration with the defaults filled in.
type Config struct {
	Agent     string           `toml:"default_agent" json:"default_agent,omitempty"` // PINTLE_AGENT wins
	Env       Env              `toml:"env" json:"env"`
	Supervise Supervise        `toml:"supervise" json:"supervise"`
	Deadlines Deadlines        `toml:"deadlines" json:"deadlines"`
	Recovery  Recovery         `toml:"recovery" json:"recovery"`
	Limits    Limits           `toml:"limits" json:"limits"`
	Agents    map[string]Agent `toml:"agent" json:"agent,omitempty"`
	Prices    map[string]Price `toml:"prices" json:"prices,omitempty"` // by model

	path    string            // of the file, which may be absent
	sources map[string]string // where a value came from, by its key; what is not here is a default
}

// Env says what agents get from the caller's environment besides the published list.
type Env struct {
	Pass []string `toml:"pass" json:"pass,omitempty"` // names and globs
	File string   `toml:"file" json:"file,omitempty"` // NAME=value lines; absolute once loaded
}

// Supervise is about the supervisor itself.
type Supervise struct {
	Idle Duration `toml:"idle" json:"idle"` // how long it stays with nothing to do
}

// Deadlines of runs (D1) and of the steps by which one is stopped (K5). 0 is none.
type Deadlines struct {
	Start      Duration `toml:"start" json:"start"`
	FirstEvent Duration `toml:"first_event" json:"first_event"`
	Idle       Duration `toml:"idle" json:"idle"`
	Run        Duration `toml:"run" json:"run"`
	Stop       Duration `toml:"stop" json:"stop"`
	StopTerm   Duration `toml:"stop_term" json:"stop_term"`
	Interrupt  Duration `toml:"interrupt" json:"interrupt"`
	Operation  Duration `toml:"operation" json:"operation"` // of a client's, that waits for nothing but records (L8)
}

// Recovery of what failed before it was handed over (B2).
type Recovery struct {
	Delay Duration `toml:"delay" json:"delay"`
	Tries int      `toml:"tries" json:"tries"` // in all, the first included
}

// Limits of one home. 0 is none for Running and USDPerDay.
type Limits struct {
	Running    int     `toml:"running" json:"running"`
	Spool      Bytes   `toml:"spool" json:"spool"`
	FrameBytes Bytes   `toml:"frame_bytes" json:"frame_bytes"`
	USDPerDay  float64 `toml:"usd_per_day" json:"usd_per_day"`
}

// Agent is one [agent.NAME].
type Agent struct {
	Kind    string            `toml:"kind" json:"kind,omitempty"`
	Command []string          `toml:"command" json:"command,omitempty"`
	Args    []string          `toml:"args" json:"args,omitempty"`
	Env     map[string]string `toml:"env" json:"env,omitempty"`
	Share   bool              `toml:"share" json:"share,omitempty"`   // its runs are ordered with --share
	Policy  string            `toml:"policy" json:"policy,omitempty"` // a file of permission rules; absolute once loaded
}

// Price of a model in US dollars for a million tokens, for agents that tell tokens only (D2).
type Price struct {
	Input  float64 `toml:"input" json:"input"`
	Output float64 `toml:"output" json:"output"`
	Cached float64 `toml:"cached" json:"cached"`
}

// Default returns the configuration of who has none.
func Default() Config {
	return Config{
		Supervise: Supervise{Idle: minutes(10)},
		Deadlines: Deadlines{
			Start: seconds(60), FirstEvent: minutes(5), Idle: minutes(30),
			Stop: seconds(30), StopTerm: seconds(5), Interrupt: seconds(10), Operation: seconds(30),
		},
		Recovery: Recovery{Delay: seconds(30), Tries: 3},
		Limits:   Limits{Spool: 1 << 30, FrameBytes: 32 << 20},
	}
}

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }
func minutes(n int) Duration { return seconds(60 * n) }

// Load reads the configuration. A file that is not there is an empty one.
func Load(getenv func(string) string) (Config, error) {
	path, err := Path(getenv)
	if err != nil {
		return Config{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	c, err := decode(path, string(text))
	if err != nil {
		return Config{}, err
	}
	c.applyEnvironment(getenv)
	return c, c.resolveFiles(getenv)
}

// Path returns the absolute path from which the configuration is read, whether or not it is there.
func (c Config) Path() string { return c.path }

// applyEnvironment lets the caller's environment win over the file.
func (c *Config) applyEnvironment(getenv func(string) string) {
	if agent := getenv("PINTLE_AGENT"); agent != "" {
		c.Agent = agent
		c.sources["default_agent"] = "PINTLE_AGENT"
	}
}

// resolveFiles makes the names of files absolute: they are relative to the configuration, since verbs run anywhere.
func (c *Config) resolveFiles(getenv func(string) string) (err error) {
	if c.Env.File, err = c.absolute(c.Env.File, getenv); err != nil {
		return err
	}
	for name, agent := range c.Agents {
		if agent.Policy, err = c.absolute(agent.Policy, getenv); err != nil {
			return err
		}
		c.Agents[name] = agent
	}
	return nil
}

func (c *Config) absolute(file string, getenv func(string) string) (string, error) {
	file, err := expandHome(file, getenv)
	if err != nil || file == "" || filepath.IsAbs(file) {
		return file, err
	}
	return filepath.Join(filepath.Dir(c.path), file), nil
}
