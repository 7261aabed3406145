package pi

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/providers/wire"
)

// use is what is told of the use of a tool.
type use struct {
	Call    ident `json:"toolCallId"`
	Tool    ident `json:"toolName"`
	Args    json.RawMessage
	Partial outcome `json:"partialResult"` // all that came out by now, or the end of it
	Result  outcome
	IsError bool
	Took    *float64 `json:"durationMs"` // nil if it was not used
}

// outcome is what came out of it.
type outcome struct {
	Content    json.RawMessage
	Structured json.RawMessage `json:"structuredContent"`
	Usage      tokens
}

// call is the use of a tool that has not ended.
type call struct {
	ID    string `json:"id"`
	Asked bool   `json:"asked,omitempty"`
	Told  int    `json:"told,omitempty"` // bytes of what came out
	Sum   string `json:"sum,omitempty"`  // of them
}

// find is where an open call is; -1 if it is not.
func (f *fold) find(id ident) int {
	return slices.IndexFunc(f.Calls, func(c call) bool { return c.ID == string(id) })
}

// opens tells a call. What is over the bound is told, and not counted.
func (f *fold) opens(u use) {
	if u.Call == "" || f.find(u.Call) >= 0 {
		return
	}
	f.alive()
	if len(f.Calls) < wire.Most {
		f.Calls = append(f.Calls, call{ID: string(u.Call)})
	}
	d := f.deed(string(u.Tool), u.Args)
	data := map[string]any{
		"toolCallId": u.Call, "status": "in_progress", "title": d.title, "kind": d.kind, "rawInput": wire.Shown(u.Args),
	}
	if d.path != "" {
		data["locations"] = []map[string]string{{"path": d.path}}
	}
	f.Tell("tool_call", data)
}

// goesOn tells what came out of a tool since the last time. Where that cannot be told any more, as the beginning was left out, it
// is told at the end alone.
func (f *fold) goesOn(u use) {
	i, out := f.find(u.Call), textOf(blocks(u.Partial.Content))
	if i < 0 {
		return
	}
	c := &f.Calls[i]
	if len(out) <= c.Told || c.Told > 0 && wire.Sum(16, out[:c.Told]) != c.Sum {
		return
	}
	piece := out[c.Told:]
	c.Told, c.Sum = len(out), wire.Sum(16, out)
	f.Tell("tool_call_update", map[string]any{
		"toolCallId": u.Call, "status": "in_progress", "content": []any{map[string]any{"type": "content", "content": text{"text", piece}}},
	})
}

// closes tells what came of a call. One that was used without asking, where it was to ask, must not have been: pi is not held to
// that any more, and the turn ends.
func (f *fold) closes(u use) {
	i := f.find(u.Call)
	if u.Call == "" || i < 0 && len(f.Calls) < wire.Most {
		return
	}
	status := "completed"
	if u.IsError {
		status = "failed"
	}
	f.Tell("tool_call_update", map[string]any{"toolCallId": u.Call, "status": status, "rawOutput": u.Result.output()})
	if i < 0 {
		return
	}
	asked := f.Calls[i].Asked
	f.Calls = slices.Delete(f.Calls, i, i+1)
	if u.Took != nil && !asked && gated(f.Order) && f.ours() {
		f.giveUp("config", "pi used "+string(u.Tool)+" without asking")
	}
}

// output is what came out: of a command, that and its exit code; of anything else, what the model is told.
func (o outcome) output() map[string]any {
	var command struct {
		Output   *string
		ExitCode *int `json:"exit_code"`
	}
	if wire.Read(o.Structured, &command) && command.Output != nil {
		return map[string]any{"output": *command.Output, "exitCode": command.ExitCode}
	}
	return map[string]any{"output": textOf(blocks(o.Content))}
}

// settle ends what is open once the turn has ended: its end is not told then.
func (f *fold) settle() {
	for _, c := range f.Calls {
		f.Tell("tool_call_update", map[string]any{"toolCallId": c.ID, "status": "failed"})
	}
	f.Calls = nil
}

// deed is what a tool would do.
type deed struct {
	title   string // "edit a.txt"; of a command, the command itself
	kind    string // ACP's
	command string // the line of shell that it runs, if that is all
	path    string
}

// wish is how it is asked for.
func (d deed) wish() string {
	if d.kind == "execute" {
		return "to run " + d.title
	}
	return "to " + d.title
}

// kinds are ACP's kinds of pi's own tools. Any other tool is an "other".
var kinds = map[string]string{
	"bash": "execute", "powershell": "execute", "read": "read", "edit": "edit", "write": "edit",
	"grep": "search", "find": "search", "ls": "search", "tool_search": "think",
}

// input is what a tool is given, as far as it is understood.
type input struct{ Command, Path, Pattern, Query, Code word }

// deed describes the use of a tool.
func (f *fold) deed(tool string, args json.RawMessage) deed {
	var in input
	_ = wire.Read(args, &in)
	d := deed{kind: cmp.Or(kinds[tool], "other"), title: "use " + tool, path: f.absolute(string(in.Path))}
	switch {
	case d.kind == "execute":
		d.title = cmp.Or(string(in.Command), tool)
		if line := string(in.Command); len(line) <= wire.TitleLimit {
			d.command = line
		}
	case d.kind == "read" || d.kind == "edit":
		d.title = tool + " " + f.relative(d.path)
	case d.kind == "search":
		d.title = "search for " + cmp.Or(string(in.Pattern), "files")
	case tool == "codemode":
		d.title = "run a script: " + string(in.Code)
	default:
		d.title = called(tool)
	}
	d.title = wire.Clip(d.title, wire.TitleLimit)
	return d
}

// called is what a tool is called of which no more is known.
func called(tool string) string {
	if server, name, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__"); ok && strings.HasPrefix(tool, "mcp__") {
		return "call " + name + " of the MCP server " + server
	}
	return "use " + tool
}

// absolute is a path as far as it can be told: where the home is, pi knows.
func (f *fold) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~") || len(path) > wire.TitleLimit {
		return wire.Clip(path, wire.TitleLimit)
	}
	return filepath.Join(f.Order.Cwd, path)
}

// relative is a path as seen from where the agent works.
func (f *fold) relative(path string) string {
	if rest, err := filepath.Rel(f.Order.Cwd, path); err == nil && filepath.IsLocal(rest) && filepath.IsAbs(path) {
		return rest
	}
	return path
}
