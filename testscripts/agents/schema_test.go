//go:build agents

package agents

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	protocol "github.com/pintle/pintle/providers/codex"
)

// protocolSchema is what the real Codex says of its protocol.
func protocolSchema(t *testing.T) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	c := exec.CommandContext(ctx, native(t), "app-server", "generate-json-schema", "--experimental", "--out", dir)
	c.Env = []string{"CODEX_HOME=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, protocol.SchemaFile))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The real protocol has all that the fold uses, and would be found out if it had not: no name passes that is spelt in
// another way.
func TestCodex_SchemaHasWhatIsUsed(t *testing.T) {
	data := protocolSchema(t)
	missing, err := protocol.Used().Missing(data)
	if err != nil || len(missing) > 0 {
		t.Errorf("missing %q, %v", missing, err)
	}
	u := protocol.Used()
	for _, uses := range [][]protocol.Use{u.Requests, u.Notifications, u.Asked, u.Told} {
		for i, use := range uses {
			uses[i].Params, uses[i].Result = misspelt(use.Params), misspelt(use.Result)
		}
	}
	missing, err = u.Missing(data)
	if err != nil {
		t.Fatal(err)
	}
	// In another kind of the same message these are any text, or anything.
	left := []string{"item.tool=spawnAgentX", "item.status=failedX", "item.status=declinedX", "requestedSchema.propertiesX"}
	for _, uses := range [][]protocol.Use{u.Requests, u.Notifications, u.Asked, u.Told} {
		for _, use := range uses {
			for _, path := range slices.Concat(use.Params, use.Result) {
				named := slices.Contains(missing, use.Method+" "+path) || slices.Contains(missing, use.Method+" → "+path)
				if named == slices.Contains(left, path) {
					t.Errorf("%s %s: missing: %v", use.Method, path, named)
				}
			}
		}
	}
}

// misspelt has each path end in a word that is not there.
func misspelt(paths []string) (all []string) {
	for _, path := range paths {
		all = append(all, strings.TrimSuffix(strings.TrimSuffix(path, "[]"), "{}")+"X")
	}
	return all
}
