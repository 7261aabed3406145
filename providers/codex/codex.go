// Package codex drives `codex app-server` (JSON-RPC without its version field, one object a line).
//
// What the real agent does was recorded by experiment; each rule here that is no matter of course says which
// surprise it answers.
package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/pintle/pintle/providers"
)

// Name is what -a calls this provider.
const Name = "codex"

// Tested is the version that this was tested with. One that is newer is told of, and driven all the same.
const Tested = "0.171.0"

// Provider returns the provider.
func Provider() providers.Provider {
	return providers.Provider{
		Name: Name, Program: "codex", Natives: native, Tested: Tested, Install: "npm install -g @openai/codex", Environment: []string{"CODEX_*", "OPENAI_*"},
		Stdin: true, Steers: true, Split: split, New: restore, Owner: owner, Roams: roams, Writer: writer, Unasked: unasked,
		Launch: func(_ providers.Order, more []string, _ string) providers.Launch {
			return providers.Launch{Args: append([]string{"codex", "app-server"}, more...)}
		},
	}
}

// writer is the file that the server has locked (flock, exclusive) from the moment that a thread is loaded until it is
// unloaded or the process has died. One that ends by itself removes the file; SIGKILL leaves it there, unlocked.
func writer(env map[string]string, thread string) string {
	home := env["CODEX_HOME"]
	if home == "" {
		home = filepath.Join(env["HOME"], ".codex")
	}
	return filepath.Join(home, "thread-writer-locks", thread+".lock")
}

// native are the places of the real binary behind the npm package's wrapper, a Node process that stays as parent, and whose
// SIGKILL leaves the server running.
func native(wrapper string) []string {
	p, ok := platforms[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok || filepath.Base(wrapper) != "codex.js" {
		return nil
	}
	pkg := filepath.Dir(filepath.Dir(wrapper)) // …/@openai/codex
	inner := filepath.Join("@openai", "codex-"+p.pkg, "vendor", p.triple, "bin", "codex")
	return []string{
		filepath.Join(pkg, "node_modules", inner), filepath.Join(filepath.Dir(filepath.Dir(pkg)), inner),
	}
}

// platforms are the endings of the platform packages' names, and the directory in each.
var platforms = map[string]struct{ pkg, triple string }{
	"linux/amd64":  {"linux-x64", "x86_64-unknown-linux-musl"},
	"linux/arm64":  {"linux-arm64", "aarch64-unknown-linux-musl"},
	"darwin/amd64": {"darwin-x64", "x86_64-apple-darwin"},
	"darwin/arm64": {"darwin-arm64", "aarch64-apple-darwin"},
}

// split cuts standard output by lines. Standard error is log text: any piece will do.
func split(s providers.Stream, buf []byte, final bool) int {
	if s == providers.Stderr {
		return len(buf)
	}
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		return i + 1
	}
	if final {
		return len(buf)
	}
	return 0
}

func restore(saved json.RawMessage) (providers.Fold, error) {
	f := &fold{}
	if len(saved) == 0 || bytes.Equal(saved, []byte("null")) {
		return f, nil
	}
	if err := json.Unmarshal(saved, &f.state); err != nil {
		return nil, fmt.Errorf("state of codex's protocol: %w", err)
	}
	return f, nil
}
