package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// hidden stands for the values of [agent.NAME] env, which are often keys.
const hidden = "(set)"

// entry is a value of the configuration under its dotted key.
type entry struct {
	key   string
	value any
}

// entries lists what is in force, in the order of the file. A key that was not set and has no default is left out.
func (c Config) entries() []entry {
	all := slices.Concat(c.general(), c.ofAgents(), c.ofPrices())
	return slices.DeleteFunc(all, func(e entry) bool {
		switch v := e.value.(type) {
		case string:
			return v == ""
		case []string:
			return len(v) == 0
		}
		return false
	})
}

func (c Config) general() []entry {
	d, l := c.Deadlines, c.Limits
	return []entry{
		{"default_agent", c.Agent},
		{"env.pass", c.Env.Pass}, {"env.file", c.Env.File},
		{"supervise.idle", c.Supervise.Idle},
		{"deadlines.start", d.Start}, {"deadlines.first_event", d.FirstEvent}, {"deadlines.idle", d.Idle},
		{"deadlines.run", d.Run}, {"deadlines.stop", d.Stop}, {"deadlines.stop_term", d.StopTerm},
		{"deadlines.interrupt", d.Interrupt}, {"deadlines.operation", d.Operation},
		{"recovery.delay", c.Recovery.Delay}, {"recovery.tries", c.Recovery.Tries},
		{"limits.running", l.Running}, {"limits.spool", l.Spool}, {"limits.frame_bytes", l.FrameBytes},
		{"limits.usd_per_day", l.USDPerDay},
	}
}

func (c Config) ofAgents() (list []entry) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, table := c.Agents[name], toml.Key{"agent", name}.String()
		list = append(list, entry{table + ".kind", a.Kind}, entry{table + ".command", a.Command}, entry{table + ".args", a.Args},
			entry{table + ".share", a.Share}, entry{table + ".policy", a.Policy})
		for _, variable := range slices.Sorted(maps.Keys(a.Env)) {
			key := toml.Key{"agent", name, "env", variable}.String()
			list = append(list, entry{key, hidden})
		}
	}
	return list
}

func (c Config) ofPrices() (list []entry) {
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		p, table := c.Prices[model], toml.Key{"prices", model}.String()
		list = append(list, entry{table + ".input", p.Input}, entry{table + ".output", p.Output}, entry{table + ".cached", p.Cached})
	}
	return list
}

// Resolve prints the configuration in force as TOML, a dotted key a line, each with where it came from. Values of
// [agent.NAME] env are hidden.
func (c Config) Resolve() string {
	var b strings.Builder
	for _, e := range c.entries() {
		fmt.Fprintf(&b, "%s = %s  # %s\n", e.key, literal(e.value), c.source(e.key))
	}
	return b.String()
}

// source says where the value of a key came from.
func (c Config) source(key string) string {
	if from, ok := c.sources[key]; ok {
		return from
	}
	return "default"
}

// literal returns a value as TOML has it.
func literal(value any) string {
	text, err := toml.Marshal(map[string]any{"v": value})
	if err != nil {
		panic(fmt.Sprintf("config: print %T: %v", value, err)) // all types are in the table above
	}
	return string(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("v = "))))
}

// JSON prints the configuration in force on one line. Values of [agent.NAME] env are hidden.
func (c Config) JSON() ([]byte, error) {
	c.Agents = maps.Clone(c.Agents)
	for name, agent := range c.Agents {
		agent.Env = maps.Clone(agent.Env)
		for variable := range agent.Env {
			agent.Env[variable] = hidden
		}
		c.Agents[name] = agent
	}
	return json.Marshal(c)
}
