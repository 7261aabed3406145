package record

import (
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// What waits names the command that goes on, as words for a shell.
func TestNext(t *testing.T) {
	tests := map[string]*api.WaitingFor{
		"pintle recover 'my run' --probe": {Kind: "uncertain"},
		"repeat the pintle run or send that ordered it, with [A B] set; or send its session another message so": {Kind: "needs_env", Names: []string{"A", "B"}},
		"pintle wait 'my run'":                 {Kind: "space"},
		"pintle wait other":                    {Kind: "session", Names: []string{"other"}},
		"pintle allow p-1, or pintle deny p-1": {Kind: "needs_approval", Names: []string{"p-1"}},
	}
	for want, w := range tests {
		if got := Next("my run", w); got != want {
			t.Errorf("%s: %q, want %q", w.Kind, got, want)
		}
	}
}
