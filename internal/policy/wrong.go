package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// kinds are those of tools (ACP, ToolKind).
var kinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}

// Wrong says what is wrong with a rule that somebody has written; "" if nothing.
func (r Rule) Wrong() string {
	_, tool := path.Match(r.Tool, "")
	_, file := path.Match(strings.ReplaceAll(r.Path, "**", "*"), "")
	switch {
	case r.Kind+r.Tool+r.Command+r.Path == "":
		return "a rule needs one of kind, tool, command and path"
	case r.Exact != "":
		return "exact is of pintle's own rules"
	case r.Kind != "" && !slices.Contains(kinds, r.Kind):
		return fmt.Sprintf("the kind %q is none of %s", r.Kind, strings.Join(kinds, ", "))
	case r.Command != "" && strings.TrimSpace(r.Command) == "":
		return "the command is blank"
	case strings.ContainsFunc(r.Tool+r.Command+r.Path+r.Reason+r.From, unicode.IsControl):
		return "control characters are in no rule: a command is the first words of one line"
	case cmp.Or(tool, file) != nil:
		return "is no pattern: " + cmp.Or(tool, file).Error()
	case !r.Deny && r.Reason != "":
		return "a reason is for who is refused"
	}
	return ""
}
