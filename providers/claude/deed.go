package claude

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/providers/wire"
)

// input is what a tool is given, as far as it is understood.
type input struct {
	Command     word
	Unsandboxed bool `json:"dangerouslyDisableSandbox"`
	File        word `json:"file_path"`
	Notebook    word `json:"notebook_path"`
	Path        word
	Pattern     word
	URL         word
	Query       word
	Description word
	Skill       word
	Subject     word // of a step of the plan
	Todos       []todo
	Questions   []struct{ Question word }
}

// inputOf reads what a tool is given. A name that is written in another case is another name: Claude Code has no use for it.
func inputOf(raw json.RawMessage) (in input) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(raw, &given)
	maps.DeleteFunc(given, func(name string, _ json.RawMessage) bool { return !slices.Contains(understood, name) })
	read(wire.Encode(given), &in)
	return in
}

var understood = []string{
	"command", "dangerouslyDisableSandbox", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "skill", "subject",
	"todos", "questions",
}

// deed is what a tool would do.
type deed struct {
	title   string   // "edit a.txt"; of a command, the command itself
	kind    string   // ACP's
	command string   // the line of shell that it runs, if that is all
	paths   []string // the files that it is about
}

// wish is how it is asked for.
func (d deed) wish() string {
	if d.kind == "execute" {
		return "to run " + d.title
	}
	return "to " + d.title
}

func (d deed) locations() (at []map[string]string) {
	for _, path := range d.paths {
		at = append(at, map[string]string{"path": path})
	}
	return at
}

// kinds are ACP's kinds of tools. Any other tool is an "other".
var kinds = map[string]string{
	"Bash": "execute", "Monitor": "execute", "Read": "read", "NotebookRead": "read", "BashOutput": "read", "TaskOutput": "read",
	"Edit": "edit", "MultiEdit": "edit", "Write": "edit", "NotebookEdit": "edit",
	"Glob": "search", "Grep": "search", "LS": "search", "WebFetch": "fetch", "WebSearch": "fetch",
	"Task": "think", "Agent": "think", "TodoWrite": "think", "TaskCreate": "think", "TaskUpdate": "think", "TaskGet": "think",
	"TaskList": "think", "ToolSearch": "think", "ListAgents": "think", "CronList": "think", "ReportFindings": "think",
	"AskUserQuestion": "other", "EnterPlanMode": "switch_mode", "ExitPlanMode": "switch_mode",
}

// deed describes the use of a tool.
func (f *fold) deed(tool string, in input) deed {
	d := deed{kind: cmp.Or(kinds[tool], "other"), title: "use " + tool}
	switch d.kind {
	case "execute":
		d.title = wire.Clip(cmp.Or(string(in.Command), tool), wire.TitleLimit)
		if line := string(in.Command); !in.Unsandboxed && len(line) <= wire.TitleLimit {
			d.command = line
		}
	case "read", "edit":
		d.title, d.paths = f.toFile(tool, d.kind, in)
	case "search":
		d.title = "search for " + cmp.Or(string(in.Pattern), "files")
		d.paths = []string{cmp.Or(wire.Clip(string(in.Path), wire.TitleLimit), f.Order.Cwd)}
		if tool == "Glob" && wanders(string(in.Pattern)) {
			d.paths = nil
		}
	case "fetch":
		d.title = "fetch " + cmp.Or(string(in.URL), string(in.Query))
	case "think", "other":
		d.title = called(tool, in)
	}
	d.title = wire.Clip(d.title, wire.TitleLimit)
	return d
}

// toFile is a title with a file in it, and the file.
func (f *fold) toFile(tool, kind string, in input) (title string, paths []string) {
	file := cmp.Or(string(in.File), string(in.Notebook))
	if file == "" {
		return "use " + tool, nil
	}
	if other := cmp.Or(string(in.Notebook), file); len(file) <= wire.TitleLimit && len(other) <= wire.TitleLimit {
		paths = slices.Compact([]string{file, other})
	}
	verb := kind
	if tool == "Write" {
		verb = "write"
	}
	return verb + " " + f.relative(file), paths
}

// wanders says that a pattern leads out of the directory in which it is looked for.
func wanders(pattern string) bool {
	return filepath.IsAbs(pattern) || strings.HasPrefix(pattern, "~") || strings.Contains(pattern, "..")
}

// called is what a tool is called of which no more is known.
func called(tool string, in input) string {
	if server, name, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__"); ok && strings.HasPrefix(tool, "mcp__") {
		return "call " + name + " of the MCP server " + server
	}
	switch tool {
	case "Task", "Agent":
		return "start an agent: " + string(in.Description)
	case "Skill":
		return "use the skill " + string(in.Skill)
	}
	return "use " + tool
}

// relative is a path as seen from where the agent works.
func (f *fold) relative(path string) string {
	if rest, err := filepath.Rel(f.Order.Cwd, path); err == nil && filepath.IsLocal(rest) && filepath.IsAbs(path) {
		return rest
	}
	return path
}
