package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pintle/pintle/providers"
)

// The files of a tool are those that it would touch, whatever else it is given.
func TestDeed_Files(t *testing.T) {
	f := &fold{}
	f.Order = providers.Order{Cwd: "/w"}
	for _, tt := range []struct{ tool, input, want string }{
		{"Edit", `{"file_path":"/etc/passwd","FILE_PATH":"/w/a"}`, "/etc/passwd"},
		{"NotebookEdit", `{"file_path":"/w/a","notebook_path":"/etc/n"}`, "/w/a /etc/n"}, {"NotebookEdit", `{"notebook_path":"/w/n"}`, "/w/n"},
		{"Glob", `{"pattern":"**/*.go"}`, "/w"}, {"Glob", `{"pattern":"/etc/**"}`, ""}, {"Glob", `{"pattern":"../x"}`, ""}, {"Grep", `{"path":"/etc"}`, "/etc"},
		{"Read", `{"file_path":7}`, ""}, {"Read", `[]`, ""},
	} {
		if got := strings.Join(f.deed(tt.tool, inputOf(json.RawMessage(tt.input))).paths, " "); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
}
