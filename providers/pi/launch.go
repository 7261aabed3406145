package pi

import (
	_ "embed" // of gate.ts
	"path/filepath"
	"slices"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// gate is the extension by which pi asks before it uses a tool.
//
//go:embed gate.ts
var gate string

// gateFile is what it is called where pi finds it.
const gateFile = "gate.ts"

// launch starts the process for a conversation. pi goes on with the one that has the id, and begins it if there is none. Our
// extension is the first: what the others do comes behind it.
func launch(o providers.Order, more []string, dir string) providers.Launch {
	l := providers.Launch{Args: []string{"pi", "--mode", "rpc", "--session-id", conversation(o)}}
	if gated(o) {
		l.Args = append(l.Args, "--extension", filepath.Join(dir, gateFile))
		l.Files = map[string]string{gateFile: gate}
	}
	if o.Model != "" {
		l.Args = append(l.Args, "--model", o.Model)
	}
	l.Args = slices.Concat(l.Args, more)
	return l
}

// gated says that it is to ask for each use of a tool.
func gated(o providers.Order) bool { return o.Policy || o.Approve != "" && o.Approve != "all" }

// conversation is the id of an order's conversation. That of a new one has the process's name in it: turns are named alike in
// every home of pintle's.
func conversation(o providers.Order) string {
	if o.Conversation != "" {
		return o.Conversation
	}
	return wire.UUID("conversation", o.Process, o.Turn)
}
